"""Spherical k-means: scores of labels against centres, sums of labels, and the rows of a node in compact form."""

import numpy as np

from labelwise.engines.kernel_cache import njit


@njit(cache=True, nogil=True)
def gather_rows(rows, indptr, indices, data, counts):
    """Copy some rows, their columns numbered anew, so that the work on them touches little memory.

    Columns that a single row has are folded into one, whose value is their length: products among the rows stay what
    they are, and a row has at most one such column of its own.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    counts : (n_features,) int32, all zero, and zero again afterwards

    Returns
    -------
    new_indptr : (n_rows + 1,) int64
    new_indices : (nnz,) uint32
    new_data : (nnz,) float32
    n_columns : the new width
    """
    n_entries = 0
    for row in rows:
        cols = indices[indptr[row] : indptr[row + 1]]
        n_entries += cols.size
        for k in range(cols.size):
            counts[cols[k]] += 1
    new_indptr = np.zeros(rows.size + 1, np.int64)
    new_indices = np.empty(n_entries + rows.size, np.uint32)
    new_data = np.empty(n_entries + rows.size, np.float32)
    n_columns = n_done = 0
    for i in range(rows.size):
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        own = 0.0
        for k in range(cols.size):
            count = counts[cols[k]]
            if count == 1:
                own += np.float64(vals[k]) * vals[k]
                continue
            if count > 1:  # met for the first time: from now on the new number, as a negative one
                count = -1 - n_columns
                counts[cols[k]] = count
                n_columns += 1
            new_indices[n_done] = -1 - count
            new_data[n_done] = vals[k]
            n_done += 1
        if own > 0.0:
            new_indices[n_done] = n_columns
            new_data[n_done] = np.sqrt(own)
            n_columns += 1
            n_done += 1
        new_indptr[i + 1] = n_done
    if 8 * n_entries > counts.size:
        counts[:] = 0
    else:
        for row in rows:
            cols = indices[indptr[row] : indptr[row + 1]]
            for k in range(cols.size):
                counts[cols[k]] = 0
    return new_indptr, new_indices[:n_done], new_data[:n_done], n_columns


@njit(cache=True, nogil=True, fastmath=True)
def score_rows(rows, indptr, indices, data, direction, scores_out):
    """Products of sparse rows with one dense vector.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    direction : (n_features,) float32
    scores_out : (n_rows,) float32
    """
    for i in range(rows.size):
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        score = np.float32(0.0)
        for k in range(cols.size):
            score += vals[k] * direction[cols[k]]
        scores_out[i] = score


@njit(cache=True, nogil=True)
def add_rows(rows, indptr, indices, data, weights, sums_out):
    """Add sparse rows, each times its weight, to a dense vector.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    weights : (n_rows,) float32; rows of weight zero cost nothing
    sums_out : (n_features,) float32
    """
    for i in range(rows.size):
        weight = weights[i]
        if weight == 0.0:
            continue
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        for k in range(cols.size):
            sums_out[cols[k]] += weight * vals[k]


@njit(cache=True, nogil=True, fastmath=True)
def score_dense(rows, Z, direction, scores_out):
    """`score_rows` for dense rows, Z of (n_labels, n_features) float32."""
    for i in range(rows.size):
        vals = Z[rows[i]]
        score = np.float32(0.0)
        for k in range(vals.size):
            score += vals[k] * direction[k]
        scores_out[i] = score


@njit(cache=True, nogil=True)
def add_dense(rows, Z, weights, sums_out):
    """`add_rows` for dense rows, Z of (n_labels, n_features) float32."""
    for i in range(rows.size):
        weight = weights[i]
        if weight == 0.0:
            continue
        vals = Z[rows[i]]
        for k in range(vals.size):
            sums_out[k] += weight * vals[k]


@njit(cache=True, nogil=True, fastmath=True)
def aim(left, total, direction_out):
    """The difference of two normalised centres, the first the sum `left`, the second the rest of `total`.

    Parameters
    ----------
    left, total : (n_features,) float32
    direction_out : (n_features,) float32

    Returns
    -------
    objective : the sum of the cosines of all members to their centre, members being of length one
    """
    a = b = 0.0
    for k in range(left.size):
        rest = total[k] - left[k]
        a += left[k] * left[k]
        b += rest * rest
    a, b = np.sqrt(a), np.sqrt(b)
    scale = np.float32(1.0 / a) if a > 0.0 else np.float32(0.0)
    rest_scale = np.float32(1.0 / b) if b > 0.0 else np.float32(0.0)
    for k in range(left.size):
        direction_out[k] = left[k] * scale - (total[k] - left[k]) * rest_scale
    return a + b


