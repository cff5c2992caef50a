"""Which documents a model was trained on, as hashes: an evaluation on them is noticed.

A model keeps the smallest 64-bit hashes of its training documents, at most `MOST` of them. Of a document whose hash is
not above the largest that is kept, they tell whether it was among the training documents; the others count as a sample
tells. The hashes hold no text, but whoever has a model and a text can ask whether the model was trained on it.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise import storage
from labelwise.types import Csr

Hashes = npt.NDArray[np.uint64]
KIND = "seen documents"
MOST = 1 << 15
"""Hashes that are kept, at most: 256 kB."""
FEWEST = 5
"""Documents that a share is told of, at least."""
_LARGEST = np.uint64(2**64 - 1)


class SeenDocuments:
    """Hashes of training documents.

    Parameters
    ----------
    hashes : (n,) ascending, distinct, at most `MOST`
    """

    def __init__(self, hashes: Hashes) -> None:
        self.hashes = hashes

    @classmethod
    def of(cls, documents: list[str] | Csr) -> Self:
        """The hashes of texts, or of rows of features."""
        return cls(np.unique(_hashes(documents))[:MOST])

    def with_more(self, documents: list[str] | Csr) -> SeenDocuments:
        """These hashes and those of further documents."""
        return self.joined(SeenDocuments.of(documents))

    def joined(self, other: SeenDocuments) -> SeenDocuments:
        """The hashes of both; where one of them is not complete, up to where both are."""
        limit = min(self._limit, other._limit)
        both = np.union1d(self.hashes, other.hashes)
        return SeenDocuments(both[both <= limit][:MOST])

    def share(self, documents: list[str] | Csr) -> float | None:
        """The share of documents that are among these, estimated where not all hashes are kept; None for too few."""
        hashes = _hashes(documents)
        known = hashes[hashes <= self._limit]
        return float(np.isin(known, self.hashes).mean()) if len(known) >= FEWEST else None

    @property
    def _limit(self) -> np.uint64:
        """The hash up to which all are kept."""
        return self.hashes[-1] if len(self.hashes) == MOST else _LARGEST

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        storage.save(path, kind=KIND, arrays={"hashes": self.hashes})

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote."""
        arrays = storage.load(path, kind=KIND).checked
        hashes = arrays.take("hashes", np.uint64, (None,))
        if len(hashes) > MOST or not (hashes[1:] > hashes[:-1]).all():
            raise arrays.wrong("hashes", f"has more than {MOST:,} numbers, or they do not rise")
        return cls(hashes)


def _hashes(documents: list[str] | Csr) -> Hashes:
    """The hash of each document that is not empty."""
    contents: Any
    if sp.issparse(documents):
        rows = zip(documents.indptr[:-1].tolist(), documents.indptr[1:].tolist(), strict=True)
        columns, values = documents.indices.astype(np.int64), documents.data.astype(np.float32)
        contents = (columns[a:b].tobytes() + values[a:b].tobytes() for a, b in rows if b > a)
    else:
        contents = (text.encode("utf-8", "surrogatepass") for text in map(str.strip, documents) if text)
    return np.frombuffer(b"".join(blake2b(one, digest_size=8).digest() for one in contents), "<u8")
