"""The block solver in numpy, all labels at once: the same documents in the same order, the same labels put aside.

`tests.reference.solver` tells what the best weights are. This twin tells how `labelwise.kernels.solver` gets there, so
that a change of its order, of its stopping rule or of what it leaves out is seen.
"""

import numpy as np

F32 = np.float32
LANES, IDLE = 8, F32(0.1)


class Xorshift:
    """Marsaglia's 64-bit generator, in whole numbers of Python; the state begins at a multiple of the golden ratio."""

    def __init__(self, seed):
        self.state = seed * 0x9E3779B97F4A7C15 % 2**64 | 1

    def below(self, n):
        """The next number from 0 to n - 1."""
        for shift in (13, -7, 17):
            self.state ^= (self.state << shift) % 2**64 if shift > 0 else self.state >> -shift
        return self.state % n

    def shuffle(self, items):
        """The items in another order, in place, from the last to the second."""
        for i in reversed(range(1, len(items))):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def hinge_step(scores, signs, square, cost, squared, idle, alpha):
    """(new alpha, steps, projected gradients, useful) of all labels for a document; `cost` is (positive, negative)."""
    y = np.where(signs > 0, F32(1), F32(-1))
    own = np.where(signs > 0, F32(cost[0]), F32(cost[1]))
    diagonal = F32(0.5) / own if squared else np.zeros_like(own)
    limit = np.full_like(own, 3e38) if squared else own
    gradient = y * scores - F32(1) + diagonal * alpha
    new = np.clip(alpha - gradient / np.maximum(F32(square) + diagonal, F32(1e-30)), 0, limit)
    projected = np.where(
        alpha <= 0, np.minimum(gradient, 0), np.where(alpha >= limit, np.maximum(gradient, 0), gradient)
    )
    projected[signs == 0] = 0
    new = np.where(np.abs(projected) < idle, alpha, new).astype(F32)
    useful = ((signs != 0) & ((new > 0) | (gradient < -idle))).any()
    return new, (new - alpha) * y, projected, useful


def logistic_step(score, sign, square, cost, alpha):
    """(new alpha, step, gradient or None) of one label: alpha minimises its one-variable problem to within 1e-3."""
    if sign == 0:
        return alpha, F32(0), None
    y, limit = (1.0, float(cost[0])) if sign > 0 else (-1.0, float(cost[1]))
    old = float(alpha) if alpha > 0 else min(0.001 * limit, 1e-8)
    old = min(old, limit * (1 - 1e-9))
    a, b = float(square), float(F32(y) * score)
    gradient = b + np.log(old / (limit - old))
    flip = b + 0.5 * a * (limit - 2 * old) < 0
    sign, start = (-1, limit - old) if flip else (1, old)
    z = 0.1 * start if start > 0.5 * limit else start
    for _ in range(20):
        slope = a * (z - start) + sign * b + np.log(z / (limit - z))
        if abs(slope) < 1e-3:
            break
        moved = z - slope / (a + limit / (z * (limit - z)))
        z = 0.1 * z if moved <= 0 else min(moved, limit * (1 - 1e-9))
    new = F32(limit - z if flip else z)
    step = new - alpha
    return new, F32(y) * step, F32(gradient) if step else None


def fill(labels, wanted):
    """Those of `labels` that are wanted, and the first others, up to a multiple of LANES where there are so many."""
    others = [label for label in labels if label not in wanted]
    return sorted([*wanted, *others[: -len(wanted) % LANES]])


def solve(X, signs, costs, loss, stop, seed, alpha, W):
    """Train in place, as `solve_block` does; X is dense. Returns what happened in each sweep: (documents, labels)."""
    (tolerance, most), n_docs, n_labels = stop, *signs.shape
    squares, chance, order = (X * X).sum(axis=1), Xorshift(seed), list(range(n_docs))
    useful, labels, settled, visible, done = [True] * n_docs, list(range(n_labels)), set(), n_docs, []
    while len(done) < most:
        seen = order[:visible]
        chance.shuffle(seen)
        order[:visible] = seen
        done.append((tuple(seen), tuple(labels)))
        lowest, highest = np.zeros((2, len(labels)), F32)
        for i in seen:
            scores, old = X[i] @ W[:, labels], alpha[i, labels]
            if loss == "logistic":
                found = [
                    logistic_step(*one, squares[i], costs[i], before)
                    for *one, before in zip(scores, signs[i, labels], old, strict=True)
                ]
                new, steps = (np.array([one[part] for one in found], F32) for part in (0, 1))
                gradients = np.array([0 if one[2] is None else one[2] for one in found], F32)
            else:
                hinge = (signs[i, labels], squares[i], costs[i], loss == "squared-hinge", IDLE * F32(tolerance), old)
                new, steps, gradients, useful[i] = hinge_step(scores, *hinge)
            lowest, highest = np.minimum(lowest, gradients), np.maximum(highest, gradients)
            alpha[i, labels] = new
            W[:, labels] += X[i][:, None] * steps
        spread = highest - lowest
        still = [label for label, one in zip(labels, spread, strict=True) if one > tolerance]
        if visible == n_docs:
            settled = settled - set(labels) | set(labels) - set(still)
        smaller = 4 * -(-len(still) // LANES) * LANES <= 3 * len(labels)
        if not still:
            if len(settled) == n_labels:
                return done
            labels = fill(range(n_labels), [label for label in range(n_labels) if label not in settled])
            visible = n_docs
            continue
        if smaller:
            labels = fill(labels, still)
        if loss != "logistic":
            kept = 0
            for at in range(visible):
                if useful[order[at]]:
                    order[at], order[kept] = order[kept], order[at]
                    kept += 1
            visible = max(kept, 1)
    return done
