"""Paired comparison of two systems on the same documents: is the difference significant?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelwise.config.settings import Count, Seed, checked_value
from labelwise.errors import DataError, UsageError
from labelwise.features.texts import is_collection, type_and_value
from labelwise.metrics.evaluation import Evaluation, plain_figures
from labelwise.metrics.intervals import Difference, paired_test
from labelwise.storage import write_json

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result of `compare`: differences by metric, in percent points, first minus second."""

    names: tuple[str, str]
    """Names of the two systems."""
    n_docs: int
    resamples: int
    differences: dict[str, Difference]

    def __getitem__(self, name: str) -> Difference:
        if name not in self.differences:
            raise KeyError(f"{name!r} was not compared; there are {', '.join(self.differences)}")
        return self.differences[name]

    def __repr__(self) -> str:
        first, second = self.names
        return f"Comparison({first} with {second}, {self.n_docs:,} documents, {len(self.differences)} metrics)"

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; nan becomes None."""
        return {**asdict(self), "differences": plain_figures(self.differences)}

    def save(self, path: Path | str) -> None:
        """Write `to_dict` as JSON; the file appears whole or not at all."""
        write_json(path, self.to_dict())

    def table(self, *, title: str | None = None, short: bool = False) -> "Table":
        """A rich table: a row per metric with both figures, the difference, its interval and p.

        With `short`: rows of P, nDCG and PSP only.
        """
        from labelwise.metrics.table import comparison_table

        return comparison_table(self, title, short=short)


def compare(
    first: Evaluation,
    second: Evaluation,
    *,
    metrics: Sequence[str] | None = None,
    bucket: str | None = None,
    names: tuple[str, str] = ("first", "second"),
    resamples: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Test every difference between two evaluations of the same documents.

    The interval comes from the paired bootstrap, the p-value from the paired sign-flip test (see
    `labelwise.metrics.intervals`). p-values are not corrected for the number of compared metrics.

    Parameters
    ----------
    first, second
        The evaluations of the two systems, with the same truth.
    metrics
        Names such as "P@1"; all metrics of both evaluations if None. macro-F1 and coverage are not sums over documents
        and cannot be tested this way.
    bucket
        Compare on the labels of this bucket only; on all labels if None.
    names
        Names of the two systems.

    Examples
    --------
    >>> from labelwise import LinearTree, compare, evaluate, generate_shop
    >>> train, test = generate_shop(500, 100).values()
    >>> words = LinearTree().fit(train.texts, train.Y)
    >>> pairs = LinearTree(ngram_range=(1, 2)).fit(train.texts, train.Y)
    >>> first, second = (evaluate(test.Y, model.predict(test.texts)) for model in (words, pairs))
    >>> found = compare(first, second)["P@1"]
    >>> found.difference, found.p_value
    (-2.0, 1.0)
    """
    for name, given in (("first", first), ("second", second)):
        checked_value(Evaluation, given, name)
    bucket = checked_value(str | None, bucket, "bucket")
    resamples, seed = checked_value(Count, resamples, "resamples"), checked_value(Seed, seed, "seed")
    if metrics is not None and not is_collection(metrics):
        raise UsageError(f"metrics is {type_and_value(metrics)}; give a list of names, such as ['P@1']")
    metrics = None if metrics is None else list(metrics)
    if first.truth != second.truth:
        raise DataError(
            f"the two evaluations have different truths ({first.n_docs} and {second.n_docs} documents); "
            "evaluate both systems on the same documents and labels, in the same order"
        )
    where = bucket or ""
    in_second = second.contributions.place
    shared = [name for part, name in first.contributions.place if part == where and (part, name) in in_second]
    if not shared:
        raise UsageError(f"there is no bucket {bucket!r} in both evaluations; the first has {', '.join(first.buckets)}")
    for name in metrics or ():
        if name not in shared:
            raise UsageError(f"{name!r} cannot be compared; these metrics can: {', '.join(shared)}")
    wanted = [(where, name) for name in metrics or shared]
    found = paired_test(first.contributions, second.contributions, wanted, resamples, seed)
    differences = {name: found[part, name] for part, name in wanted}
    return Comparison(names=names, n_docs=first.n_docs, resamples=resamples, differences=differences)
