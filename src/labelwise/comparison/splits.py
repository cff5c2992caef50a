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
    """The training and validation documents of the systems, and the documents that they are evaluated on."""

    name: str
    train: Dataset
    validation: Dataset | None
    test: Dataset
    """Its labels begin with those of the training documents; labels of test documents alone follow."""
    generated: bool = False
    """Whether a program made the data, as it did the shop: results on such data prove little."""

    @classmethod
    def read(
        cls,
        path: Path | str,
        *,
        split: str = "test",
        format: Format | None = None,  # noqa: A002
        options: ReadOptions | None = None,
        max_docs: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Read a folder with a training split and the split to evaluate on.

        Parameters
        ----------
        split
            The split that systems are evaluated on.
        max_docs
            Take only this many documents from the start of each split, for a quick try.
        """
        path, options = Path(path), options or ReadOptions()
        known = open_source(path, format=format, options=options).labels_known
        splits = load_splits(path, format=format, on_event=on_event, **asdict(options))
        for wanted in ("train", split):
            if wanted not in splits:
                raise DataError(f"there is no split {wanted!r}; there are: {', '.join(splits)}", path=path)
        if split == "train":
            raise UsageError("systems are not evaluated on the documents that they are trained on; give another split")
        if max_docs is not None:
            splits = {name: part.take(np.arange(min(max_docs, len(part)))) for name, part in splits.items()}
        train = splits["train"]
        # Labels are numbered in the order of reading, training first, so labels of other splits alone come last.
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
        """The name, with a note if the data are generated."""
        return f"{self.name} (generated data)" if self.generated else self.name

    @cached_property
    def Y_train(self) -> Csr:  # noqa: N802
        """(n_train, n_labels of the test split) training labels, for propensities and label frequencies."""
        return self.train.with_labels(self.test.labels).Y

    @cached_property
    def learnt(self) -> str:
        """Fingerprint of the training and validation documents."""
        return fingerprint([_content(self.train), None if self.validation is None else _content(self.validation)])

    @cached_property
    def judged(self) -> str:
        """Fingerprint of the test documents and their label names."""
        return fingerprint(_content(self.test))


def _content(dataset: Dataset) -> dict[str, Any]:
    return {name: value for name, value in vars(dataset).items() if name != "ids"}


def _with_first_labels(dataset: Dataset, n_labels: int) -> Dataset:
    texts = None if dataset.label_texts is None else dataset.label_texts[:n_labels]
    return replace(dataset, Y=Csr(dataset.Y[:, :n_labels]), labels=dataset.labels[:n_labels], label_texts=texts)
