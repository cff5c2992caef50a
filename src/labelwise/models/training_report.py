"""The training report of a model: sizes, held-out figures, what was chosen, and what changed since.

`fit` fills in what it knows, `labelwise train` adds the data, the preset and the time, and `labelwise.incremental` adds
what it changed. The model card, the report page, the server and the hub read it. It is saved in the config.json of the
model's folder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, get_type_hints

from labelwise.data.options import BadRows, ReadOptions
from labelwise.engines import cpu_seconds
from labelwise.rank.ranker import RankerSettings, RankerTrial
from labelwise.storage.checks import Entries, typed

HOLDOUT_KINDS = {
    "split": "the validation split, which the model was not trained on",
    "learnt split": "the validation split, before linear models learnt from it too (an encoder does not)",
    "share": "a share of the training documents, held out; linear models then learnt from them too, an encoder did not",
    "part": "a part of the training documents, held out; the model itself was then trained on all of them",
    "tenth": "a tenth of the training documents, held out; the model itself was then trained on all of them",
}
"""What `HoldoutResult.kind` means; `part` and `tenth` are those of earlier versions."""


@dataclass(frozen=True, kw_only=True)
class HoldoutResult:
    """What held-out documents say of a model."""

    kind: str | None = None
    """Which documents were held out: one of `HOLDOUT_KINDS`; None until that is known."""
    share: float | None = None
    """Share of the training documents that was held out, where it was one."""
    documents: int
    """Number of held-out documents."""
    scores: Mapping[str, float]
    """P and nDCG at 1, 3 and 5 in percent, by name."""
    calibration_error: float | None = None
    """In percent; None where there were too few documents to measure it."""

    @property
    def description(self) -> str:
        """Which documents were held out, in words."""
        return HOLDOUT_KINDS.get(self.kind or "", "held-out documents")

    def to_dict(self) -> dict[str, Any]:
        """The entries of config.json."""
        return {
            name: value for name, value in asdict(self).items() if value is not None or name not in ("kind", "share")
        }


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How the settings were chosen."""

    trials: int
    metric: str
    """The metric by which the best trial was chosen."""


@dataclass(frozen=True, kw_only=True)
class MemberResult:
    """A member of an ensemble."""

    name: str
    weight: float | None
    """None if the member was dropped."""
    scores: Mapping[str, float] | None
    """P and nDCG of the member alone on the held-out documents, by name."""


@dataclass(frozen=True, kw_only=True)
class AddedLabel:
    """A label that was added after training."""

    label: str
    examples: int
    """Number of its examples; 0 if it was added by its text alone."""
    request: str | None = field(default=None, compare=False)
    """Checksum of what `labelwise add-labels` was given, so that a repeated command does not add the label twice."""


@dataclass(frozen=True, kw_only=True)
class RecordedUpdate:
    """Sizes of a later data set that the model also learnt from."""

    documents: int
    pairs: int
    labels: int
    request: str | None = field(default=None, compare=False)
    """Checksum of what `labelwise update` was given, so that a repeated command does not learn from it twice."""


