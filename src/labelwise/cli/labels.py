"""labelwise add-labels, remove-labels, update"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.config import IncrementalConfig
from labelwise.data import Format, ReadOptions, load_dataset
from labelwise.errors import UsageError
from labelwise.incremental import add_labels, added_labels, read_new_labels, remove_labels, update
from labelwise.models.base import Model, load_model
from labelwise.models.training_report import AddedLabel

MOST_LISTED = 20
"""Labels that are shown one by one when they are added."""


@dataclass(frozen=True, kw_only=True)
class Growing(Command):
    """What the three commands have in common."""

    model: Annotated[Path, Positional, arg(metavar="MODEL")]
    """The folder of a trained model of any kind."""
    output: Path | None = None
    """The folder to make; if not given, the new model takes the old one's place once it is complete."""
    overwrite: bool = False
    """Replace what lies at --output."""

    def _load(self) -> Model:
        """The model, once it is clear that there is a place for its successor."""
        if self.output is not None and self.output.exists() and not self.overwrite:
            raise UsageError(f"{self.output} exists already; choose another place, or pass --overwrite")
        return load_model(self.model)

    def _save(self, model: Model, out: Console) -> None:
        place = self.output or self.model
        model.save(place)
        out.print(f"the model: {place}, {len(model.labels_):,} labels", markup=False)


@dataclass(frozen=True, kw_only=True)
class AddLabels(Growing):
    """Teach a model new labels without training it anew; all other labels keep their weights.

    LABELS has one JSON object on each line, of which only the label is needed:

        {"label": "cycling", "text": "bicycles and their riders", "examples": ["a bell for the handlebar", "…"]}

    A label with examples learns to tell them from other documents of its cluster: those of --data, or those that the
    model keeps (labelwise train --growing). A label without examples is found by its text, or by its name.

    Try it: labelwise add-labels my-model new.jsonl --data my-shop --output grown
    """

    labels: Annotated[Path, Positional, arg(metavar="LABELS.jsonl")]
    """The labels to add."""
    data: Path | None = None
    """Documents with labels, any data that labelwise reads, such as those that the model was trained on. Those that
    have a new label are further examples of it, the others are what it is told from."""
    split: str = "train"
    """The split of --data, where it is a folder of splits."""
    format: Format | None = None
    """The format of --data; found by looking if not given."""
    growing: IncrementalConfig = field(default_factory=IncrementalConfig)
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Read, add, save, tell."""
        model, new = self._load(), read_new_labels(self.labels)
        data = None
        if self.data is not None:
            options = asdict(self.read)
            data = load_dataset(self.data, self.split, format=self.format, on_event=show.on_event, **options)
        grown = add_labels(model, new, data=data, config=self.growing, on_event=show.on_event)
        self._save(grown, out)
        added = added_labels(grown)[-len(new) :]
        by_text = sum(one.examples == 0 for one in added)
        out.print(f"added: {len(new):,} labels, {by_text:,} of them by their text alone", markup=False)
        if len(added) <= MOST_LISTED:
            out.print(_table(added))


@dataclass(frozen=True, kw_only=True)
class RemoveLabels(Growing):
    """Take labels out of a model. Without those that were added, it predicts exactly as it did before.

    Try it: labelwise remove-labels grown cycling, or labelwise remove-labels grown --list
    """

    labels: Annotated[tuple[str, ...], Positional, arg(metavar="LABEL")] = ()
    """Names of labels."""
    added: bool = False
    """Remove all labels that were added."""
    list: bool = False
    """Show the labels that were added, and change nothing."""

    def run(self, out: Console, show: Show) -> None:
        """List, or remove and save."""
        if sum((bool(self.labels), self.added, self.list)) != 1:
            raise UsageError("give the names of labels to remove, or --added for all that were added, or --list")
        model = self._load()
        there = added_labels(model)
        if self.list:
            out.print(_table(there) if there else "no label was added to this model")
            return
        names = self.labels or tuple(one.label for one in there)
        if not names:
            raise UsageError(f"no label was added to {self.model}; name those that you want to remove")
        self._save(remove_labels(model, names), out)
        out.print(f"removed: {len(set(names)):,} labels", markup=False)


@dataclass(frozen=True, kw_only=True)
class Update(Growing):
    """Teach a model further documents. Clusters that they have labels in go on learning, all others stay as they are.

    Try it: labelwise update my-model new-documents.jsonl
    """

    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """Documents with labels of the model, any data that labelwise reads."""
    split: str = "train"
    """The split of DATA, where it is a folder of splits."""
    format: Format | None = None
    """The format of DATA; found by looking if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Read, learn, save, tell."""
        model = self._load()
        options = asdict(self.read)
        data = load_dataset(self.data, self.split, format=self.format, on_event=show.on_event, **options)
        unknown = set(data.labels) - set(model.labels_)
        if unknown:
            show.remark(
                f"labels that the model does not have: {len(unknown):,}, passed over (see labelwise add-labels)"
            )
        updated = update(model, data, on_event=show.on_event)
        self._save(updated, out)
        last = updated.report_.updates[-1]
        out.print(f"learnt from: {last.documents:,} documents with {last.labels:,} labels", markup=False)


def _table(added: list[AddedLabel]) -> Table:
    table = Table(show_edge=False)
    table.add_column("added label")
    table.add_column("examples", justify="right")
    for one in added:
        table.add_row(one.label, str(one.examples))
    return table
