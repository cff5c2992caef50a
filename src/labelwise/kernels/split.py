"""Documents are chosen for validation so that every label keeps a training document."""

from typing import Any

import numpy as np

from labelwise.engines.kernel_cache import njit
from labelwise.types import Ints


@njit(cache=True, nogil=True)
def draw_validation(indptr: Ints, indices: Ints, counts: Ints, order: Ints, wanted: int) -> Any:
    """Mark documents for validation, in `order`, until there are enough.

    Parameters
    ----------
    indptr, indices
        Labels of the documents.
    counts
        (n_labels,) documents of each label.
    order
        (n_docs,) a permutation: the order in which documents are tried.
    wanted
        How many documents to mark.

    Returns
    -------
    aside
        (n_docs,) bool; no label of a marked document has all its documents marked.
    """
    left = counts.copy()
    aside = np.zeros(order.size, dtype=np.bool_)
    n_aside = 0
    for doc in order:
        if n_aside == wanted:
            break
        labels = indices[indptr[doc] : indptr[doc + 1]]
        spare = True
        for label in labels:
            if left[label] <= 1:
                spare = False
                break
        if spare:
            for label in labels:
                left[label] -= 1
            aside[doc] = True
            n_aside += 1
    return aside
