"""The letters of the field, explained once.

====== ======================= ==========================================================
letter shape                   meaning
====== ======================= ==========================================================
``X``  n_docs x n_features     document features, sparse or dense
``Y``  n_docs x n_labels       true labels, 0/1; ``Y_pred`` holds top-k scores in that shape
``Z``  n_labels x n_features   label embeddings
``C``  n_labels x n_clusters   which cluster a label belongs to
``M``  n_docs x n_clusters     which clusters the matcher gives a document
``W``  n_features x n_labels   ranker weights
====== ======================= ==========================================================
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Csr: TypeAlias = sp.csr_array
"""A sparse matrix at the border of a function; inside, kernels see (indptr, indices, data)."""

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Ints: TypeAlias = npt.NDArray[np.integer[Any]]

OnEvent: TypeAlias = Callable[[str, Mapping[str, Any]], None]
"""The hook through which long work shows itself: `on_event(name, values)`."""
