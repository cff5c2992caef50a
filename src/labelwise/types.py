"""The letters of the matrices, explained once, and the types that all packages share.

====== ======================= ==========================================================
letter shape                   meaning
====== ======================= ==========================================================
``X``  n_docs x n_features     document features, sparse or dense
``Y``  n_docs x n_labels       true labels, 0/1; ``Y_pred`` holds top-k scores in that shape
``Z``  n_labels x n_features   label embeddings
``C``  n_labels x n_clusters   which cluster a label belongs to
``M``  n_docs x n_clusters     the clusters of a document's labels, M = Y C
``W``  n_features x n_labels   ranker weights
====== ======================= ==========================================================
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Csr: TypeAlias = sp.csr_array
"""A sparse matrix as functions take and return it; kernels take its arrays (indptr, indices, data)."""

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Ints: TypeAlias = npt.NDArray[np.integer[Any]]

OnEvent: TypeAlias = Callable[[str, Mapping[str, Any]], None]
"""The hook for progress events: called as `on_event(name, values)`."""
