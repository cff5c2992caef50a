"""Rankings judged against the truth: best entries of a row, hits, gains at several cut-offs.

Rows are flat: a ranking is (indptr, labels), the labels of document i best first in
``labels[indptr[i]:indptr[i + 1]]``; the truth is (indptr, indices) with sorted, distinct indices in every row.
Indices are unsigned views, indptr is int64.
"""

import numpy as np

from labelwise.engines.kernel_cache import njit
from labelwise.types import Floats, Ints

# What `gather_gains` sums over the first k predictions of a document, in the order of its second axis.
PREDICTED, HITS, DCG, WEIGHT, WEIGHTED_DCG = range(5)


@njit(cache=True, nogil=True)
def rank_rows(indptr: Ints, indices: Ints, data: Floats, best_indptr: Ints, best_out: Ints) -> None:
    """Write the positions (in `data`) of each row's best entries, best first; ties go to the lower index.

    Row i gets ``best_indptr[i + 1] - best_indptr[i]`` of them, at most as many as it has. Insertion into a short
    sorted list: made for ten of a hundred, not for a thousand of a thousand.
    """
    for i in range(indptr.size - 1):
        start = indptr[i]
        cols, vals = indices[start : indptr[i + 1]], data[start : indptr[i + 1]]
        best = best_out[best_indptr[i] : best_indptr[i + 1]]
        if best.size == 0:
            continue
        filled = 0
        for j in range(cols.size):
            col, val = cols[j], vals[j]
            place = filled
            if filled == best.size:
                worst = best[filled - 1]
                if vals[worst] > val or (vals[worst] == val and cols[worst] < col):
                    continue
                place = filled - 1
            else:
                filled += 1
            while place > 0:
                above = best[place - 1]
                if vals[above] > val or (vals[above] == val and cols[above] < col):
                    break
                best[place] = above
                place -= 1
            best[place] = j
        for j in range(best.size):
            best[j] += start


@njit(cache=True, nogil=True)
def mark_hits(indptr: Ints, indices: Ints, best_indptr: Ints, best_labels: Ints, hits_out: Ints) -> None:
    """Write 1 for every ranked label that is among the true labels of its document, 0 for the others."""
    for i in range(indptr.size - 1):
        truth = indices[indptr[i] : indptr[i + 1]]
        labels = best_labels[best_indptr[i] : best_indptr[i + 1]]
        hits = hits_out[best_indptr[i] : best_indptr[i + 1]]
        for j in range(labels.size):
            label = labels[j]
            low, high = 0, truth.size
            while low < high:
                middle = (low + high) // 2
                if truth[middle] < label:
                    low = middle + 1
                else:
                    high = middle
            hits[j] = low < truth.size and truth[low] == label


@njit(cache=True, nogil=True)
def gather_gains(
    best_indptr: Ints,
    best_labels: Ints,
    hits: Ints,
    scope: Ints,
    weights: Floats,
    ks: Ints,
    gains_out: Floats,
) -> None:
    """Add up what each document's first k predictions earn, for every k and apart for every scope of labels.

    Parameters
    ----------
    scope, weights
        (n_labels,) number of the scope (bucket) of each label, and its inverse propensity.
    ks
        Cut-offs, ascending.
    gains_out
        (n_scopes, 5, n_ks, n_docs), zero at the start; second axis: PREDICTED, HITS, DCG, WEIGHT, WEIGHTED_DCG.
    """
    for i in range(best_indptr.size - 1):
        labels = best_labels[best_indptr[i] : best_indptr[i + 1]]
        hit = hits[best_indptr[i] : best_indptr[i + 1]]
        first = 0  # ks[first:] are the cut-offs that still see this rank
        for rank in range(labels.size):
            while first < ks.size and ks[first] <= rank:
                first += 1
            if first == ks.size:
                break
            label = labels[rank]
            gains = gains_out[scope[label]]
            for cut in range(first, ks.size):
                gains[PREDICTED, cut, i] += 1.0
            if hit[rank]:
                discount, weight = 1.0 / np.log2(rank + 2.0), weights[label]
                for cut in range(first, ks.size):
                    gains[HITS, cut, i] += 1.0
                    gains[DCG, cut, i] += discount
                    gains[WEIGHT, cut, i] += weight
                    gains[WEIGHTED_DCG, cut, i] += weight * discount


@njit(cache=True, nogil=True)
def gather_best(indptr: Ints, indices: Ints, weights: Floats, ks: Ints, best_out: Floats) -> None:
    """Add up the weights of the best possible ranking: the true labels, heaviest first.

    best_out: (2, n_ks, n_docs); plain sums of the first k weights, and the same discounted by rank.
    """
    longest = 0
    for i in range(indptr.size - 1):
        longest = max(longest, indptr[i + 1] - indptr[i])
    heaviest = np.zeros(min(ks[-1], longest))
    for i in range(indptr.size - 1):
        truth = indices[indptr[i] : indptr[i + 1]]
        filled = 0
        for j in range(truth.size):
            weight = weights[truth[j]]
            if filled < heaviest.size:
                place = filled
                filled += 1
            elif weight > heaviest[filled - 1]:
                place = filled - 1
            else:
                continue
            while place > 0 and heaviest[place - 1] < weight:
                heaviest[place] = heaviest[place - 1]
                place -= 1
            heaviest[place] = weight
        total, discounted, rank = 0.0, 0.0, 0
        for cut in range(ks.size):
            while rank < min(ks[cut], filled):
                total += heaviest[rank]
                discounted += heaviest[rank] / np.log2(rank + 2.0)
                rank += 1
            best_out[0, cut, i], best_out[1, cut, i] = total, discounted


@njit(cache=True, nogil=True)
def count_truth(indptr: Ints, indices: Ints, scope: Ints, sizes_out: Ints) -> None:
    """Add each document's number of true labels to sizes_out (n_scopes, n_docs), apart for every scope."""
    for i in range(indptr.size - 1):
        truth = indices[indptr[i] : indptr[i + 1]]
        for j in range(truth.size):
            sizes_out[scope[truth[j]], i] += 1


@njit(cache=True, nogil=True)
def add_weighted(times: Floats, rows: Floats, sums_out: Floats) -> None:
    """Add the matrix product of times (n_draws, n_docs) and rows (n_docs, n_columns) to sums_out, a float64.

    Half as fast as BLAS on a quiet core, but BLAS brings its own threads: on a busy machine they wait for each
    other ten times longer than they work, and the last digits depend on how many there are.
    """
    n_docs, n_columns = rows.shape
    part = np.zeros(n_columns, dtype=rows.dtype)
    tile = 256  # rows that stay in the cache for all draws; and float32 sums no further
    for start in range(0, n_docs, tile):
        end = min(start + tile, n_docs)
        for i in range(times.shape[0]):
            weights, sums = times[i], sums_out[i]
            part[:] = 0
            d = start
            while d + 4 <= end:
                w0, w1, w2, w3 = weights[d], weights[d + 1], weights[d + 2], weights[d + 3]
                row0, row1, row2, row3 = rows[d], rows[d + 1], rows[d + 2], rows[d + 3]
                for c in range(n_columns):
                    part[c] += (w0 * row0[c] + w1 * row1[c]) + (w2 * row2[c] + w3 * row3[c])
                d += 4
            while d < end:
                w0, row0 = weights[d], rows[d]
                for c in range(n_columns):
                    part[c] += w0 * row0[c]
                d += 1
            for c in range(n_columns):
                sums[c] += part[c]
