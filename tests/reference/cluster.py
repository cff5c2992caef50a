"""`kernels.cluster` and `kernels.embed` on dense arrays."""

import numpy as np


def sum_rows(Y, X):
    """Rows of Yᵀ X, scaled to length one where they are not zero; Y (n_docs, n_labels), X (n_docs, n_features)."""
    Z = Y.T.astype(np.float64) @ X
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    return Z / np.where(lengths > 0, lengths, 1)


def aim(left, total):
    """The difference of the normalised vectors, and the sum of their lengths."""
    rest = total - left
    lengths = [np.linalg.norm(vector) for vector in (left, rest)]
    parts = [
        vector / length if length > 0 else 0 * vector for vector, length in zip((left, rest), lengths, strict=True)
    ]
    return parts[0] - parts[1], sum(lengths)


def halve(Z, n_left, share, pairs, iterations):
    """Balanced 2-means from the outcome of each trial on a share of the rows, and the trials' sums of cosines."""
    n_share_left = n_left
    if len(share) < len(Z):
        n_share_left = min(max(round(len(share) * n_left / len(Z)), 1), len(share) - 1)
    trials = []
    for one, two in pairs:
        weights = Z[share] @ (Z[share[one]] - Z[share[two]])
        trials.append(two_means(Z[share], n_share_left, (weights - weights.mean()) @ Z[share], iterations[0]))
    halves = [two_means(Z, n_left, direction, iterations[1])[0] for _, direction, _ in trials]
    return halves, [objective for _, _, objective in trials]


def two_means(Z, n_left, direction, iterations):
    """Members on the left, the difference of the centres, the sum of cosines to the centres."""
    left, objective = np.zeros(len(Z), bool), 0.0
    for _ in range(iterations):
        now = np.zeros(len(Z), bool)
        now[np.argsort(-(Z @ direction), kind="stable")[:n_left]] = True
        if np.array_equal(now, left):
            break
        left = now
        direction, objective = aim(Z[left].sum(axis=0), Z.sum(axis=0))
    return left, direction, objective


def sum_clusters(Z, clusters, first, n_block):
    """(n_features, n_block) the sum of the rows of each cluster."""
    return np.stack([Z[clusters == first + c].sum(axis=0) for c in range(n_block)], axis=1)


def normalize_columns(centres):
    """Columns of length one where they are not zero."""
    lengths = np.linalg.norm(centres, axis=0)
    return centres / np.where(lengths > 0, lengths, 1)


def exchange(scores, clusters):
    """Pairs of clusters in order; within a pair the members that lose least by changing over, as long as both gain."""
    members = [np.flatnonzero(clusters == c).tolist() for c in range(scores.shape[1])]
    for a in range(len(members)):
        for b in range(a + 1, len(members)):
            out = sorted(range(len(members[a])), key=lambda k: scores[members[a][k], a] - scores[members[a][k], b])
            back = sorted(range(len(members[b])), key=lambda k: scores[members[b][k], b] - scores[members[b][k], a])
            for i, j in zip(out, back, strict=False):
                one, two = members[a][i], members[b][j]
                gain = scores[one, b] - scores[one, a] + scores[two, a] - scores[two, b]
                if gain <= 1e-6:
                    break
                members[a][i], members[b][j] = two, one
    result = np.empty_like(clusters)
    for c, own in enumerate(members):
        result[own] = c
    return result
