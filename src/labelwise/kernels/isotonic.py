"""Isotonic regression by pooling adjacent violators, and rankings that survive rounding."""

import numpy as np

from labelwise.engines.kernel_cache import njit
from labelwise.types import Floats, Ints


@njit(cache=True, nogil=True)
def pool_violators(hits: Ints, counts: Ints, starts_out: Ints) -> int:
    """Join neighbours until the share hits / counts ascends strictly; return how many blocks remain.

    Block b begins at ``starts_out[b]``. Shares are compared as products of whole numbers, so the blocks are exact.

    Parameters
    ----------
    hits, counts
        (n,) int64, in the order in which shares should ascend; counts above 0.
    starts_out
        (n,) int64; as many are written as there are blocks.
    """
    block_hits, block_counts = np.empty_like(hits), np.empty_like(counts)
    n_blocks = 0
    for i in range(hits.size):
        start, hit, count = i, hits[i], counts[i]
        while n_blocks > 0 and block_hits[n_blocks - 1] * count >= hit * block_counts[n_blocks - 1]:
            n_blocks -= 1
            start = starts_out[n_blocks]
            hit += block_hits[n_blocks]
            count += block_counts[n_blocks]
        starts_out[n_blocks], block_hits[n_blocks], block_counts[n_blocks] = start, hit, count
        n_blocks += 1
    return n_blocks


@njit(cache=True, nogil=True)
def keep_order(indptr: Ints, ranked: Ints, scores: Floats, values_out: Floats) -> None:
    """Lower values by as little as possible until they rank every row as the scores do, equal ones included.

    Parameters
    ----------
    indptr, ranked
        Rows of `ranked`, and the positions of each row's entries by descending score.
    scores, values_out
        By position; values never ascend with the score by more than rounding does.
    """
    for i in range(indptr.size - 1):
        row = ranked[indptr[i] : indptr[i + 1]]
        for j in range(1, row.size):
            above, here = row[j - 1], row[j]
            if scores[here] == scores[above]:
                values_out[here] = values_out[above]
            elif values_out[here] >= values_out[above]:
                values_out[here] = np.nextafter(values_out[above], np.float32(0.0))
