"""What the Annif backend does that needs no Annif: settings out of strings, documents with subjects, scores in 0..1."""

from __future__ import annotations

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
"""What a project's section says to Annif itself."""
OWN = frozenset({"preset", "threads"})


@dataclass(frozen=True)
class SubjectTexts:
    """Texts and the URIs of their subjects, as Annif's corpus gave them."""

    texts: list[str]
    uris: list[list[str]]

    @classmethod
    def of(cls, documents: Iterable[Any], subjects: Any) -> Self:
        """Those documents of a corpus that have a text and a subject of the vocabulary."""
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
        """Keep them, one JSON object a line, for a training with other settings."""
        with storage.atomic_file(path) as aside, aside.open("w", encoding="utf-8", newline="\n") as out:
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
        """Training data; labels are URIs, described by their names."""
        Y, labels = targets(self.uris, None)
        return Dataset(Y=Y, labels=labels, texts=self.texts, label_texts=_names(labels, subjects, language))


def _names(uris: Sequence[str], subjects: Any, language: str) -> list[str]:
    numbers = (subjects.by_uri(uri, warnings=False) for uri in uris)
    found = (None if number is None else subjects[number].labels.get(language) for number in numbers)
    return [name or uri for name, uri in zip(found, uris, strict=True)]


# ---------------------------------------------------------------------- settings


def configured(params: Mapping[str, Any], train: Dataset, jobs: int = 0) -> tuple[Config, list[str]]:
    """The preset that a project names with its settings on top, and the names of those that nobody knows.

    A setting is a field of the configuration, or of a part of it after a dot: ``beam = 20``, ``ranker.cost = 2``.
    """
    preset, cores = str(params.get("preset", DEFAULT)), threads(params)
    cores = jobs or cores
    if preset == AUTO:
        from labelwise.tuning import choose

        config = choose(train, threads=cores).config
    else:
        config = load_preset(preset)
    known = set(flat_names(type(config)))
    values: dict[str, Any] = {"threads": cores}
    unknown = []
    for name, given in params.items():
        part, dot, field = name.partition(".")
        if dot:
            values.setdefault(part, {})[field] = parsed(given)
        elif name in known and name not in OWN:
            values[name] = parsed(given)
        elif name not in OWN | OF_ANNIF:
            unknown.append(name)
    return changed(config, values, "the project's settings"), unknown


def parsed(given: Any) -> Any:
    """A value as TOML understands it; what is no TOML is a string, and what is no string stays."""
    if not isinstance(given, str):
        return dict(given) if isinstance(given, Mapping) else given
    try:
        return tomllib.loads(f"value = {given}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return given


def most_labels(params: Mapping[str, Any]) -> int:
    """The `limit` of suggestions."""
    return _whole("limit", params.get("limit", 100))


def threads(params: Mapping[str, Any]) -> int | None:
    """The cores that a project may use; None for all."""
    return None if "threads" not in params else _whole("threads", params["threads"])


def _whole(name: str, given: Any) -> int:
    value = parsed(given)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} is {value!r}; it must be a whole number of 1 or more")
    return value


# ---------------------------------------------------------------------- training and suggesting


def scored(model: Model, texts: Sequence[str], top_k: int) -> Csr:
    """(n_docs, n_labels) the best labels of each text with probabilities, or with scores brought between 0 and 1."""
    found = model.predict(list(texts), top_k=top_k).matrix
    if model.calibrator_ is None:
        found = bounded(found, logistic=not model.bounded_scores)
    blank = np.array([not text.strip() for text in texts], np.bool_)
    data = np.where(np.repeat(blank, np.diff(found.indptr)), 0, found.data)
    return Csr((data.astype(np.float32), found.indices, found.indptr), shape=found.shape)


def subject_numbers(uris: Sequence[str], subjects: Any) -> npt.NDArray[np.int64]:
    """(n_labels,) where the vocabulary has them now; -1 for those it has no more."""
    found = (subjects.by_uri(uri, warnings=False) for uri in uris)
    return np.array([-1 if number is None else number for number in found], np.int64)


def over_subjects(scores: Csr, numbers: npt.NDArray[np.int64], n_subjects: int) -> Csr:
    """(n_docs, n_subjects) the same scores over the vocabulary; zeros and what it does not have are left out."""
    columns = numbers[scores.indices]
    kept = (columns >= 0) & (scores.data > 0)
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    placed: Any = (scores.data[kept].astype(np.float32), (rows[kept], columns[kept]))
    return Csr(placed, shape=(scores.shape[0], n_subjects))
