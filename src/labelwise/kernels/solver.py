"""Linear models of many labels at once, by dual coordinate descent.

The weights of a block's labels lie side by side, ``W[feature, label]``: one pass over a document's features serves
all labels, and the loop over labels, contiguous, is the one the compiler vectorises. Every label has its own problem

    min_w  1/2 |w|² + Σ_i cost_i · loss(y_i w·x_i)

and its own dual variables (Hsieh et al., ICML 2008, for the hinge losses; Yu, Huang and Lin, Machine Learning 2011,
for the logistic loss). Labels that have converged are taken out of the block, documents that no label can learn from
are passed over, and both are looked at once more at the end.
"""

import numpy as np

from labelwise.engines.kernel_cache import njit

SQUARED_HINGE, HINGE, LOGISTIC = 0, 1, 2
LANES = 8
IDLE = np.float32(0.1)  # share of the tolerance below which a step is not worth the writing

_FAST = {"contract", "nsz", "arcp"}  # no reassociation: the result is the same on every machine with FMA
_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(1e-30)


@njit(cache=True, nogil=True)
def gather_rows(indptr, indices, data, rows, place_out):
    """The sparse rows `rows` over the features they use, renumbered so that their weights lie close together.

    Parameters
    ----------
    indptr, indices, data : CSR, indices uint32
    rows : (n_rows,) int64
    place_out : (n_features,) int32, all -1 before and after

    Returns
    -------
    indptr : (n_rows + 1,) int64
    columns : (nnz,) uint32, local feature numbers in order of first use
    values : (nnz,) float32
    features : (n_local,) uint32, the feature of each local number
    """
    local_indptr = np.zeros(rows.size + 1, np.int64)
    for i in range(rows.size):
        local_indptr[i + 1] = local_indptr[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    columns = np.empty(local_indptr[rows.size], np.uint32)
    values = np.empty(local_indptr[rows.size], np.float32)
    features = np.empty(min(place_out.size, local_indptr[rows.size]), np.uint32)
    n_local = 0
    for i in range(rows.size):
        begin, end = indptr[rows[i]], indptr[rows[i] + 1]
        out = local_indptr[i]
        for k in range(begin, end):
            feature = indices[k]
            local = place_out[feature]
            if local < 0:
                local = n_local
                place_out[feature] = local
                features[local] = feature
                n_local += 1
            columns[out] = local
            values[out] = data[k]
            out += 1
    for local in range(n_local):
        place_out[features[local]] = -1
    return local_indptr, columns, values, features[:n_local].copy()


@njit(cache=True, nogil=True, fastmath=_FAST)
def _score(columns, values, dense, W, scores_out):
    """Scores of one document for all labels of the block: its sparse features, then its dense ones."""
    width = scores_out.size
    n_dense = dense.size
    first = W.shape[0] - n_dense
    for c in range(width):
        scores_out[c] = _ZERO
    k = 0
    # Four features at a time: the scores are loaded and stored once for four rows of weights.
    while k + 4 <= columns.size:
        w0, w1, w2, w3 = W[columns[k]], W[columns[k + 1]], W[columns[k + 2]], W[columns[k + 3]]
        v0, v1, v2, v3 = values[k], values[k + 1], values[k + 2], values[k + 3]
        for c in range(width):
            scores_out[c] += v0 * w0[c] + v1 * w1[c] + v2 * w2[c] + v3 * w3[c]
        k += 4
    while k < columns.size:
        w0, v0 = W[columns[k]], values[k]
        for c in range(width):
            scores_out[c] += v0 * w0[c]
        k += 1
    j = 0
    while j + 4 <= n_dense:
        w0, w1, w2, w3 = W[first + j], W[first + j + 1], W[first + j + 2], W[first + j + 3]
        v0, v1, v2, v3 = dense[j], dense[j + 1], dense[j + 2], dense[j + 3]
        for c in range(width):
            scores_out[c] += v0 * w0[c] + v1 * w1[c] + v2 * w2[c] + v3 * w3[c]
        j += 4
    while j < n_dense:
        w0, v0 = W[first + j], dense[j]
        for c in range(width):
            scores_out[c] += v0 * w0[c]
        j += 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add(columns, values, dense, steps, W_out):
    """Add steps[label] times the document to every label's weights."""
    width = steps.size
    n_dense = dense.size
    first = W_out.shape[0] - n_dense
    n_moved = 0
    moved = np.empty(8, np.int64)
    for c in range(width):
        if steps[c] != _ZERO:
            if n_moved < 8:
                moved[n_moved] = c
            n_moved += 1
    if n_moved == 0:
        return
    if n_moved <= 8 and 8 * n_moved <= width:  # few labels moved: leave the others' weights alone
        for m in range(n_moved):
            c = moved[m]
            step = steps[c]
            for k in range(columns.size):
                W_out[columns[k], c] += values[k] * step
            for j in range(n_dense):
                W_out[first + j, c] += dense[j] * step
        return
    for k in range(columns.size):
        w, v = W_out[columns[k]], values[k]
        for c in range(width):
            w[c] += v * steps[c]
    for j in range(n_dense):
        w, v = W_out[first + j], dense[j]
        for c in range(width):
            w[c] += v * steps[c]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _hinge_steps(scores, signs, square, cost, squared, idle, alpha_out, steps_out, lowest_out, highest_out):
    """One coordinate step of every label for one document; returns whether any label can still learn from it.

    `cost` is (positive, negative). lowest_out and highest_out gather each label's projected gradients.
    """
    diagonal_pos = np.float32(0.5) / cost[0] if squared else _ZERO
    diagonal_neg = np.float32(0.5) / cost[1] if squared else _ZERO
    limit_pos = np.float32(3e38) if squared else cost[0]
    limit_neg = np.float32(3e38) if squared else cost[1]
    useful = 0
    for c in range(scores.size):
        positive = signs[c] > 0
        y = _ONE if positive else -_ONE
        diagonal = diagonal_pos if positive else diagonal_neg
        limit = limit_pos if positive else limit_neg
        old = alpha_out[c]
        gradient = y * scores[c] - _ONE + diagonal * old
        curve = max(square + diagonal, _LEAST)  # above 0 for an empty document too
        new = min(max(old - gradient / curve, _ZERO), limit)
        projected = gradient
        if old <= _ZERO:
            projected = min(gradient, _ZERO)
        elif old >= limit:
            projected = max(gradient, _ZERO)
        if signs[c] == 0:
            projected = _ZERO
        lowest_out[c] = min(lowest_out[c], projected)
        highest_out[c] = max(highest_out[c], projected)
        if abs(projected) < idle:
            new = old
        alpha_out[c] = new
        steps_out[c] = (new - old) * y
        # within the margin's neighbourhood, or holding weight: to be looked at again
        useful += (signs[c] != 0) & ((new > _ZERO) | (gradient < -idle))
    return useful > 0


@njit(cache=True, nogil=True)
def _logistic_steps(scores, signs, square, cost, alpha_out, steps_out, lowest_out, highest_out):
    """One coordinate step of every label for one document, logistic loss; alpha in (0, cost).

    Newton's method on the one-variable problem, on whichever of alpha and cost - alpha is smaller (Yu et al., alg. 5).
    """
    for c in range(scores.size):
        steps_out[c] = _ZERO
        if signs[c] == 0:
            continue
        positive = signs[c] > 0
        y = 1.0 if positive else -1.0
        limit = np.float64(cost[0] if positive else cost[1])
        old = np.float64(alpha_out[c])
        if old <= 0.0:
            old = np.float64(min(0.001 * limit, 1e-8))
        old = min(old, limit * (1.0 - 1e-9))  # rounding may have carried it to the limit
        a, b = np.float64(square), np.float64(y * scores[c])
        gradient = b + np.log(old / (limit - old))
        # z is the smaller of the two shares; its own linear term changes sign with the choice
        flip = b + 0.5 * a * (limit - 2.0 * old) < 0.0
        sign = -1.0 if flip else 1.0
        start = limit - old if flip else old
        z = start
        if limit - z < 0.5 * limit:
            z = 0.1 * z
        for _ in range(20):
            slope = a * (z - start) + sign * b + np.log(z / (limit - z))
            if abs(slope) < 1e-3:
                break
            curve = a + limit / (z * (limit - z))
            moved = z - slope / curve
            z = 0.1 * z if moved <= 0.0 else min(moved, limit * (1.0 - 1e-9))
        new = limit - z if flip else z
        step = np.float32(new) - alpha_out[c]
        if step != _ZERO:  # a gradient that rounding keeps from being followed does not count
            lowest_out[c] = min(lowest_out[c], np.float32(gradient))
            highest_out[c] = max(highest_out[c], np.float32(gradient))
        steps_out[c] = step * np.float32(y)
        alpha_out[c] = np.float32(new)
    return True


@njit(cache=True, nogil=True)
def _shuffle(order_out, n, state):
    """Shuffle the first n entries; returns the generator's next state (xorshift64)."""
    for i in range(n - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.int64(state % np.uint64(i + 1))
        order_out[i], order_out[j] = order_out[j], order_out[i]
    return state


@njit(cache=True, nogil=True)
def _columns_of(matrix, columns):
    """A copy of some columns, rows contiguous."""
    copy = np.empty((matrix.shape[0], columns.size), matrix.dtype)
    for i in range(matrix.shape[0]):
        row, source = copy[i], matrix[i]
        for c in range(columns.size):
            row[c] = source[columns[c]]
    return copy


@njit(cache=True, nogil=True)
def _filled(labels, which):
    """The labels at the places `which`, followed by others until their number is a multiple of LANES."""
    wanted = np.zeros(labels.size, np.bool_)
    wanted[which] = True
    missing = -which.size % LANES
    for c in range(labels.size):
        if missing > 0 and not wanted[c]:
            wanted[c] = True
            missing -= 1
    return labels[wanted]


@njit(cache=True, nogil=True)
def _put_columns(matrix, columns, matrix_out):
    for i in range(matrix.shape[0]):
        row, source = matrix_out[i], matrix[i]
        for c in range(columns.size):
            row[columns[c]] = source[c]


@njit(cache=True, nogil=True)
def _sweep(features, signs, squares, costs, order, loss, idle, alpha_out, W_out, spread_out, useful_out):
    """One pass over the documents `order`; spread_out gets each label's range of projected gradients."""
    indptr, columns, values, dense, rows = features
    width = W_out.shape[1]
    scores = np.empty(width, np.float32)
    steps = np.empty(width, np.float32)
    lowest = np.zeros(width, np.float32)
    highest = np.zeros(width, np.float32)
    for at in range(order.size):
        i = order[at]
        cols, vals, den = columns[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]], dense[rows[i]]
        _score(cols, vals, den, W_out, scores)
        if loss == LOGISTIC:
            useful = _logistic_steps(scores, signs[i], squares[i], costs[i], alpha_out[i], steps, lowest, highest)
        else:
            useful = _hinge_steps(
                scores,
                signs[i],
                squares[i],
                costs[i],
                loss == SQUARED_HINGE,
                idle,
                alpha_out[i],
                steps,
                lowest,
                highest,
            )
        useful_out[i] = useful
        _add(cols, vals, den, steps, W_out)
    for c in range(width):
        spread_out[c] = highest[c] - lowest[c]


@njit(cache=True, nogil=True)
def solve_block(features, signs, costs, loss, stop, seed, alpha_out, W_out):
    """Train all labels of a block.

    Parameters
    ----------
    features : (indptr, columns, values, dense, rows)
        Sparse rows over local features, as `gather_rows` gives them; (n, n_dense) float32 beside them, of which those
        of the documents are `rows`: they are long, so they are not copied together.
    signs : (n_docs, n_labels) int8, above 0 where the document has the label, below 0 where it has not; 0 takes no part
        and fills the block up to a multiple of `LANES`, which leaves no remainder to the vector loops
    costs : (n_docs, 2) float32, of a violation as a positive and as a negative document
    loss : SQUARED_HINGE, HINGE or LOGISTIC
    stop : (tolerance, max_sweeps)
        Stop when the projected gradients of a label span less than the tolerance, liblinear's criterion.
    seed : int
    alpha_out : (n_docs, n_labels) float32, dual variables; zeros, or those of a nearby problem
    W_out : (n_local + n_dense, n_labels) float32, zeros, or the weights that belong to alpha_out

    Returns
    -------
    n_sweeps : the number of passes over the documents
    """
    indptr, _, values, dense, rows = features
    tolerance, max_sweeps = stop
    n_docs, n_labels = signs.shape
    squares = np.zeros(n_docs, np.float32)
    for i in range(n_docs):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += values[k] * values[k]
        for j in range(dense.shape[1]):
            total += dense[rows[i], j] * dense[rows[i], j]
        squares[i] = total
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    order = np.arange(n_docs)
    n_visible = n_docs
    labels = np.arange(n_labels)  # the labels still worked on
    W, alpha, sign = W_out, alpha_out, signs  # of these labels only
    apart = False  # whether these are copies
    settled = np.zeros(n_labels, np.bool_)  # converged with all documents looked at
    spread = np.empty(n_labels, np.float32)
    useful = np.ones(n_docs, np.bool_)
    n_sweeps = 0
    while n_sweeps < max_sweeps:
        full = n_visible == n_docs
        state = _shuffle(order, n_visible, state)
        _sweep(
            features,
            sign,
            squares,
            costs,
            order[:n_visible],
            loss,
            IDLE * tolerance,
            alpha,
            W,
            spread[: labels.size],
            useful,
        )
        n_sweeps += 1
        still = np.flatnonzero(spread[: labels.size] > tolerance)
        if full:
            for c in range(labels.size):
                settled[labels[c]] = spread[c] <= tolerance
        if 4 * (still.size + (-still.size % LANES)) <= 3 * labels.size or still.size == 0:
            # Labels that have converged leave the block, once that makes it a quarter smaller.
            if apart:
                _put_columns(W, labels, W_out)
                _put_columns(alpha, labels, alpha_out)
            labels = _filled(labels, still)
            if still.size == 0:
                # All agree with the documents they still looked at: ask the others once more.
                open_labels = np.flatnonzero(~settled)
                if open_labels.size == 0:
                    apart = False
                    break
                labels = _filled(np.arange(n_labels), open_labels)
                n_visible = n_docs
            W, alpha, sign = _columns_of(W_out, labels), _columns_of(alpha_out, labels), _columns_of(signs, labels)
            apart = True
            if still.size == 0:
                continue
        if loss != LOGISTIC:
            # Documents that no label can learn from go behind the others.
            kept = 0
            for at in range(n_visible):
                i = order[at]
                if useful[i]:
                    order[at], order[kept] = order[kept], i
                    kept += 1
            n_visible = max(kept, 1)
    if apart:
        _put_columns(W, labels, W_out)
        _put_columns(alpha, labels, alpha_out)
    return n_sweeps
