"""Small truths and predictions: one worked by hand, and hypothesis-made ones in every shape a CSR can have."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from labelwise.metrics import evaluate

# Four documents over five labels. Right predictions: document 0 at ranks 1 and 3, document 1 at rank 2.
TRUTH = [{0, 1, 2}, {4}, set(), {1, 3}]
SCORES = [{0: 0.9, 3: 0.8, 1: 0.7}, {3: 0.9, 4: 0.5}, {0: 1.0}, {}]
WEIGHTS = [1.0, 2.0, 4.0, 3.0, 5.0]
COUNTS = [200, 50, 50, 5, 0]  # head: 0; torso: 1, 2; tail: 3, 4


def truth_matrix(truth, n_labels, dtype=np.float32) -> sp.csr_array:
    indices = [label for row in truth for label in sorted(row)]
    indptr = np.cumsum([0, *map(len, truth)])
    return sp.csr_array(
        (np.ones(len(indices), dtype=dtype), np.array(indices, dtype=np.int32), indptr.astype(np.int32)),
        shape=(len(truth), n_labels),
    )


def score_matrix(scores, n_labels, dtype=np.float32) -> sp.csr_array:
    """Entries in the order of the dicts, zeros stored."""
    indices = [label for row in scores for label in row]
    data = [score for row in scores for score in row.values()]
    indptr = np.cumsum([0, *map(len, scores)])
    return sp.csr_array(
        (np.array(data, dtype=dtype), np.array(indices, dtype=np.int32), indptr.astype(np.int32)),
        shape=(len(scores), n_labels),
    )


def hand_worked() -> tuple[sp.csr_array, sp.csr_array]:
    return truth_matrix(TRUTH, 5), score_matrix(SCORES, 5)


def hand_evaluation(**options):
    return evaluate(*hand_worked(), train_counts=COUNTS, n_train_docs=300, **options)


def noisy_systems(n_docs=1500, n_labels=60):
    """A truth, a good system and a worse one that differs from it by more noise."""
    rng = np.random.default_rng(3)
    truth = (rng.random((n_docs, n_labels)) < 0.05).astype(np.float32)
    good = truth + 0.8 * rng.standard_normal(truth.shape)
    bad = truth + 1.2 * rng.standard_normal(truth.shape)
    return (sp.csr_array(matrix) for matrix in (truth, good, bad))


def frozen(matrix: sp.csr_array, *, wide: bool) -> sp.csr_array:
    """Read-only arrays, with int64 indices if wide."""
    kind = np.int64 if wide else np.int32
    copy = sp.csr_array(matrix.shape, dtype=matrix.dtype)
    copy.data, copy.indices, copy.indptr = (
        matrix.data.copy(),
        matrix.indices.astype(kind),
        matrix.indptr.astype(kind),
    )
    for array in (copy.data, copy.indices, copy.indptr):
        array.flags.writeable = False
    return copy


@st.composite
def problems(draw, min_docs=1):
    """(truth, scores, n_labels, Y, Y_pred): rows empty or full, ties, zeros, negatives, unsorted, read-only, int64."""
    n_docs, n_labels = draw(st.integers(min_docs, 6)), draw(st.integers(1, 8))
    labels = st.integers(0, n_labels - 1)
    truth = draw(st.lists(st.sets(labels), min_size=n_docs, max_size=n_docs))
    values = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0])
    scores = draw(st.lists(st.dictionaries(labels, values), min_size=n_docs, max_size=n_docs))
    Y = truth_matrix(truth, n_labels)
    Y_pred = score_matrix(scores, n_labels, draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        wide = draw(st.booleans())
        Y, Y_pred = frozen(Y, wide=wide), frozen(Y_pred, wide=wide)
    return truth, scores, n_labels, Y, Y_pred
