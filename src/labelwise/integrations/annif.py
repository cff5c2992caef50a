"""A backend for Annif: projects with `backend=labelwise` are trained, asked and evaluated by Annif's own commands.

Annif has a fixed table of backends and no entry points. It imports the class that ANNIF_CONFIG names, though, so

    export ANNIF_CONFIG=labelwise.integrations.annif.Config

is enough for `annif` and for its web server. Who has a configuration class already imports this module in it.
A project:

    [subjects-en]
    name=Subjects
    language=en
    backend=labelwise
    vocab=subjects
    preset=parabel
    limit=100

preset
    A name of `labelwise.config.presets.preset_names`, `auto`, or a TOML file. Annif 1.4 pins a huggingface-hub that
    current transformers refuse, so presets with an encoder want an environment in which somebody has overruled that.
hold_out
    Share of the training documents that is held out for the calibration; the linear models then learn from these
    documents too. With 0, or where fewer than 50 documents can be held out, suggestions have scores between 0 and 1,
    which are no probabilities.
calibrate
    With `false` suggestions have scores between 0 and 1, and linear models hold no documents out.
limit
    The most suggestions for a document.
threads
    Cores to train and suggest with; all without it. `annif train --jobs` goes first.
analyzer
    If there is one, linear models read the words that it makes of a text; else labelwise's own tf-idf reads the text.
allow_learn
    Whether `annif learn` may train again on all documents, the new ones and those of the last training, which the
    project's folder keeps.
any other setting
    A field of the preset's configuration, or of a part of it after a dot: `beam=20`, `ranker.cost=2`.
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

from labelwise.errors import LabelwiseError, MissingExtraError, UsageError, need
from labelwise.integrations import subjects
from labelwise.models.base import Model, load_model
from labelwise.models.registry import new_model

need("annif", extra="annif", purpose="Annif projects")

import annif.backend  # noqa: E402
import annif.default_config  # noqa: E402
from annif.backend.backend import AnnifLearningBackend  # noqa: E402
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


class LabelwiseBackend(AnnifLearningBackend):  # type: ignore[misc]  # Annif carries no types
    """Labels are the URIs of subjects; the model in the project's folder is one like any other of labelwise."""

    name = "labelwise"
    DEFAULT_PARAMETERS: Mapping[str, Any] = {"preset": "default"}
    _loaded: tuple[Model, npt.NDArray[np.int64]] | None = None
    """The model, and which subject of the vocabulary each of its labels is."""

    @property
    def _folder(self) -> Path:
        return Path(self.datadir) / MODEL

    @property
    def _model_file_paths(self) -> list[str]:
        return [str(file) for file in self._folder.rglob("*") if file.is_file()]

    def initialize(self, parallel: bool = False) -> None:
        """Load the model, if that was not done yet; beside other processes it uses one thread."""
        if self._loaded is None:
            if not self._folder.is_dir():
                raise NotInitializedException(
                    f"model {self._folder} not found; train the project first", backend_id=self.backend_id
                )
            with self._told():
                model = load_model(self._folder)
                self._check_analyzer(model)
                model.config = replace(model.config, threads=subjects.threads(self.params))
                self._take(model)
        if parallel and self._loaded is not None:
            model, _ = self._loaded
            model.config = replace(model.config, threads=1)

    def _take(self, model: Model) -> None:
        self._loaded = model, subjects.subject_numbers(model.labels_, self.project.subjects)

    def __getstate__(self) -> dict[str, Any]:
        """Other processes map the model's files themselves."""
        return {**self.__dict__, "_loaded": None}

    # ------------------------------------------------------------------ training

    def _train(self, corpus: Any, params: Mapping[str, Any], jobs: int = 0) -> None:
        with self._told(), self._alone():
            if corpus == "cached":
                self._save(self._fitted(self._kept(), params, jobs))
            else:
                documents = subjects.SubjectTexts.of(corpus.documents, self.project.subjects)
                self._save(self._fitted(documents, params, jobs), documents)

    def _learn(self, corpus: Any, params: Mapping[str, Any]) -> None:
        with self._told(), self._alone():
            new = subjects.SubjectTexts.of(corpus.documents, self.project.subjects)
            self._refuse_nothing(new)
            documents = self._kept() + new
            self._save(self._fitted(documents, params), documents)

    def _fitted(self, documents: subjects.SubjectTexts, params: Mapping[str, Any], jobs: int = 0) -> Model:
        self._refuse_nothing(documents)
        train = documents.dataset(self.project.subjects, self.project.vocab_lang)
        config, unknown = subjects.configured(params, train, jobs)
        for name in unknown:
            self.warning(f"there is no setting {name!r}, so it changes nothing")
        if not config.encoders():  # encoders have a tokenizer of their own
            train = replace(train, texts=self._analyzed(documents.texts))
        self.info(f"training on {len(train):,} documents with {train.n_labels:,} subjects")
        model: Model = new_model(config).fit_dataset(train, on_event=_Lines(self.info))
        if config.holdout.share and config.holdout.calibrate and model.calibrator_ is None:
            self.warning(
                "too few documents could be held out for a calibration: suggestions have scores, which are no "
                "probabilities"
            )
        model.report_.data, model.report_.analyzer = f"Annif project {self.project.project_id}", self._spec
        return model

    def _save(self, model: Model, documents: subjects.SubjectTexts | None = None) -> None:
        if documents is not None:
            documents.save(Path(self.datadir) / DOCUMENTS)
        model.save(self._folder)
        self._take(model)

    def _kept(self) -> subjects.SubjectTexts:
        """The documents of the last training."""
        path = Path(self.datadir) / DOCUMENTS
        if not path.is_file():
            raise NotInitializedException(
                f"{path} with the documents of an earlier training is not there; train on a corpus first",
                backend_id=self.backend_id,
            )
        return subjects.SubjectTexts.load(path)

    def _alone(self) -> FileLock:
        """While one process trains, others wait, so that no documents are lost."""
        return FileLock(Path(self.datadir) / "labelwise.lock")

    def _refuse_nothing(self, documents: subjects.SubjectTexts) -> None:
        if not documents.texts:
            raise NotSupportedException(
                "cannot train on no documents; each needs a text, and a subject of the vocabulary",
                project_id=self.project.project_id,
            )

    @property
    def _spec(self) -> str | None:
        return getattr(self.project, "analyzer_spec", None) or None

    def _analyzed(self, texts: Sequence[str]) -> list[str]:
        """Texts as the words of the project's analyzer, if it has one."""
        if self._spec is None:
            return list(texts)
        words = self.project.analyzer.tokenize_words
        try:
            return [" ".join(words(text)) for text in texts]
        except LookupError as err:  # NLTK fetches them on first use, if it can
            raise ConfigurationException(
                f"analyzer={self._spec} lacks data of NLTK; run: python -m nltk.downloader punkt_tab",
                project_id=self.project.project_id,
            ) from err

    def _check_analyzer(self, model: Model) -> None:
        trained = model.report_.analyzer
        if model.kind == "linear-tree" and trained != self._spec:
            raise ConfigurationException(
                f"the model was trained with analyzer={trained or 'none'} but the project now says "
                f"analyzer={self._spec or 'none'}; set it back, or train again",
                project_id=self.project.project_id,
            )

    # ------------------------------------------------------------------ suggesting

    def _suggest_batch(self, documents: Sequence[Any], params: Mapping[str, Any]) -> Any:
        assert self._loaded is not None  # initialize comes first
        model, numbers = self._loaded
        texts = [document.text for document in documents]
        with self._told():
            top_k = subjects.most_labels(params)
            read = self._analyzed(texts) if model.kind == "linear-tree" else texts
            scores = subjects.scored(model, read, top_k)
        return SuggestionBatch(subjects.over_subjects(scores, numbers, len(self.project.subjects)))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of labelwise as those of Annif, which its commands print as one sentence."""
        try:
            yield
        except (UsageError, MissingExtraError) as err:
            raise ConfigurationException(str(err), project_id=self.project.project_id) from err
        except LabelwiseError as err:
            raise OperationFailedException(str(err), project_id=self.project.project_id) from err


class _Lines:
    """Progress as lines of Annif's log: one when a piece of work ends, and some while it goes on.

    Each tells the seconds so far, also because Annif leaves out a line that it has written before.
    """

    def __init__(self, say: Any) -> None:
        self._say = say
        self._begin = self._last = time.monotonic()

    def __call__(self, name: str, values: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if name != "progress" or not (values["finished"] or now - self._last > SECONDS_BETWEEN_LINES):
            return
        self._last = now
        of = f" of {values['total']:,}" if values["total"] and not values["finished"] else ""
        self._say(f"{now - self._begin:.2f} s, {values['task']}: {values['done']:,}{of} {values['unit']}")


def register() -> None:
    """Add the backend to Annif's table."""
    annif.backend._backend_fns[LabelwiseBackend.name] = lambda: LabelwiseBackend


class Config(annif.default_config.Config):  # type: ignore[misc]
    """Annif's own configuration, under a name whose import registers the backend."""

    # As Annif chooses between its two: servers load their projects at once, commands when they need them.
    INITIALIZE_PROJECTS = os.environ.get("FLASK_RUN_FROM_CLI") != "true"


register()
