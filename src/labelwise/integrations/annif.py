"""A backend for Annif: its commands train, use and evaluate projects with `backend=labelwise`.

Annif has a fixed table of backends and no entry points, but it imports the class that ANNIF_CONFIG names. Therefore

    export ANNIF_CONFIG=labelwise.integrations.annif.Config

is enough for `annif` and for its web server. A configuration class of your own can import this module instead.
A project:

    [subjects-en]
    name=Subjects
    language=en
    backend=labelwise
    vocab=subjects
    preset=parabel
    limit=100

preset
    A name of `labelwise.config.presets.preset_names`, `auto`, or a TOML file. Annif 1.4 pins a version of
    huggingface-hub that current transformers refuse, so presets with an encoder need an environment without this pin.
hold_out
    Share of the training documents that is held out for the calibration; the linear models then learn from these
    documents too. With 0, or where fewer than 50 documents can be held out, suggestions have scores between 0 and 1,
    which are no probabilities.
calibrate
    With `false` suggestions have scores between 0 and 1, and linear models hold no documents out.
limit
    Largest number of suggestions for a document.
threads
    Number of cores for training and suggestions; all cores if not given. `annif train --jobs` takes precedence.
analyzer
    If given, linear models read the words of this analyzer; otherwise the tf-idf of labelwise reads the text itself.
allow_learn
    Whether `annif learn` may train again on all documents: the new documents and those of the last training, which
    the folder of the project keeps.
any other setting
    A flat name of a setting, a field of the configuration, or a field of one of its parts: `beam=20`, `ranker.cost=2`.
    An unknown setting is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from labelwise.config.presets import Config as ModelConfig
from labelwise.data import Dataset
from labelwise.errors import LabelwiseError, MissingExtraError, UsageError, need
from labelwise.integrations import subjects
from labelwise.models.base import Model, load_model
from labelwise.models.registry import new_model

need("annif", extra="annif", purpose="Annif projects")

import annif.backend  # noqa: E402
import annif.default_config  # noqa: E402
from annif.backend.backend import AnnifLearningBackend  # noqa: E402
from annif.backend.hyperopt import AnnifHyperoptBackend  # noqa: E402
from annif.exception import (  # noqa: E402
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)
from annif.suggestion import SuggestionBatch  # noqa: E402

MODEL = "labelwise-model"
DOCUMENTS = "labelwise-train.jsonl"
SECONDS_BETWEEN_LINES = 10.0


class LabelwiseBackend(AnnifHyperoptBackend, AnnifLearningBackend):  # type: ignore[misc]  # Annif carries no types
    """A labelwise model whose labels are the URIs of subjects; its model folder is in the folder of the project."""

    name = "labelwise"
    DEFAULT_PARAMETERS: Mapping[str, Any] = {"preset": "default"}
    _loaded: tuple[Model, npt.NDArray[np.int64]] | None = None
    """The model, and the number of each of its labels in the vocabulary."""
    _parallel = False
    """Whether other processes suggest at the same time; each process then uses one thread."""

    @property
    def _folder(self) -> Path:
        return Path(self.datadir) / MODEL

    @property
    def _model_file_paths(self) -> list[str]:
        return [str(file) for file in self._folder.rglob("*") if file.is_file()]

    def initialize(self, parallel: bool = False) -> None:
        """Load the model, if it is not loaded yet."""
        self._parallel = self._parallel or parallel
        if self._loaded is None:
            if not self._folder.is_dir():
                raise NotInitializedException(
                    f"model {self._folder} not found; train the project first", backend_id=self.backend_id
                )
            with self._annif_errors():
                model = load_model(self._folder)
                self._check_analyzer(model)
                self._use(model)

    def _use(self, model: Model) -> None:
        self._loaded = model, subjects.subject_numbers(model.labels_, self.project.subjects)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the model, whose files other processes map themselves."""
        return {**self.__dict__, "_loaded": None}

    # ------------------------------------------------------------------ training

    def _train(self, corpus: Any, params: Mapping[str, Any], jobs: int = 0) -> None:
        with self._annif_errors(), self._lock():
            if corpus == "cached":
                self._save(self._fitted(self._kept_documents(), params, jobs))
            else:
                documents = subjects.SubjectTexts.of(corpus.documents, self.project.subjects)
                self._save(self._fitted(documents, params, jobs), documents)

    def _learn(self, corpus: Any, params: Mapping[str, Any]) -> None:
        with self._annif_errors(), self._lock():
            new = subjects.SubjectTexts.of(corpus.documents, self.project.subjects)
            self._check_documents(new)
            documents = self._kept_documents() + new
            self._save(self._fitted(documents, params), documents)

    def _fitted(self, documents: subjects.SubjectTexts, params: Mapping[str, Any], jobs: int = 0) -> Model:
        self._check_documents(documents)
        train = documents.dataset(self.project.subjects, self.project.vocab_lang)
        config = subjects.project_config(params, train, jobs)
        if not config.texts_only:  # an encoder has its own tokenizer
            train = replace(train, texts=self._analyzed(documents.texts))
        self.info(f"training on {len(train):,} documents with {train.n_labels:,} subjects")
        model: Model = new_model(config).fit_dataset(train, on_event=_LogLines(self.info))
        if config.holdout.share and config.holdout.calibrate and model.calibrator_ is None:
            self.warning(
                "too few documents could be held out for a calibration: suggestions have scores, which are no "
                "probabilities"
            )
        model.report_.data, model.report_.analyzer = f"Annif project {self.project.project_id}", self._analyzer_spec
        return model

    def _save(self, model: Model, documents: subjects.SubjectTexts | None = None) -> None:
        if documents is not None:
            documents.save(Path(self.datadir) / DOCUMENTS)
        model.save(self._folder)
        self._use(model)

    def _kept_documents(self) -> subjects.SubjectTexts:
        """The documents of the last training."""
        path = Path(self.datadir) / DOCUMENTS
        if not path.is_file():
            raise NotInitializedException(
                f"{path} with the documents of an earlier training does not exist; train on a corpus first",
                backend_id=self.backend_id,
            )
        return subjects.SubjectTexts.load(path)

    def _lock(self) -> FileLock:
        """A lock that lets one process train at a time, so that no documents are lost."""
        return FileLock(Path(self.datadir) / "labelwise.lock")

    def _check_documents(self, documents: subjects.SubjectTexts) -> None:
        """Refuse an empty corpus."""
        if not documents.texts:
            raise NotSupportedException(
                "cannot train on no documents; each needs a text, and a subject of the vocabulary",
                project_id=self.project.project_id,
            )

    @property
    def _analyzer_spec(self) -> str | None:
        """The analyzer that the project names, if any."""
        return getattr(self.project, "analyzer_spec", None) or None

    def _analyzed(self, texts: Sequence[str]) -> list[str]:
        """Texts as words of the project's analyzer; the texts themselves if the project has none."""
        if self._analyzer_spec is None:
            return list(texts)
        words = self.project.analyzer.tokenize_words
        try:
            return [" ".join(words(text)) for text in texts]
        except LookupError as err:  # NLTK downloads its data on first use, if it can
            raise ConfigurationException(
                f"analyzer={self._analyzer_spec} lacks data of NLTK; run: python -m nltk.downloader punkt_tab",
                project_id=self.project.project_id,
            ) from err

    def _check_analyzer(self, model: Model) -> None:
        """Refuse a model that reads the words of another analyzer."""
        trained = model.report_.analyzer
        if not model.config.texts_only and trained != self._analyzer_spec:
            raise ConfigurationException(
                f"the model was trained with analyzer={trained or 'none'} but the project now says "
                f"analyzer={self._analyzer_spec or 'none'}; set it back, or train again",
                project_id=self.project.project_id,
            )

    # ------------------------------------------------------------------ searching for settings

    def get_hp_optimizer(self, corpus: Any, metric: str) -> Any:
        """What `annif hyperopt` runs: a search for settings, by suggestions for the documents of a corpus."""
        from labelwise.integrations.annif_hyperopt import Optimizer

        return Optimizer(self, corpus, metric)

    def search_data(self) -> tuple[Dataset, ModelConfig, Mapping[str, Any]]:
        """The documents of the last training, and the settings that the search starts from."""
        with self._annif_errors():
            documents = self._kept_documents()
            train = documents.dataset(self.project.subjects, self.project.vocab_lang)
            config = subjects.project_config(self.params, train)
            if not config.texts_only:
                train = replace(train, texts=self._analyzed(documents.texts))
            return train, config, self.params

    def read_texts(self, texts: Sequence[str], config: ModelConfig) -> list[str]:
        """Texts as a model with this configuration reads them."""
        with self._annif_errors():
            return list(texts) if config.texts_only else self._analyzed(texts)

    # ------------------------------------------------------------------ suggesting

    def _suggest_batch(self, documents: Sequence[Any], params: Mapping[str, Any]) -> Any:
        assert self._loaded is not None  # initialize comes first
        model, numbers = self._loaded
        texts = [document.text for document in documents]
        with self._annif_errors():
            top_k = subjects.limit(params)
            threads = 1 if self._parallel else subjects.threads(params)
            read = texts if model.config.texts_only else self._analyzed(texts)
            scores = subjects.suggestion_scores(model, read, top_k, threads=threads)
        return SuggestionBatch(subjects.over_subjects(scores, numbers, len(self.project.subjects)))

    @contextmanager
    def _annif_errors(self) -> Iterator[None]:
        """Errors of labelwise as errors of Annif, which its commands print as one sentence."""
        try:
            yield
        except (UsageError, MissingExtraError) as err:
            raise ConfigurationException(str(err), project_id=self.project.project_id) from err
        except LabelwiseError as err:
            raise OperationFailedException(str(err), project_id=self.project.project_id) from err


class _LogLines:
    """Progress as lines of Annif's log: a line at the end of a task, and a line every few seconds in long tasks.

    Each line has the seconds since the beginning. Annif leaves out a line that it has already written, so lines must
    differ.
    """

    def __init__(self, write: Any) -> None:
        self._write = write
        self._begin = self._last = time.monotonic()

    def __call__(self, name: str, values: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if name != "progress" or not (values["finished"] or now - self._last > SECONDS_BETWEEN_LINES):
            return
        self._last = now
        of = f" of {values['total']:,}" if values["total"] and not values["finished"] else ""
        self._write(f"{now - self._begin:.2f} s, {values['task']}: {values['done']:,}{of} {values['unit']}")


def register() -> None:
    """Add the backend to Annif's table."""
    annif.backend._backend_fns[LabelwiseBackend.name] = lambda: LabelwiseBackend


class Config(annif.default_config.Config):  # type: ignore[misc]
    """Annif's own configuration; the import of this class registers the backend."""

    # Annif has this difference between its own two configurations: a server loads its projects at the start, a command
    # when it needs them.
    INITIALIZE_PROJECTS = os.environ.get("FLASK_RUN_FROM_CLI") != "true"


register()
