"""labelwise add-labels, remove-labels, update"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from tyro.conf import Positional, arg

from labelwise.cli.columns import as_trained
from labelwise.cli.command import Command, DeviceOption
from labelwise.cli.show import Show, counted
from labelwise.config import IncrementalConfig
from labelwise.data import Dataset, Format, ReadOptions, load_dataset
from labelwise.engines.allocator import limit_heap_growth
from labelwise.errors import UsageError
from labelwise.incremental import add_labels, added_labels, read_new_labels, remove_labels, update
from labelwise.incremental.new_labels import NewLabel
from labelwise.models.base import Model, load_model
from labelwise.models.training_report import AddedLabel
from labelwise.storage import check_writable
from labelwise.storage.fingerprint import fingerprint
from labelwise.storage.replacing import clean_beside

MAX_LISTED = 20
"""Largest number of added labels that are listed one by one."""


@dataclass(frozen=True, kw_only=True)
class IncrementalCommand(Command):
    """The common options of the three commands."""

    model: Annotated[Path, Positional, arg(metavar="MODEL")]
    """Folder of a trained model of any kind."""
    output: Path | None = None
    """The folder to write. If not given, the new model replaces the old one as soon as it is complete."""
    overwrite: bool = False
    """Replace a model at --output."""

    def _load(self, *, to_change: bool = True, device: str | None = None) -> Model:
        """The model; an error before it is loaded if the changed one could not be saved."""
        if self.output is not None and self.output.exists() and not self.overwrite:
            raise UsageError(f"{self.output} exists already; choose another place, or pass --overwrite")
        if to_change:
            check_writable(self.output or self.model)
            clean_beside(self.output or self.model)
        return load_model(self.model, device=device)

    @property
    def _in_place(self) -> bool:
        """Whether the new model replaces the one that is read."""
        return self.output is None or self.output.resolve() == self.model.resolve()

    def _save(self, model: Model, out: Console) -> None:
        place = self.output or self.model
        model.save(place)
        out.print(f"the model: {place}, {counted(len(model.labels_), 'label')}", markup=False)


@dataclass(frozen=True, kw_only=True)
class AddLabels(IncrementalCommand):
    """Add new labels to a model without training from scratch. All other labels keep their weights.

    LABELS has one JSON object per line. Only "label" is required:

        {"label": "cycling", "text": "bicycles and their riders", "examples": ["a bell for the handlebar", "…"]}

    A label with examples is trained on them, with other documents of its cluster as negatives: those of --data, or
    those stored in the model (labelwise train --growing). A label without examples is found by its text or name.

    A command that was killed can be repeated: labels that it has added already are not added twice.

    Try it: labelwise add-labels my-model new.jsonl --data my-shop --output grown
    """

    labels: Annotated[Path, Positional, arg(metavar="LABELS.jsonl")]
    """The labels to add."""
    data: Path | None = None
    """Documents with labels, in any format that labelwise reads, such as the training documents of the model. Documents
    with a new label are further examples of it; the others are negatives."""
    split: str = "train"
    """The split of --data, where it is a folder of splits."""
    format: Format | None = None
    """Format of --data; detected if not given."""
    device: DeviceOption = None
    """Device of the encoder, if the model has one."""
    growing: IncrementalConfig = field(default_factory=IncrementalConfig)
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Read the labels, add them, save the model, print what was added."""
        model, new = self._load(device=self.device), read_new_labels(self.labels)
        data = None
        if self.data is not None:
            read = as_trained(self.read, model, self.data, show, split=self.split, format=self.format)
            options = asdict(read)
            data = load_dataset(self.data, self.split, format=self.format, on_event=show.on_event, **options)
        request = fingerprint({"labels": new, "data": data and _content(data), "settings": self.growing})
        if self._in_place and _has_labels(model, new, request):
            out.print(f"these labels are in the model already: {self.model}, which stays as it is", markup=False)
            return
        grown = add_labels(model, new, data=data, config=self.growing, on_event=show.on_event)
        added = [replace(one, request=request) for one in added_labels(grown)[-len(new) :]]
        grown.report_.added[-len(new) :] = added
        self._save(grown, out)
        by_text = sum(one.examples == 0 for one in added)
        out.print(f"added: {counted(len(new), 'label')}, {by_text:,} of them by their text alone", markup=False)
        if len(added) <= MAX_LISTED:
            out.print(_table(added))