@dataclass(frozen=True, kw_only=True)
class TrainingColumns:
    """The columns that the training documents were read from, and how; None as in `ReadOptions`."""

    text_column: str
    labels_column: str
    id_column: str
    label_separator: str | None = None
    """As it was given, or found by looking."""
    delimiter: str | None = None

    @classmethod
    def of(cls, options: ReadOptions, found: BadRows) -> TrainingColumns | None:
        """What is worth remembering; None where it is all as usual."""
        names = [field.name for field in fields(cls)]
        values = {name: getattr(options, name) for name in names}
        values["label_separator"] = options.label_separator or found.separator
        usual = {name: getattr(ReadOptions(), name) for name in names}
        plain = {name: None if value is None else str(value) for name, value in values.items()}
        return None if values == usual else cls(**plain)  # type: ignore[arg-type]  # names are never None

    def to_dict(self) -> dict[str, str]:
        """The entries of config.json."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def describe(self) -> str:
        """What the card says."""
        text = " and ".join(part.strip() for part in self.text_column.split(","))
        how = "" if self.label_separator in (None, "none") else f", separated by {self.label_separator!r}"
        return f"text: {text}; labels: {self.labels_column}{how}"


@dataclass(kw_only=True)
class TrainingReport:
    """What is known of a model's training; None where something is not known."""

    documents: int | None = None
    """Number of training documents."""
    pairs: int | None = None
    """Number of (document, label) pairs in them."""
    recall: dict[int, float] | None = None
    """Percent of the held-out documents' true clusters among the matcher's best 1, 5, 10 and 20."""
    chosen: RankerSettings | None = None
    """The ranker's weights and score transform."""
    trials: list[RankerTrial] | None = None
    """The settings of the ranker that were tried, each with P@1, P@3 and P@5 on the held-out documents."""
    tuning: Tuning | None = None
    validation: HoldoutResult | None = None
    members: list[MemberResult] | None = None
    """The members of an ensemble, those that were dropped included."""
    data: str | None = None
    """Name of the training data."""
    columns: TrainingColumns | None = None
    """The columns of the training data, where they are not those that are read anyway."""
    fingerprint: str | None = None
    """Hash of the training documents and their labels, by which the data are recognised."""
    preset: str | None = None
    seconds: float | None = None
    """Wall seconds of training."""
    cpu_seconds: float | None = None
    trained: str | None = None
    """Date of training."""
    analyzer: str | None = None
    """Annif's analyzer whose words the model reads."""
    added: list[AddedLabel] = field(default_factory=list)
    """Labels that were added after training, oldest first."""
    updates: list[RecordedUpdate] = field(default_factory=list)
    """Data sets that the model learnt from after training, oldest first."""
    others: dict[str, Any] = field(default_factory=dict)
    """Entries of config.json that this version does not know; they are kept."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an entry; one that was empty becomes the last: `to_dict` lists entries in the order of their arrival."""
        if not _known(vars(self).get(name)):
            vars(self).pop(name, None)
        vars(self)[name] = value

    @property
    def held_out_scores(self) -> Mapping[str, float] | None:
        """P and nDCG on the held-out documents, by name; None without held-out documents."""
        return None if self.validation is None else self.validation.scores

    def to_dict(self) -> dict[str, Any]:
        """The entries of config.json that are known, in the order of their arrival."""
        entries = {name: _plain(value) for name, value in vars(self).items() if name != "others" and _known(value)}
        return {**entries, **self.others}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any], path: Path | str) -> Self:
        """What `to_dict` gave, and what earlier versions wrote; `path` is named in errors."""
        where = f"{path} has a damaged training report"
        values, kinds = Entries(entries, where).values, get_type_hints(cls)
        report = cls(others={name: value for name, value in values.items() if name not in _ENTRIES})
        for name, value in values.items():
            if name in _ENTRIES:
                setattr(report, name, typed(kinds[name], _with_present_names(name, value), f"{where}: {name}"))
        return report


def _known(value: Any) -> bool:
    return value is not None and value != []


def _plain(value: Any) -> Any:
    if isinstance(value, HoldoutResult | RankerSettings | TrainingColumns):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, AddedLabel | RecordedUpdate):
        return {name: entry for name, entry in asdict(value).items() if entry is not None}
    return asdict(value) if isinstance(value, Tuning | MemberResult) else value


def _with_present_names(name: str, value: Any) -> Any:
    """An entry whose settings of the ranker have their present names."""
    if name == "trials" and isinstance(value, list):
        return [_with_present_names("chosen", one) for one in value]
    if name == "chosen" and isinstance(value, dict):
        return {"score_transform" if key == "combine" else key: one for key, one in value.items()}
    return value


_ENTRIES = frozenset(one.name for one in fields(TrainingReport) if one.name != "others")
"""The entries of config.json that this version knows; their types are those of the fields."""


class TrainingClock:
    """Seconds since the command began, and those of the training that counts."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self.wall, self.cpu = time.perf_counter(), cpu_seconds()

    def stop(self, report: TrainingReport) -> None:
        """Note the seconds since `restart`, and the date."""
        report.seconds, report.cpu_seconds = time.perf_counter() - self.wall, cpu_seconds() - self.cpu
        report.trained = datetime.now(UTC).date().isoformat()
