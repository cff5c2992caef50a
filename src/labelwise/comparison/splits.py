"""The data that systems are compared on: training, validation and test documents over one list of labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelwise.data import Dataset, Format, ReadOptions, load_splits
from labelwise.data.detect import open_source
from labelwise.errors import DataError, UsageError
from labelwise.storage.fingerprint import fingerprint
from labelwise.types import Csr, OnEvent


@dataclass(frozen=True, kw_only=True, eq=False)
class Splits:
    """What systems learn from, and what they are judged by."""

    name: str
    train: Dataset
    validation: Dataset | None
    test: Dataset
    """Its labels begin with those of training; what training does not know follows."""
    generated: bool = False
    """Made by a program, as the shop is: figures on such data prove little."""

    @classmethod
    def read(
        cls,
        path: Path | str,
        *,
        split: str = "test",
        format: Format | None = None,  # noqa: A002
        options: ReadOptions | None = None,
        most: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Read a folder with a training split and the split to be judged by.

        Parameters
        ----------
        split
            The split that systems are judged by.
        most
            Take only the first so many documents of each split, to try something out.
        """
        path, options = Path(path), options or ReadOptions()
        known = open_source(path, format=format, options=options).labels_known
        splits = load_splits(path, format=format, on_event=on_event, **asdict(options))
        for wanted in ("train", split):
            if wanted not in splits:
                raise DataError(f"there is no split {wanted!r}; there are: {', '.join(splits)}", path=path)
        if split == "train":
            raise UsageError("systems are not judged by the documents that they learn from; give another split")
        if most is not None:
            splits = {name: part.take(np.arange(min(most, len(part)))) for name, part in splits.items()}
        train = splits["train"]
        # Labels are numbered as they are met, training first: those of other splits alone come last.
        n_labels = train.n_labels if known else int(train.Y.indices.max(initial=-1)) + 1
        validation = splits.get("validation") if split != "validation" else None
        generated = (path / "shop.json").is_file()
        return cls(
            name=path.resolve().name,
            train=_with_first_labels(train, n_labels),
            validation=validation,
            test=splits[split],
            generated=generated,
        )

    @property
    def title(self) -> str:
        """The name, and a warning where the data are generated."""
        return f"{self.name} (generated data)" if self.generated else self.name

    @cached_property
    def Y_train(self) -> Csr:  # noqa: N802
        """(n_train, n_labels of the test split) training labels, for propensities and label frequencies."""
        return self.train.with_labels(self.test.labels).Y

    @cached_property
    def learnt(self) -> str:
        """Fingerprint of all that a system learns from."""
        return fingerprint([_content(self.train), None if self.validation is None else _content(self.validation)])

    @cached_property
    def judged(self) -> str:
        """Fingerprint of the documents that systems are judged by, and of the names of their labels."""
        return fingerprint(_content(self.test))


def _content(dataset: Dataset) -> dict[str, Any]:
    return {name: value for name, value in vars(dataset).items() if name != "ids"}


def _with_first_labels(dataset: Dataset, n_labels: int) -> Dataset:
    texts = None if dataset.label_texts is None else dataset.label_texts[:n_labels]
    return replace(dataset, Y=Csr(dataset.Y[:, :n_labels]), labels=dataset.labels[:n_labels], label_texts=texts)
