"""labelwise explain"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.columns import as_trained
from labelwise.cli.command import Command, DeviceOption, prepare_kernels
from labelwise.cli.show import Show
from labelwise.data import Format, ReadOptions, load_dataset
from labelwise.errors import DataError, UsageError
from labelwise.explanations import explain
from labelwise.models.base import load_model
from labelwise.storage import to_json


@dataclass(frozen=True, kw_only=True)
class Explain(Command):
    """Explain why a text has its labels: contributions of words, the path through the tree, and similar documents.

    Try it: labelwise explain my-model "a mirror for the bathroom" --top-k 1
    """

    model: Annotated[Path, Positional, arg(metavar="MODEL")]
    """Folder of a trained model."""
    text: Annotated[str, Positional, arg(metavar="TEXT")]
    """The text, or - for all of standard input."""
    label: str | None = None
    """The label to explain, which need not be among the predicted ones; the best labels if not given."""
    top_k: int = 3
    """Number of best labels to explain."""
    words: int = 10
    """Number of words of each kind to show; the contributions of the others are summed up."""
    data: Path | None = None
    """Documents, in any format that labelwise reads; those most similar to the text are shown."""
    json: bool = False
    """Print one JSON object."""
    split: str = "train"
    """The split of --data, where it is a folder of splits."""
    format: Format | None = None
    """Format of --data; detected if not given."""
    device: DeviceOption = None
    """Device of the encoder, if the model has one."""
    threads: int | None = None
    """Number of threads; all cores if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Load the model, explain the labels, print."""
        for name, value in (("--top-k", self.top_k), ("--words", self.words)):
            if value < 1:
                raise UsageError(f"{name} {value}: give 1 or more")
        text = _standard_input() if self.text == "-" else self.text
        if any("\ud800" <= letter <= "\udfff" for letter in text):  # bytes that the terminal could not decode
            raise DataError("the text is not valid in the encoding of the terminal; convert it first")
        prepare_kernels(show)
        model = load_model(self.model, device=self.device)
        if model.calibrator_ is None:
            show.remark("the model is not calibrated: its scores are not probabilities")
        documents = None
        if self.data is not None:
            read = as_trained(self.read, model, self.data, show, split=self.split, format=self.format)
            documents = load_dataset(self.data, self.split, format=self.format, on_event=show.on_event, **asdict(read))
        explanations = explain(
            model,
            text,
            self.label,
            top_k=self.top_k,
            words=self.words,
            neighbours=documents,
            threads=self.threads,
            on_event=show.on_event,
        )
        if self.json:
            answer = {"text": text, "explanations": [one.to_dict() for one in explanations]}
            out.print(to_json(answer), markup=False)
            return
        for number, explanation in enumerate(explanations):
            if number:
                out.print()
            if subject := (model.subject_names_ or {}).get(explanation.label):
                out.print(f"{subject}:", markup=False)
            out.print(explanation)


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as err:
        raise DataError(f"standard input is not {err.encoding}; convert the text first") from err
