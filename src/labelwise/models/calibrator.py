"""Scores to probabilities, learnt on held-out predictions.

The probability that a predicted label is right is a function of its score alone, found by isotonic regression: the
ascending step function that fits best (Zadrozny & Elkan, KDD 2002). Three things make it fit for use.

- *The ends are never certain.* One imagined right prediction lies at the lowest score and one imagined wrong one at
  the highest: three of three right are 75 %, not 100 %.
- *Steps become slopes.* Between the centres of two steps the curve is a line, as far as each step can be known: inside
  a step it leaves the step's own level by at most two standard errors, and what remains of the rise lies between the
  steps. A smooth truth is followed smoothly, a true jump stays a jump.
- *The ranking stays.* The curve ascends everywhere, if only a little, and `Calibrator.transform_matrix` corrects what
  rounding would make equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise import __version__
from labelwise.errors import DataError, StorageError
from labelwise.kernels.isotonic import keep_order, pool_violators
from labelwise.metrics.relevance import Scored, mark_predictions
from labelwise.predictions.ranking import rank_best
from labelwise.storage import FORMAT_VERSION, read_json, write_json
from labelwise.types import Csr, Floats, Ints

MIN_DOCUMENTS, MIN_HITS = 50, 10
"""With fewer documents or right predictions than this, a probability would be a guess."""

CALIBRATED_ON = 20
"""Best labels of a document that a calibration learns from."""

MAX_STEPS = 64
"""Steps that remain, of three knots each. On half a million pairs with a known truth, more were no closer to it."""

STANDARD_ERRORS = 2.0
"""How far a line may leave the level of a step: 1 follows smooth curves worse, without a limit jumps are blurred."""

END_SLOPE = 1e-3
"""Share of the way to 0 or 1 that the curve goes in the outer half of the first and the last step."""

# Nothing that is given out is certain, in float32 either.
LEAST, MOST = np.finfo(np.float32).tiny, np.nextafter(np.float32(1), np.float32(0))


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibrator:
    """A curve from scores to probabilities, fitted by `Calibrator.fit`.

    Examples
    --------
    >>> calibrator = Calibrator.fit(validation_scores, validation_Y)
    >>> probabilities = calibrator.transform_matrix(test_scores)
    """

    scores: Floats
    """(n_knots,) float64, strictly ascending."""
    probabilities: Floats
    """(n_knots,) float64, strictly ascending, between 0 and 1 without either."""
    n_docs: int
    """Documents that it was fitted on."""
    n_pairs: int
    """Predictions that it was fitted on."""
    n_hits: int
    """Number of these predictions that were right."""

    @classmethod
    def fit(cls, Y_pred: Scored, Y: Csr) -> Self:
        """Learn the curve from predictions of documents that the model has not been trained on.

        Parameters
        ----------
        Y_pred
            (n_docs, n_labels) scores; what is stored is predicted. Predict as many labels per document as will be
            predicted in use: what has been left out is not learnt from.
        Y
            (n_docs, n_labels) true labels of the same documents.
        """
        marked = mark_predictions(Y, Y_pred, None)
        n_docs = int(np.count_nonzero(np.diff(marked.best_indptr)))
        n_hits = int(marked.hits.sum(dtype=np.int64))
        if n_docs < MIN_DOCUMENTS:
            raise DataError(
                f"only {n_docs} documents have predictions, and probabilities need at least {MIN_DOCUMENTS}; "
                "fit on more validation data, or use the scores as they are"
            )
        if n_hits < MIN_HITS:
            raise DataError(
                f"only {n_hits} of {marked.hits.size} predictions are right, and probabilities need at least "
                f"{MIN_HITS}; fit on more validation data, and check that Y and Y_pred have the same labels and "
                "documents in the same order"
            )
        scores, probabilities = fit_curve(marked.scores, marked.hits)
        return cls(
            scores=scores, probabilities=probabilities, n_docs=n_docs, n_pairs=int(marked.hits.size), n_hits=n_hits
        )

    def transform(self, scores: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """The probability of each score, in the same shape; beyond the scores seen in `fit` that of the nearest."""
        asked = np.asarray(scores, dtype=np.float64)
        missing = np.isnan(asked)
        if missing.any():
            raise DataError(
                f"{np.count_nonzero(missing)} of {asked.size} scores are nan, which has no probability; "
                "leave an entry out where there is no prediction"
            )
        found = np.interp(asked, self.scores, self.probabilities)
        return np.clip(np.asarray(found, dtype=np.float32), LEAST, MOST)

    def transform_matrix(self, Y_pred: Csr) -> Csr:
        """The same predictions with probabilities for scores; every row keeps its ranking exactly.

        Parameters
        ----------
        Y_pred
            (n_docs, n_labels) scores.

        Returns
        -------
        probabilities
            (n_docs, n_labels) float32, stored where Y_pred is. Where float32 cannot tell two scores of a row apart,
            the lower one is the next smaller number.
        """
        if not sp.issparse(Y_pred):
            raise DataError(
                f"Y_pred is of class {type(Y_pred).__name__}, not a sparse matrix of scores; "
                "give the matrix of a Predictions object, or call transform on plain scores"
            )
        scored = sp.csr_array(Y_pred)
        if scored.dtype not in (np.float32, np.float64):
            scored = scored.astype(np.float64)
        probabilities = self.transform(scored.data)
        longest = int(np.diff(scored.indptr).max(initial=0))
        indptr, ranked = rank_best(scored, longest)
        keep_order(indptr, ranked, scored.data, probabilities)
        return sp.csr_array((probabilities, scored.indices.copy(), scored.indptr.copy()), shape=scored.shape)

    # ------------------------------------------------------------------ keeping it

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers, for JSON."""
        return {
            "format": "labelwise",
            "version": FORMAT_VERSION,
            "labelwise": __version__,
            "kind": "calibration",
            "n_docs": self.n_docs,
            "n_pairs": self.n_pairs,
            "n_hits": self.n_hits,
            "scores": self.scores.tolist(),
            "probabilities": self.probabilities.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, path: Path | str = "this calibration") -> Self:
        """A curve from the values that `to_dict` returns, checked; `path` names the source in an error."""
        if not isinstance(values, Mapping) or values.get("kind") != "calibration":
            raise StorageError(f"{path} is not a calibration; give one that labelwise saved")
        version = values.get("version")
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise StorageError(
                f"{path} has format version {version}, written by labelwise {values.get('labelwise', '?')}; "
                f"this is {__version__}, which reads versions up to {FORMAT_VERSION}: "
                "run pip install --upgrade labelwise"
            )
        try:
            scores, probabilities = (np.array(values[name], dtype=np.float64) for name in ("scores", "probabilities"))
            n_docs, n_pairs, n_hits = (int(values[name]) for name in ("n_docs", "n_pairs", "n_hits"))
        except (KeyError, TypeError, ValueError, OverflowError) as err:
            raise StorageError(f"{path} is damaged ({err}); copy it or fit it again") from err
        if not _is_curve(scores, probabilities):
            raise StorageError(
                f"{path} is damaged (its scores and probabilities are not an ascending curve); copy it or fit it again"
            )
        return cls(scores=scores, probabilities=probabilities, n_docs=n_docs, n_pairs=n_pairs, n_hits=n_hits)

    def save(self, path: Path | str) -> None:
        """Write one JSON file; in a model folder it is called calibration.json."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote."""
        return cls.from_dict(read_json(Path(path)), path=path)


