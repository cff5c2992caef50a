"""Beam search one document at a time, over dense weights."""

import numpy as np


def transform(scores, score_transform, last):
    """Logarithms of what a level gives; the label's own score for "ranker-only"."""
    if score_transform == "ranker-only" and last:
        return scores
    if score_transform == "sigmoid":
        return -np.logaddexp(0, -scores)
    power = 3 if score_transform == "ranker-only" else int(score_transform[1])
    return -(np.maximum(0, 1 - scores) ** power)


def search(levels, x, beam, top_k, score_transform):
    """[(leaf, score)], best first; equal scores go to the lower id.

    Parameters
    ----------
    levels : [(W, parents)], W (n_features, n_nodes) with the dense features' rows at the end
    x : (n_features,)
    """
    nodes = [(0, 0.0)]
    for depth, (W, parents) in enumerate(levels):
        last = depth == len(levels) - 1
        found = []
        for parent, above in nodes:
            for child in np.flatnonzero(parents == parent):
                own = float(transform(x @ W[:, child], score_transform, last))
                found.append((int(child), own if score_transform == "ranker-only" and last else above + own))
        nodes = sorted(found, key=lambda pair: (-pair[1], pair[0]))[: top_k if last else beam]
    return [(leaf, score if score_transform == "ranker-only" else float(np.exp(score))) for leaf, score in nodes]
