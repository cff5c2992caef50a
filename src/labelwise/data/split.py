"""Part of the training documents set aside for validation."""

import numpy as np

from labelwise.data.dataset import Dataset
from labelwise.errors import DataError, UsageError


def split_validation(dataset: Dataset, fraction: float = 0.1, seed: int = 0) -> tuple[Dataset, Dataset]:
    """The data in two parts, (train, validation), each in the original order.

    Documents are drawn at random and go to validation unless one of their labels would be left without a training
    document; so every label keeps one, and validation may stay a little below the fraction where most labels are
    rare.

    Parameters
    ----------
    dataset
        What to split.
    fraction
        Share of the documents for validation, between 0 and 1.
    seed
        The same seed gives the same split.

    Examples
    --------
    >>> train, validation = split_validation(load_dataset("my-data"), fraction=0.1)
    """
    if not 0 < fraction < 1:
        raise UsageError(f"fraction must lie between 0 and 1, not {fraction}")
    n_docs = len(dataset)
    if n_docs < 2:
        raise DataError(f"there are {n_docs} documents; at least two are needed to set some aside")
    from labelwise.kernels.split import draw_validation

    wanted = min(max(round(n_docs * fraction), 1), n_docs - 1)
    order = np.random.default_rng(seed).permutation(n_docs)
    counts = np.bincount(dataset.Y.indices, minlength=dataset.n_labels)
    aside = draw_validation(dataset.Y.indptr, dataset.Y.indices, counts, order, wanted)
    if not aside.any():
        raise DataError(
            "every document is the only one with some label, so none can be set aside; "
            "give a validation set of your own"
        )
    return dataset.take(np.flatnonzero(~aside)), dataset.take(np.flatnonzero(aside))
