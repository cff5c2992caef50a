"""Part of the training documents set aside for validation."""

import numpy as np
import numpy.typing as npt

from labelwise.config.settings import Seed, checked_value
from labelwise.data.dataset import Dataset
from labelwise.errors import DataError, UsageError
from labelwise.types import Csr


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
    rest, aside = split_rows(dataset.Y, fraction, seed)
    return dataset.take(rest), dataset.take(aside)


def split_rows(Y: Csr, fraction: float, seed: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows of a label matrix in two parts, as `split_validation` draws them."""
    fraction, seed = checked_value(float, fraction, "fraction"), checked_value(Seed, seed, "seed")
    if not 0 < fraction < 1:
        raise UsageError(f"fraction must lie between 0 and 1, not {fraction}")
    n_docs = Y.shape[0]
    if n_docs < 2:
        raise DataError(f"there are {n_docs} documents; at least two are needed to set some aside")
    from labelwise.kernels.split import draw_validation

    wanted = min(max(round(n_docs * fraction), 1), n_docs - 1)
    order = np.random.default_rng(seed).permutation(n_docs)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    aside = draw_validation(Y.indptr, Y.indices, counts, order, wanted)
    if not aside.any():
        raise DataError(
            "every document is the only one with some label, so none can be set aside; "
            "give a validation set of your own"
        )
    return np.flatnonzero(~aside), np.flatnonzero(aside)