@njit(cache=True, nogil=True)
def score_block(rows, indptr, indices, data, centres, scores_out):
    """Products of sparse rows with several vectors that lie side by side.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    centres : (n_features, n_block) float32
    scores_out : (n_rows, n_block) float32
    """
    for i in range(rows.size):
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        out = scores_out[i]
        out[:] = 0.0
        for k in range(cols.size):
            centre, value = centres[cols[k]], vals[k]
            for c in range(out.size):
                out[c] += value * centre[c]


@njit(cache=True, nogil=True)
def score_block_dense(rows, Z, centres, scores_out):
    """`score_block` for dense rows, Z of (n_labels, n_features) float32."""
    for i in range(rows.size):
        vals = Z[rows[i]]
        out = scores_out[i]
        out[:] = 0.0
        for k in range(vals.size):
            centre, value = centres[k], vals[k]
            for c in range(out.size):
                out[c] += value * centre[c]


@njit(cache=True, nogil=True)
def sum_clusters(rows, indptr, indices, data, clusters, first, centres_out):
    """Add each sparse row to the column of its cluster.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    clusters : (n_rows,) cluster of each row
    first : the cluster of the first column; rows of clusters that have no column are left out
    centres_out : (n_features, n_block) float32
    """
    for i in range(rows.size):
        c = clusters[i] - first
        if c < 0 or c >= centres_out.shape[1]:
            continue
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        for k in range(cols.size):
            centres_out[cols[k], c] += vals[k]


@njit(cache=True, nogil=True)
def sum_clusters_dense(rows, Z, clusters, first, centres_out):
    """`sum_clusters` for dense rows, Z of (n_labels, n_features) float32."""
    for i in range(rows.size):
        c = clusters[i] - first
        if c < 0 or c >= centres_out.shape[1]:
            continue
        vals = Z[rows[i]]
        for k in range(vals.size):
            centres_out[k, c] += vals[k]


@njit(cache=True, nogil=True)
def normalize_columns(centres_out):
    """Scale the columns of a block to length one; columns of zeros stay."""
    squares = np.zeros(centres_out.shape[1], np.float64)
    for k in range(centres_out.shape[0]):
        row = centres_out[k]
        for c in range(row.size):
            squares[c] += row[c] * row[c]
    for c in range(squares.size):
        squares[c] = 1.0 / np.sqrt(squares[c]) if squares[c] > 0.0 else 0.0
    scales = squares.astype(np.float32)
    for k in range(centres_out.shape[0]):
        row = centres_out[k]
        for c in range(row.size):
            row[c] *= scales[c]


@njit(cache=True, nogil=True)
def exchange(scores, clusters_out):
    """Let clusters exchange members, pair by pair, while both together gain; sizes stay.

    For each pair of clusters the members that would gain most by changing over are matched in order.

    Parameters
    ----------
    scores : (n_rows, n_clusters) float32, how well each row fits each cluster
    clusters_out : (n_rows,) int32, cluster of each row, changed in place

    Returns
    -------
    n_moved : rows that changed over, each counted as often as it did
    """
    n_rows, n_clusters = scores.shape
    sizes = np.zeros(n_clusters, np.int64)
    for i in range(n_rows):
        sizes[clusters_out[i]] += 1
    members = np.empty((n_clusters, sizes.max()), np.int64)
    sizes[:] = 0
    for i in range(n_rows):
        c = clusters_out[i]
        members[c, sizes[c]] = i
        sizes[c] += 1
    n_moved = 0
    for a in range(n_clusters):
        for b in range(a + 1, n_clusters):
            out, back = members[a, : sizes[a]], members[b, : sizes[b]]
            if not out.size or not back.size:
                continue
            loss = np.empty(out.size, np.float32)
            for k in range(out.size):
                loss[k] = scores[out[k], a] - scores[out[k], b]
            loss_back = np.empty(back.size, np.float32)
            for k in range(back.size):
                loss_back[k] = scores[back[k], b] - scores[back[k], a]
            if loss.min() + loss_back.min() >= -1e-6:
                continue
            order = np.argsort(loss, kind="mergesort")
            order_back = np.argsort(loss_back, kind="mergesort")
            for k in range(min(out.size, back.size)):
                i, j = order[k], order_back[k]
                if loss[i] + loss_back[j] >= -1e-6:  # nothing, but for rounding
                    break
                out[i], back[j] = back[j], out[i]
                n_moved += 2
    for c in range(n_clusters):
        for k in range(sizes[c]):
            clusters_out[members[c, k]] = c
    return n_moved


