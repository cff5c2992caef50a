"""Beam search one document at a time, over dense weights."""

import numpy as np

from labelwise.config.score_transform import DEFAULT_TRANSFORM, TRANSFORMS


def transform(scores, score_transform, last):
    """Logarithms of the factors of a level's scores; the label's own score where it counts alone."""
    if last and not TRANSFORMS[score_transform].bounded:
        return scores
    return (TRANSFORMS[score_transform].logarithm or TRANSFORMS[DEFAULT_TRANSFORM].logarithm)(scores)


def search(levels, x, beam, top_k, score_transform):
    """[(leaf, score)], best first; equal scores go to the lower id.

    Parameters
    ----------
    levels : [(W, parents)], W (n_features, n_nodes) with the dense features' rows at the end
    x : (n_features,)
    """
    nodes, bounded = [(0, 0.0)], TRANSFORMS[score_transform].bounded
    for depth, (W, parents) in enumerate(levels):
        last = depth == len(levels) - 1
        found = []
        for parent, above in nodes:
            for child in np.flatnonzero(parents == parent):
                own = float(transform(x @ W[:, child], score_transform, last))
                found.append((int(child), above + own if bounded or not last else own))
        nodes = sorted(found, key=lambda pair: (-pair[1], pair[0]))[: top_k if last else beam]
    return [(leaf, float(np.exp(score)) if bounded else score) for leaf, score in nodes]
