"""The parts of the Annif backend that need no Annif: settings from strings, documents with subjects, scores."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config.flat import flat_names
from labelwise.config.models import SINGLE_CONFIGS
from labelwise.config.presets import AUTO, DEFAULT, Config, changed, load_preset
from labelwise.config.score_transform import bounded
from labelwise.data import Dataset
from labelwise.data.targets import targets
from labelwise.errors import StorageError, UsageError
from labelwise.models.base import Model
from labelwise.types import Csr

OF_ANNIF = frozenset(
    {"name", "language", "backend", "vocab", "analyzer", "transform", "limit", "access", "allow_learn"}
)
"""Entries of a project's section that are for Annif itself."""
OWN = frozenset({"preset", "threads"})
"""Entries that are for the backend and are no settings of a configuration."""


@dataclass(frozen=True)
class SubjectTexts:
    """Texts and the URIs of their subjects, from a corpus of Annif."""

    texts: list[str]
    uris: list[list[str]]

    @classmethod
    def of(cls, documents: Iterable[Any], subjects: Any) -> Self:
        """The documents of a corpus that have a text and a subject of the vocabulary."""
        texts, uris = [], []
        for document in documents:
            found = [subjects[number].uri for number in document.subject_set]
            if found and document.text.strip():
                texts.append(document.text)
                uris.append(found)
        return cls(texts, uris)

    def __add__(self, more: Self) -> Self:
        return replace(self, texts=self.texts + more.texts, uris=self.uris + more.uris)

    def save(self, path: Path) -> None:
        """Write a file with a JSON object on each line, for a training with other settings."""
        with storage.atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
            for text, uris in zip(self.texts, self.uris, strict=True):
                out.write(json.dumps({"text": text, "subjects": uris}) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        try:
            with path.open(encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines]
            return cls([str(row["text"]) for row in rows], [list(row["subjects"]) for row in rows])
        except (ValueError, KeyError, TypeError) as err:
            raise StorageError(f"{path} is damaged ({err}); train from the corpus again") from err

    def dataset(self, subjects: Any, language: str) -> Dataset:
        """Training data whose labels are URIs; the label texts are the names of the subjects."""
        Y, labels = targets(self.uris, None)
        return Dataset(Y=Y, labels=labels, texts=self.texts, label_texts=_names(labels, subjects, language))


def _names(uris: Sequence[str], subjects: Any, language: str) -> list[str]:
    """The names of subjects in a language; the URI of a subject without a name."""
    numbers = (subjects.by_uri(uri, warnings=False) for uri in uris)
    found = (None if number is None else subjects[number].labels.get(language) for number in numbers)
    return [name or uri for name, uri in zip(found, uris, strict=True)]


# ---------------------------------------------------------------------- settings


def project_config(params: Mapping[str, Any], train: Dataset, jobs: int = 0) -> Config:
    """The preset of a project with the project's settings. An unknown setting is refused.

    A setting is a flat name, a field of the configuration, or a field of one of its parts: ``beam = 20``,
    ``ranker.cost = 2``.
    """
    check_entries(params)
    preset, cores = str(params.get("preset", DEFAULT)), threads(params)
    cores = jobs or cores
    if preset == AUTO:
        from labelwise.tuning import choose

        config = choose(train, threads=cores).config
    else:
        config = load_preset(preset)
    values: dict[str, Any] = {"threads": cores}
    for name, value in params.items():
        part, dot, field = name.partition(".")
        if dot:
            values.setdefault(part, {})[field] = parsed_value(value)
        elif name not in OWN | OF_ANNIF:
            values[name] = parsed_value(value)
    return changed(config, values, "the project's settings")


def check_entries(params: Mapping[str, Any]) -> None:
    """Refuse entries of a project that neither Annif nor any kind of model knows."""
    settings = [name for config in SINGLE_CONFIGS for name in flat_names(config)]
    known = dict.fromkeys([*sorted(OWN), *settings, *sorted(OF_ANNIF)])
    for name in params:
        if "." not in name and name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
            raise UsageError(f"the project's settings: there is no setting {name!r}; {hint}")


def parsed_value(value: Any) -> Any:
    """The value of a TOML literal; any other string, and any value that is no string, stays as it is."""
    if not isinstance(value, str):
        return dict(value) if isinstance(value, Mapping) else value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return value


def limit(params: Mapping[str, Any]) -> int:
    """The largest number of suggestions for a document."""
    return _count("limit", params.get("limit", 100))


def threads(params: Mapping[str, Any]) -> int | None:
    """The number of cores that a project may use; None for all cores."""
    return None if "threads" not in params else _count("threads", params["threads"])


def _count(name: str, given: Any) -> int:
    value = parsed_value(given)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} is {value!r}; it must be a whole number of 1 or more")
    return value


# ---------------------------------------------------------------------- suggestions


def suggestion_scores(model: Model, texts: Sequence[str], top_k: int, *, threads: int | None = None) -> Csr:
    """(n_docs, n_labels) the best labels of each text, with probabilities or with scores between 0 and 1."""
    found = model.predict(list(texts), top_k=top_k, threads=threads).matrix
    if model.calibrator_ is None:
        found = bounded(found, logistic=not model.bounded_scores)
    blank = np.array([not text.strip() for text in texts], np.bool_)
    data = np.where(np.repeat(blank, np.diff(found.indptr)), 0, found.data)
    return Csr((data.astype(np.float32), found.indices, found.indptr), shape=found.shape)


def subject_numbers(uris: Sequence[str], subjects: Any) -> npt.NDArray[np.int64]:
    """(n_labels,) the number of each subject in the vocabulary; -1 for subjects that it does not have."""
    found = (subjects.by_uri(uri, warnings=False) for uri in uris)
    return np.array([-1 if number is None else number for number in found], np.int64)


def over_subjects(scores: Csr, numbers: npt.NDArray[np.int64], n_subjects: int) -> Csr:
    """(n_docs, n_subjects) scores of the subjects of the vocabulary, without zeros and without unknown subjects."""
    columns = numbers[scores.indices]
    kept = (columns >= 0) & (scores.data > 0)
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    placed: Any = (scores.data[kept].astype(np.float32), (rows[kept], columns[kept]))
    return Csr(placed, shape=(scores.shape[0], n_subjects))
