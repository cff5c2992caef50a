"""Documents as matchers read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labelwise.features.token_store import TokenStore
from labelwise.types import Csr, Floats


@dataclass(frozen=True, eq=False)
class Documents:
    """What the matcher reads of some documents."""

    tokens: TokenStore
    X: Csr
    """(n_docs, n_features) tf-idf, for the linear term."""
    E: Floats | None = None
    """(n_docs, hidden) embeddings by the pretrained encoder, where they have been computed."""

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, rows: Any) -> Documents:
        """Some of them, in this order."""
        return Documents(self.tokens.take(rows), self.X[rows], None if self.E is None else self.E[rows])
