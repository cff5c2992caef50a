"""Similar documents: the documents with a label that are nearest to a text, by embedding or by tf-idf."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise import storage
from labelwise.data import Dataset
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.explanations.context import ExplainContext
from labelwise.explanations.result import Neighbour
from labelwise.types import Csr, OnEvent

if TYPE_CHECKING:
    from labelwise.models.base import Model

KIND = "neighbours"
NEAREST = 3
"""Number of documents that are shown."""
EXCERPT = 300
"""Number of characters of a document that are shown."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Documents as vectors of a model, prepared once for any number of texts; a model itself keeps no documents.

    >>> near = Neighbours.of(model, train)
    >>> explain(model, "council regulation on fishing quotas", neighbours=near)
    """

    Y: Csr
    """(n_docs, n_labels)"""
    labels: list[str]
    vectors: Csr | npt.NDArray[np.float32]
    """(n_docs, n_features) tf-idf, or (n_docs, hidden) embeddings of length one."""
    texts: list[str]
    ids: list[str] | None = None

    @classmethod
    def of(cls, model: Model, dataset: Dataset, *, threads: int | None = None, on_event: OnEvent | None = None) -> Self:
        """Documents as vectors: embeddings where the model has an encoder, tf-idf otherwise.

        For an ensemble, these are the vectors of the first member with an encoder.
        """
        if dataset.texts is None:
            raise DataError("similar documents are shown by their texts, but the data have only features")
        reading = model.reading(dataset.texts, threads=threads, on_event=on_event)
        return cls(dataset.Y, dataset.labels, model.document_vectors(reading), dataset.texts, dataset.ids)

    def nearest(self, model: Model, context: ExplainContext, label: str, top_k: int = NEAREST) -> tuple[Neighbour, ...]:
        """The documents with a label that are nearest to a text, nearest first."""
        column = self._columns.get(label)
        if column is None:
            return ()
        rows = self._by_label.indices[self._by_label.indptr[column] : self._by_label.indptr[column + 1]]
        found = self._cosines(model.document_vectors(context.reading), rows)
        best = np.argsort(-found, kind="stable")[:top_k]
        return tuple(
            Neighbour(_excerpt(self.texts[row]), None if self.ids is None else self.ids[row], float(cosine))
            for row, cosine in zip(rows[best].tolist(), found[best], strict=True)
        )

    def _cosines(self, vector: Any, rows: Any) -> npt.NDArray[np.float64]:
        """The cosines of some documents with a vector of one row."""
        if sp.issparse(self.vectors) != sp.issparse(vector) or self.vectors.shape[1] != vector.shape[1]:
            raise UsageError(
                "these neighbours were prepared with another model; make them with Neighbours.of(model, dataset)"
            )
        there: Any = self.vectors[rows]
        if isinstance(vector, np.ndarray):
            return np.asarray(there @ vector[0], np.float64)
        lengths = np.sqrt(there.multiply(there).sum(axis=1)) * np.linalg.norm(vector.data)
        products = np.asarray((there @ vector.T).toarray(), np.float64).ravel()
        cosines: npt.NDArray[np.float64] = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return cosines

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.labels)}

    @cached_property
    def _by_label(self) -> sp.csc_array:
        return self.Y.tocsc()

    # ------------------------------------------------------------------ keeping

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        sparse = sp.issparse(self.vectors)
        matrices: Any = {"Y": self.Y, **({"X": self.vectors} if sparse else {})}
        with storage.atomic_folder(path, overwrite=True) as folder:
            arrays: Any = {} if sparse else {"E": self.vectors}
            storage.save(folder / "vectors", kind=KIND, arrays=arrays, matrices=matrices)
            for name, lines in (("texts", self.texts), ("labels", self.labels), ("ids", self.ids)):
                if lines is not None:
                    written = "".join(f"{storage.to_json(line)}\n" for line in lines)
                    (folder / f"{name}.jsonl").write_text(written, encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True) -> Self:
        """Read what `save` wrote; vectors are mapped, not copied."""
        path = Path(path)
        saved = storage.load(path / "vectors", kind=KIND, verify=verify)
        try:
            lines = {
                file.stem: [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
                for file in path.glob("*.jsonl")
            }
            Y = saved.matrices["Y"]
            vectors: Any = saved.matrices["X"] if "X" in saved.matrices else saved.arrays["E"]
            self = cls(Y, lines["labels"], vectors, lines["texts"], lines.get("ids"))
            counts = {Y.shape[0], vectors.shape[0], len(self.texts), len(self.ids or self.texts)}
            if len(counts) > 1 or Y.shape[1] != len(self.labels):
                raise ValueError("its parts are of different sizes")
        except (KeyError, ValueError) as err:
            raise StorageError(f"{path} is not complete ({err}); copy or make the neighbours again") from err
        return self


def _excerpt(text: str) -> str:
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1]}…"
