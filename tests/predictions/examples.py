"""A small example, and the names of a file in every format."""

import numpy as np
import scipy.sparse as sp

from labelwise.predictions import Predictions

FORMATS = ["p.jsonl", "p.csv", "p.parquet", "p.jsonl.gz", "p.jsonl.xz", "p.csv.gz", "p.csv.xz"]


def toy(dtype=np.float32) -> Predictions:
    """Three documents over four labels; the second has no predictions, the third a tie and a negative score."""
    entries = (
        np.array([0.25, 0.93, 0.0, -1.5, 0.0], dtype=dtype),
        np.array([0, 2, 3, 1, 0], dtype=np.int32),
        np.array([0, 2, 2, 5], dtype=np.int32),
    )
    return Predictions(sp.csr_array(entries, shape=(3, 4)), ["apple", "bean", "corn", "date"], ["x", "y", "z"])