@dataclass(frozen=True, kw_only=True)
class RemoveLabels(IncrementalCommand):
    """Remove labels from a model. Once all added labels are removed, it predicts exactly as before.

    Try it: labelwise remove-labels grown cycling, or labelwise remove-labels grown --list
    """

    labels: Annotated[tuple[str, ...], Positional, arg(metavar="LABEL")] = ()
    """Names of labels."""
    added: bool = False
    """Remove all labels that were added."""
    list: bool = False
    """List the labels that were added, and change nothing."""

    def run(self, out: Console, show: Show) -> None:
        """List the added labels, or remove labels and save the model."""
        if sum((bool(self.labels), self.added, self.list)) != 1:
            raise UsageError("give the names of labels to remove, or --added for all that were added, or --list")
        model = self._load(to_change=not self.list)
        added = added_labels(model)
        if self.list:
            out.print(_table(added) if added else "no label was added to this model")
            return
        names = self.labels or tuple(one.label for one in added)
        if not names:
            raise UsageError(f"no label was added to {self.model}; name those that you want to remove")
        self._save(remove_labels(model, names), out)
        out.print(f"removed: {counted(len(set(names)), 'label')}", markup=False)


@dataclass(frozen=True, kw_only=True)
class Update(IncrementalCommand):
    """Train a model on further documents. Clusters with labels of these documents are updated, all others stay.

    A command that was killed can be repeated: the model keeps a checksum of the documents that it was updated with, and
    does not learn from them twice.

    Try it: labelwise update my-model new-documents.jsonl
    """

    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """Documents with labels of the model, in any format that labelwise reads."""
    split: str = "train"
    """The split of DATA, where it is a folder of splits."""
    format: Format | None = None
    """Format of DATA; detected if not given."""
    device: DeviceOption = None
    """Device of the encoder, if the model has one."""
    again: bool = False
    """Learn from the documents once more, if the model in this folder was updated with them already."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Read the documents, update the model, save it, print what it was trained on."""
        limit_heap_growth()
        model = self._load(device=self.device)
        read = as_trained(self.read, model, self.data, show, split=self.split, format=self.format)
        options = asdict(read)
        data = load_dataset(self.data, self.split, format=self.format, on_event=show.on_event, **options)
        request = fingerprint(_content(data))
        known = [one.request for one in model.report_.updates]
        if self._in_place and request in known and not self.again:
            out.print(
                f"this update is in the model already: {self.model}, which stays as it is; to learn from the documents "
                "once more, pass --again",
                markup=False,
            )
            return
        unknown = set(data.labels) - set(model.labels_)
        if unknown:
            show.remark(
                f"{counted(len(unknown), 'label')} ignored that the model does not have (see labelwise add-labels)"
            )
        updated = update(model, data, on_event=show.on_event)
        last = updated.report_.updates[-1] = replace(updated.report_.updates[-1], request=request)
        self._save(updated, out)
        documents, labels = counted(last.documents, "document"), counted(last.labels, "label")
        out.print(f"trained on: {documents} with {labels}", markup=False)


def _content(data: Dataset) -> dict[str, Any]:
    """What a model learns from: documents and their labels."""
    return {"documents": data.documents, "labels": data.labels, "Y": data.Y, "label_texts": data.label_texts}


def _has_labels(model: Model, new: list[NewLabel], request: str) -> bool:
    """Whether the same command has added all these labels to the model."""
    added = {one.label: one.request for one in added_labels(model)}
    return bool(new) and all(added.get(one.label) == request for one in new)


def _table(added: list[AddedLabel]) -> Table:
    table = Table(show_edge=False)
    table.add_column("added label")
    table.add_column("examples", justify="right")
    for one in added:
        table.add_row(Text(one.label), str(one.examples))
    return table
