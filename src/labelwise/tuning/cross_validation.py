"""Cross-validation: every document is predicted once, by a model that has not seen it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import scipy.sparse as sp

from labelwise.config.presets import AUTO, preset_config
from labelwise.config.settings import Range, Seed, checked_value
from labelwise.errors import DataError, UsageError
from labelwise.events import Task
from labelwise.metrics import Evaluation, evaluate
from labelwise.metrics.relevance import check_ks
from labelwise.models.registry import new_model
from labelwise.predictions import Predictions
from labelwise.tuning.one_call import read_documents

if TYPE_CHECKING:
    from rich.table import Table

    from labelwise.types import OnEvent

Folds = Annotated[int, Range(at_least=2)]


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """The result of `cross_validate`."""

    evaluation: Evaluation
    """The figures of all documents together, with intervals."""
    folds: list[Evaluation]
    """The figures of each fold."""
    predictions: Predictions
    """The predictions of all documents, in their order, each by the model that has not seen the document."""

    def __repr__(self) -> str:
        return f"CrossValidation({len(self.folds)} folds, {self.evaluation!r})"

    def _repr_html_(self) -> str:
        return self.evaluation._repr_html_()

    def __getitem__(self, name: str) -> float:
        """A figure of all documents together, such as "P@1", in percent."""
        return self.evaluation[name]

    def values(self, name: str) -> list[float]:
        """A figure of each fold."""
        return [fold[name] for fold in self.folds]

    def spread(self, name: str) -> float:
        """The standard deviation of a figure over the folds."""
        return float(np.std(self.values(name), ddof=1))

    def table(self, *, title: str | None = None) -> Table:
        """A rich table of the figures of all documents together."""
        return self.evaluation.table(title=title)


def cross_validate(
    data: Any,
    labels: Any = None,
    *,
    preset: Any = "default",
    folds: int = 5,
    ks: Sequence[int] = (1, 3, 5),
    seed: int = 0,
    on_event: OnEvent | None = None,
    **settings: Any,
) -> CrossValidation:
    """Figures of a preset by cross-validation, for texts or features with lists of labels or a sparse matrix.

    The documents are cut into folds at random; the documents of a fold are predicted by a model that was trained on all
    other folds.

    Parameters
    ----------
    data, labels
        As `labelwise.train` takes them. Of a folder of splits the training documents count.
    preset, settings
        As `labelwise.train` takes them; all but auto.
    folds
        Number of folds, and of models that are trained.
    ks
        Cut-offs of the metrics.
    seed
        Random seed of the folds.

    Examples
    --------
    >>> from labelwise import cross_validate, generate_shop
    >>> train = generate_shop(500, 100)["train"]
    >>> found = cross_validate(train.texts, train.Y, preset="parabel", folds=3)
    >>> len(found.folds), len(found.predictions), 60 < found["P@1"] < 90
    (3, 450, True)
    """
    if isinstance(preset, str) and preset == AUTO:
        raise UsageError("the preset auto may choose other settings for each fold; name a preset to cross-validate")
    folds, seed, ks = checked_value(Folds, folds, "folds"), checked_value(Seed, seed, "seed"), check_ks(ks)
    documents, settings = read_documents(data, labels, settings, on_event)
    config = preset_config(preset, settings)
    if len(documents) < folds:
        raise DataError(f"{len(documents)} documents cannot be cut into {folds} folds; give more, or fewer folds")
    fold_of = np.random.default_rng(seed).permutation(len(documents)) % folds
    matrices, rows, evaluations, calibrated = [], [], [], []
    with Task(on_event, "cross-validation", total=folds, unit="folds") as task:
        for number in range(folds):
            held_out = np.flatnonzero(fold_of == number)
            train, test = documents.take(np.flatnonzero(fold_of != number)), documents.take(held_out)
            model: Any = new_model(config).fit_dataset(train, on_event=on_event)
            found: Predictions = model.predict(model.inputs(test), max(ks), on_event=on_event)
            evaluations.append(evaluate(test.Y, found, ks=ks, Y_train=train.Y, bootstrap=0))
            matrices.append(found.matrix)
            rows.append(held_out)
            calibrated.append(bool(found.calibrated))
            task.advance()
    order = np.argsort(np.concatenate(rows), kind="stable")
    matrix: Any = sp.vstack(matrices, format="csr")[order]
    predictions = Predictions(matrix, documents.labels, documents.ids, calibrated=all(calibrated))
    return CrossValidation(evaluate(documents.Y, predictions, ks=ks, Y_train=documents.Y), evaluations, predictions)