def _is_curve(scores: Floats, probabilities: Floats) -> bool:
    return (
        scores.ndim == 1
        and scores.shape == probabilities.shape
        and scores.size > 0
        and bool(np.isfinite(scores).all() and (np.diff(scores) > 0).all())
        and bool((np.diff(probabilities) > 0).all() and probabilities[0] > 0 and probabilities[-1] < 1)
    )


# ---------------------------------------------------------------------- the curve


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of an isotonic regression, one entry of each array per step, ascending."""

    low: Floats
    """Lowest score."""
    centre: Floats
    """Mean score."""
    high: Floats
    """Highest score."""
    hits: Ints
    """Right predictions, the imagined one included."""
    counts: Ints
    """Predictions, the imagined ones included."""

    def union(self, starts: Ints) -> Steps:
        """Fewer steps, each the union of neighbouring steps; `starts` are the first step of each union."""
        counts = np.add.reduceat(self.counts, starts)
        low, high = self.low[starts], self.high[np.append(starts[1:], self.low.size) - 1]
        centre = np.add.reduceat(self.centre * self.counts, starts) / counts
        # Rounding must not carry a centre out of its step.
        return Steps(low, np.clip(centre, low, high), high, np.add.reduceat(self.hits, starts), counts)


def fit_curve(scores: Floats, hits: Ints) -> tuple[Floats, Floats]:
    """Knots of the curve through (score, hit) pairs: scores and probabilities, both strictly ascending.

    Parameters
    ----------
    scores, hits
        (n_pairs,) finite scores in any order, and 1 where the prediction was right, 0 where not; at least one.
    """
    return _slope(_reduce(_pool(scores, hits)))


def _pool(scores: Floats, hits: Ints) -> Steps:
    """Isotonic regression of the hits on the scores, with an imagined hit at the low end and a miss at the high."""
    order = np.argsort(scores)
    ascending = scores[order].astype(np.float64, copy=False)
    first = np.flatnonzero(np.append(True, np.diff(ascending) > 0))  # of equal scores
    distinct = ascending[first]
    counts = np.diff(np.append(first, ascending.size))
    right = np.add.reduceat(hits[order], first, dtype=np.int64)
    right[0] += 1
    counts[0] += 1
    counts[-1] += 1
    starts = np.empty(distinct.size, dtype=np.int64)
    n_steps = pool_violators(right, counts, starts)
    return Steps(distinct, distinct, distinct, right, counts).union(starts[:n_steps])


def _reduce(steps: Steps) -> Steps:
    """Join neighbours until at most MAX_STEPS remain, evenly spread over predictions, hits and probability."""
    place = (_middle(steps.counts) + _middle(steps.hits) + steps.hits / steps.counts) / 3
    bins = np.floor(place * MAX_STEPS)
    return steps.union(np.flatnonzero(np.append(True, np.diff(bins) > 0)))


def _middle(sizes: Ints) -> Floats:
    """Where the middle of each lies in the running sum of all, between 0 and 1."""
    middle: Floats = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    return middle


def _slope(steps: Steps) -> tuple[Floats, Floats]:
    """The steps as knots at the low end, centre and high end of each."""
    level = steps.hits / steps.counts
    reach = STANDARD_ERRORS * np.sqrt(level * (1 - level) / steps.counts)
    # The line from centre to centre, and a little further down and up at the ends.
    x, y = steps.centre, level
    if steps.low[0] < x[0]:
        x, y = np.append(steps.low[0], x), np.append(y[0] * (1 - END_SLOPE), y)
    if steps.high[-1] > x[-1]:
        x, y = np.append(x, steps.high[-1]), np.append(y, y[-1] + (1 - y[-1]) * END_SLOPE)
    below = np.maximum(np.interp(steps.low, x, y), level - reach)
    above = np.minimum(np.interp(steps.high, x, y), level + reach)
    scores = np.stack([steps.low, steps.centre, steps.high], axis=1).ravel()
    probabilities = np.maximum.accumulate(np.stack([below, level, above], axis=1).ravel())
    keep = np.append(True, (np.diff(scores) > 0) & (np.diff(probabilities) > 0))
    return scores[keep], probabilities[keep]
