"""labelwise predict"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import scipy.sparse as sp
from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command, DeviceOption, prepare_kernels
from labelwise.cli.show import Show
from labelwise.data import Format, ReadOptions, load_dataset
from labelwise.data.detect import guess_format
from labelwise.data.files import plain_name, read_lines
from labelwise.errors import DataError, UsageError
from labelwise.events import Task
from labelwise.models.base import Model, load_model
from labelwise.predictions import Predictions
from labelwise.predictions.spreadsheets import safe_for_spreadsheets
from labelwise.predictions.writing import SUFFIXES, format_of
from labelwise.storage import check_writable, to_json
from labelwise.types import Csr

BATCH = 10_000
"""Number of texts in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Predict(Command):
    """Suggest labels for texts, best first: one line per text, or a file of predictions.

    Try it: labelwise predict my-model texts.txt --top-k 5 --output predictions.jsonl
    """

    model: Annotated[Path, Positional, arg(metavar="MODEL")]
    """Folder of a trained model."""
    texts: Annotated[Path, Positional, arg(metavar="TEXTS")]
    """A .txt file with one text per line (also compressed), data in any format that labelwise reads, or - for lines of
    standard input."""
    top_k: int = 5
    """Largest number of labels for each text."""
    min_probability: float = 0.0
    """Leave out labels below this probability; a text may then have none."""
    output: Path | None = None
    """Write predictions into this .jsonl, .csv (also .gz, .xz) or .parquet file, which labelwise evaluate reads,
    instead of printing them."""
    spreadsheet_safe: bool = False
    """With --output FILE.csv: write ' before labels and ids that a spreadsheet would compute as formulas. Such a file
    is for people; labelwise evaluate does not know the labels that were changed."""
    json: bool = False
    """Print a JSON object for each text."""
    split: str = "test"
    """The split to predict, where TEXTS is a folder of splits."""
    format: Format | None = None
    """Format of the data; detected if not given."""
    device: DeviceOption = None
    """Device of the encoder, if the model has one."""
    threads: int | None = None
    """Number of threads; all cores if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Load the model, predict batch by batch, print or write the predictions."""
        if self.top_k < 1:
            raise UsageError(f"--top-k {self.top_k}: give 1 or more")
        if not 0 <= self.min_probability <= 1:
            raise UsageError(f"--min-probability {self.min_probability}: a probability lies between 0 and 1")
        if self.output is not None:
            kind = format_of(self.output, SUFFIXES)
            check_writable(self.output, is_file=True)
        if self.spreadsheet_safe and (self.output is None or kind != ".csv"):
            raise UsageError("--spreadsheet-safe is about .csv files; give --output FILE.csv")
        prepare_kernels(show)
        model = load_model(self.model, device=self.device)
        if model.calibrator_ is None:
            if self.min_probability:
                raise UsageError(
                    f"{self.model} is not calibrated, so its scores are not probabilities; train it with calibration, "
                    "or leave out --min-probability"
                )
            show.remark("the model is not calibrated: the numbers are scores, not probabilities")
        parts = self._predictions(model, show)
        if self.output is not None:
            found = _joined(list(parts))
            (safe_for_spreadsheets(found) if self.spreadsheet_safe else found).write(self.output)
            show.remark(f"written: {self.output}")
            return
        for part in parts:
            for name, row in zip(part.ids or (), part, strict=True):
                line = to_json({"id": name, "labels": row}) if self.json else readable(row)
                out.print(line, markup=False)

    def _predictions(self, model: Model, show: Show) -> Iterator[Predictions]:
        """The predictions of each batch, with ids."""
        with Task(show.on_event, "predicting", unit="texts") as task:
            for ids, documents in self._batches(model, show):
                options: dict[str, Any] = {"min_probability": self.min_probability, "threads": self.threads}
                yield model.predict(documents, self.top_k, ids=ids, **options)
                task.advance(len(ids))

    def _batches(self, model: Model, show: Show) -> Iterator[tuple[list[str], list[str] | Csr]]:
        """Ids and documents of each batch; lines of text are numbered from 0."""
        standard_input = str(self.texts) == "-"
        if standard_input or (self.format is None and self._is_text(model)):
            if not model.reads_texts:
                raise UsageError(
                    f"{self.model} was trained on features and cannot read texts; give data with features, "
                    "in the format it was trained on"
                )
            lines = _standard_input() if standard_input else self._lines()
            # On a terminal each line is answered at once.
            size = 1 if standard_input and sys.stdin.isatty() else BATCH
            first = 0
            while texts := list(islice(lines, size)):
                yield [str(number) for number in range(first, first + len(texts))], texts
                first += len(texts)
            if not first:
                raise DataError("the file has no text; give one text per line", path=self.texts)
            return
        # The labels are not used, so documents may have none.
        options: dict[str, Any] = {**asdict(self.read), "allow_unlabelled": True}
        data = load_dataset(self.texts, self.split, format=self.format, on_event=show.on_event, **options)
        documents = model.inputs(data)
        names = data.ids or [str(number) for number in range(len(data))]
        for start in range(0, len(data), BATCH):
            end = start + BATCH
            yield names[start:end], documents[start:end]

    def _is_text(self, model: Model) -> bool:
        """Whether the file holds one text per line: a .txt file may also hold features."""
        if not plain_name(self.texts).endswith(".txt") or self.texts.is_dir():
            return False
        return model.reads_texts or (self.texts.is_file() and guess_format(self.texts, self.read) is None)

    def _lines(self) -> Iterator[str]:
        if not self.texts.is_file():
            raise DataError("there is no such file; check the spelling", path=self.texts)
        for _, lines in read_lines(self.texts, **self.read.decoding):
            for line in lines:
                yield line or ""


def readable(row: Iterable[tuple[str, float]]) -> str:
    """Labels with their scores on one line; a dash if there are none."""
    return ", ".join(f"{' '.join(label.split())} ({score:.2f})" for label, score in row) or "-"


def _standard_input() -> Iterator[str]:
    try:
        for line in sys.stdin:
            yield line.rstrip("\r\n")
    except UnicodeDecodeError as err:
        raise DataError(
            f"standard input is not {err.encoding}; put the texts into a file and name its --encoding"
        ) from err


def _joined(parts: list[Predictions]) -> Predictions:
    """The predictions of all batches together."""
    matrix: Any = sp.vstack([part.matrix for part in parts], format="csr")
    return Predictions(matrix, parts[0].labels, [name for part in parts for name in part.ids or ()])
