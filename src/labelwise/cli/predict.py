"""labelwise predict"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import scipy.sparse as sp
from rich.console import Console
from tyro.conf import Positional, UseAppendAction, arg

from labelwise.cli.columns import as_trained
from labelwise.cli.command import Command, DeviceOption, check_not_read, prepare_kernels
from labelwise.cli.engine import EngineOptions
from labelwise.cli.show import Show
from labelwise.data import BadRows, Format, ReadOptions
from labelwise.data.detect import guess_format
from labelwise.data.files import plain_name, read_lines
from labelwise.data.load import arriving_documents, load_documents
from labelwise.data.standard_input import STANDARD_INPUT
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
class Predict(EngineOptions, Command):
    """Suggest labels for texts, best first: one line per text, or a file of predictions.

    Try it: labelwise predict my-model texts.txt --top-k 5 --output predictions.jsonl
    """

    groups: ClassVar = {
        "labels": ("top_k", "min_probability"),
        "where it runs": ("engine", "address"),
        "output": ("output", "json", "spreadsheet_safe", "quiet"),
    }

    model: Annotated[Path, Positional, arg(metavar="MODEL")]
    """Folder of a trained model."""
    texts: Annotated[Path | None, Positional, arg(metavar="TEXTS", help_behavior_hint="(or --text)")] = None
    """A .txt file with one text per line (also compressed), data in any format that labelwise reads, or - for standard
    input: a text per line, or records with --format jsonl, csv or tsv."""
    text: Annotated[UseAppendAction[tuple[str, ...]], arg(metavar="TEXT", help_behavior_hint="(may be repeated)")] = ()
    """A text itself, in place of TEXTS."""
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
        if (self.texts is None) == (not self.text):
            raise UsageError('give a file of texts, - for standard input, or a text itself: --text "..."')
        if self.output is not None:
            kind = format_of(self.output, SUFFIXES)
            check_writable(self.output, is_file=True)
            check_not_read(self.output, self.texts)
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
                line = to_json({"id": name, "labels": row}) if self.json else readable(row, model.subject_names_)
                out.print(line, markup=False)

    def _predictions(self, model: Model, show: Show) -> Iterator[Predictions]:
        """The predictions of each batch, with ids."""
        with Task(show.on_event, "predicting", unit="texts") as task:
            for ids, documents in self._batches(model, show):
                options: dict[str, Any] = {"min_probability": self.min_probability, "threads": self.threads}
                yield model.predict(documents, self.top_k, ids=ids, **options)
                task.advance(len(ids))

    def _batches(self, model: Model, show: Show) -> Iterator[tuple[list[str], list[str] | Csr]]:
        """Ids and documents of each batch; documents without ids are numbered from 0 by their places in the file."""
        path = self.texts
        if path is not None and str(path) == "-":
            path = STANDARD_INPUT
        as_texts = path is None or (self.format is None and (path is STANDARD_INPUT or self._is_text(path, model)))
        if not model.reads_texts and (as_texts or path is STANDARD_INPUT):
            raise UsageError(
                f"{self.model} was trained on features and cannot read texts; give data with features, "
                "in the format it was trained on"
            )
        if path is None:
            if blank := [text for text in self.text if not text.strip()]:
                raise UsageError(f"--text {blank[0]!r}: the text is empty")
            if any("\ud800" <= letter <= "\udfff" for text in self.text for letter in text):
                raise DataError("--text is not valid in the encoding of the terminal; convert it first")
            yield list(map(str, range(len(self.text)))), list(self.text)
        elif path is STANDARD_INPUT and self.format is not None:
            yield from self._records(model, self.format, show)
        elif as_texts:
            yield from self._lines(path, show)
        else:
            yield from self._data(path, model, show)

    def _data(self, path: Path, model: Model, show: Show) -> Iterator[tuple[list[str], list[str] | Csr]]:
        """Documents of a data set, all of them read first."""
        if self.format is None and not path.exists() and " " in str(path):
            raise DataError(f'there is no such file or folder; if it is a text, pass --text "{path}"', path=self.texts)
        read = as_trained(self.read, model, path, show, split=self.split, format=self.format, labels=False)
        data = load_documents(path, self.split, format=self.format, on_event=show.on_event, **asdict(read))
        documents, names = model.inputs(data), data.names
        for start in range(0, len(data), BATCH):
            end = start + BATCH
            yield names[start:end], documents[start:end]

    def _records(self, model: Model, form: Format, show: Show) -> Iterator[tuple[list[str], list[str] | Csr]]:
        """Documents of standard input, as they arrive."""
        read = as_trained(self.read, model, None, show, labels=False)
        bad = BadRows(skip=read.skip_bad_rows)
        n_docs = 0
        for data in arriving_documents(form, bad, on_event=show.on_event, **asdict(read)):
            yield data.names, model.inputs(data)
            n_docs += len(data)
        if not n_docs:
            raise DataError("there is no document to predict", path=STANDARD_INPUT)

    def _lines(self, path: Path, show: Show) -> Iterator[tuple[list[str], list[str]]]:
        """Lines of text; those of standard input as they arrive."""
        if path is not STANDARD_INPUT and not path.is_file():
            hint = f'if it is a text, pass --text "{path}"' if " " in str(path) else "check the spelling"
            raise DataError(f"there is no such file; {hint}", path=path)
        bad = BadRows(skip=self.read.skip_bad_rows)
        waiting: list[tuple[str, str]] = []
        n_lines = 0
        for first, lines in read_lines(path, bad=bad, **self.read.decoding):
            if path is STANDARD_INPUT and not n_lines and (lines[0] or "").lstrip().startswith("{"):
                show.remark("standard input is read as texts, one a line; if these are records, pass --format jsonl")
            n_lines += len(lines)
            waiting += [(str(first - 1 + i), line) for i, line in enumerate(lines) if line is not None]
            at_once = path is STANDARD_INPUT
            while len(waiting) >= BATCH or (at_once and waiting):
                yield [name for name, _ in waiting[:BATCH]], [line for _, line in waiting[:BATCH]]
                del waiting[:BATCH]
        if waiting:
            yield [name for name, _ in waiting], [line for _, line in waiting]
        for sentence in bad.remarks:
            show.remark(sentence)
        bad.remarks.clear()
        bad.report(show.on_event, path)
        if not n_lines or (bad.count and bad.count == n_lines):
            raise DataError("the file has no text; give one text per line", path=path)

    def _is_text(self, path: Path, model: Model) -> bool:
        """Whether the file holds one text per line: a .txt file may also hold features."""
        if not plain_name(path).endswith(".txt") or path.is_dir():
            return False
        return model.reads_texts or (path.is_file() and guess_format(path, self.read) is None)


def readable(row: Iterable[tuple[str, float]], names: Mapping[str, str] | None = None) -> str:
    """Labels with their scores on one line, a URI after its name if it has one; a dash if there are none."""
    names = names or {}
    shown = ((f"{names[label]} <{label}>" if label in names else label, score) for label, score in row)
    return ", ".join(f"{' '.join(label.split())} ({score:.2f})" for label, score in shown) or "-"


def _joined(parts: list[Predictions]) -> Predictions:
    """The predictions of all batches together."""
    matrix: Any = sp.vstack([part.matrix for part in parts], format="csr")
    ids = [name for part in parts for name in part.ids or ()]
    return Predictions(matrix, parts[0].labels, ids, calibrated=parts[0].calibrated)
