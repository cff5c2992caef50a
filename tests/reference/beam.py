"""Beam search one document at a time, over dense weights."""

import numpy as np


def transform(scores, combine, last):
    """Logarithms of what a level gives; the label's own score for "ranker-only"."""
    if combine == "ranker-only" and last:
        return scores
    if combine == "sigmoid":
        return -np.logaddexp(0, -scores)
    power = 3 if combine == "ranker-only" else int(combine[1])
    return -(np.maximum(0, 1 - scores) ** power)


def search(levels, x, beam, top_k, combine):
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
                own = float(transform(x @ W[:, child], combine, last))
                found.append((int(child), own if combine == "ranker-only" and last else above + own))
        nodes = sorted(found, key=lambda pair: (-pair[1], pair[0]))[: top_k if last else beam]
    return [(leaf, score if combine == "ranker-only" else float(np.exp(score))) for leaf, score in nodes]