@njit(cache=True, nogil=True)
def halve(indptr, indices, data, width, n_left, share, pairs, iterations):
    """Balanced 2-means of all rows of a small node, in one call: threads that meet for every step wait too long.

    The same steps as in `index.bisect`, where they are explained.

    Parameters
    ----------
    indptr, indices, data : CSR rows, indices as uint32; or two arrays of any kind and a dense (n_rows, width) float32
    width : length of a row
    n_left : rows wanted on the left, more than none and less than all
    share : (n_share,) int64, the rows on which trials are made, or all
    pairs : (n_trials, 2) two places in `share` for each trial to start from
    iterations : (2,) of a trial, and of the whole

    Returns
    -------
    left : (n_rows,) bool
    """
    n_rows = data.shape[0] if data.ndim == 2 else indptr.size - 1
    n_share_left = n_left
    if share.size < n_rows:
        n_share_left = min(max(np.int64(np.rint(share.size * n_left / n_rows)), 1), share.size - 1)
    start = np.zeros(width, np.float32)
    best = -1.0
    for trial in range(pairs.shape[0]):
        weights = np.zeros(share.size, np.float32)
        weights[pairs[trial, 0]] = 1.0
        weights[pairs[trial, 1]] = -1.0
        direction = np.zeros(width, np.float32)
        _add(share, indptr, indices, data, weights, direction)
        _score(share, indptr, indices, data, direction, weights)
        weights -= weights.mean()
        direction[:] = 0.0
        _add(share, indptr, indices, data, weights, direction)
        _, objective = _two_means(share, indptr, indices, data, n_share_left, direction, iterations[0])
        if objective > best:
            best, start = objective, direction
    left, _ = _two_means(np.arange(n_rows), indptr, indices, data, n_left, start, iterations[1])
    return left


@njit(cache=True, nogil=True)
def _two_means(rows, indptr, indices, data, n_left, direction_out, iterations):
    total = np.zeros_like(direction_out)
    _add(rows, indptr, indices, data, np.ones(rows.size, np.float32), total)
    centre = np.zeros_like(direction_out)
    left = np.zeros(rows.size, np.bool_)
    scores, moves = np.empty(rows.size, np.float32), np.empty(rows.size, np.float32)
    objective = 0.0
    for _ in range(iterations):
        _score(rows, indptr, indices, data, direction_out, scores)
        threshold = np.partition(scores, rows.size - n_left)[rows.size - n_left]
        n_ties = n_left
        for i in range(rows.size):
            if scores[i] > threshold:
                n_ties -= 1
        moved = False
        for i in range(rows.size):
            now = scores[i] > threshold
            if scores[i] == threshold and n_ties > 0:
                now = True
                n_ties -= 1
            moves[i] = np.float32(now) - np.float32(left[i])
            moved = moved or now != left[i]
            left[i] = now
        if not moved:
            break
        _add(rows, indptr, indices, data, moves, centre)
        objective = aim(centre, total, direction_out)
    return left, objective


@njit(cache=True, nogil=True)
def _score(rows, indptr, indices, data, direction, scores_out):
    if data.ndim == 2:
        score_dense(rows, data, direction, scores_out)
    else:
        score_rows(rows, indptr, indices, data, direction, scores_out)


@njit(cache=True, nogil=True)
def _add(rows, indptr, indices, data, weights, sums_out):
    if data.ndim == 2:
        add_dense(rows, data, weights, sums_out)
    else:
        add_rows(rows, indptr, indices, data, weights, sums_out)
