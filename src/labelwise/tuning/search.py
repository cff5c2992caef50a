"""A small search for settings: one after the other, by nDCG@5 on validation documents. Every trial is shown."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from labelwise.config import HoldoutConfig, LinearTreeConfig, TfidfConfig
from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.events import Task, heard
from labelwise.features.scripts import lacks_spaces
from labelwise.features.tfidf import Tfidf
from labelwise.models.calibrator import MIN_DOCUMENTS
from labelwise.models.holdout import evaluate_model
from labelwise.models.linear_tree import LinearTree
from labelwise.types import Csr, OnEvent

if TYPE_CHECKING:
    from rich.table import Table

METRIC = "nDCG@5"
MIN_GAIN = 0.05
"""Smallest gain in points for which a setting is changed: a smaller one is noise."""

OPENING = "opening"
STEPS: dict[str, tuple[float, ...]] = {
    OPENING: (15, 40, 80),
    "cost": (0.5, 2, 4),
    "max_leaf": (0.5, 2),
    "threshold": (0.5, 2),
}
"""Factors of each setting, in the order in which settings are tried; for the opening, its numbers of words."""
SAMPLE = 2000
LONGER = 1.5
"""An opening is tried if the median text has at least `LONGER` times its words; otherwise it would be most of it."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training with its metrics."""

    setting: str
    """The setting that was changed; "" for the first trial, with the given settings."""
    config: LinearTreeConfig
    scores: dict[str, float]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class TuningResult:
    """All trials, and the chosen settings."""

    trials: list[Trial]
    config: LinearTreeConfig
    n_docs: int
    """Number of validation documents."""

    def explain(self) -> list[str]:
        """One sentence for each setting that says why it has its value."""
        sentences, best = [], self.trials[0]
        for setting in dict.fromkeys(trial.setting for trial in self.trials[1:]):
            tried = [trial for trial in self.trials if trial.setting == setting]
            top = max(tried, key=_score)
            old, new = show_setting(best.config, setting), show_setting(top.config, setting)
            if _score(top) - _score(best) < MIN_GAIN:
                other = f"the best other value, {new}, gives {METRIC} {_score(top):.2f} against {_score(best):.2f}"
                sentences.append(f"{setting} stays {old}: {other}, a gain below {MIN_GAIN}")
                continue
            reason = f"{METRIC} {_score(top):.2f} rather than {_score(best):.2f}"
            end = "; it is the smallest or the largest value tried" if top in (tried[0], tried[-1]) else ""
            sentences.append(f"{setting} {new} instead of {old}: {reason}{end}")
            best = top
        return sentences

    def table(self) -> Table:
        """A table with a row for each trial; the chosen one is bold."""
        from rich.table import Table

        table = Table(title=f"tuning, by {METRIC} on {self.n_docs:,} documents", title_style="bold")
        tried = [name for name in STEPS if name != OPENING or any(trial.setting == OPENING for trial in self.trials)]
        for name in ("trial", *tried, METRIC, "P@1", "P@5", "s"):
            table.add_column(name, justify="right", no_wrap=True)
        for number, trial in enumerate(self.trials, 1):
            settings = [show_setting(trial.config, name) for name in tried]
            scores = [f"{trial.scores[name]:.2f}" for name in (METRIC, "P@1", "P@5")]
            chosen = trial.config == replace(self.config, n_trees=1)
            table.add_row(f"{number}", *settings, *scores, f"{trial.seconds:.1f}", style="bold" if chosen else None)
        return table


def tune(
    config: LinearTreeConfig,
    train: Dataset,
    validation: Dataset,
    *,
    run_dir: Path | str | None = None,
    on_event: OnEvent | None = None,
) -> TuningResult:
    """Search for better values of opening (for long texts), cost, cluster size and threshold, one after the other.

    The search starts from `config`. Every trial trains one tree, even if the model is to have more.

    Parameters
    ----------
    train, validation
        Documents to train on, and documents to evaluate on.
    run_dir
        Keep trees in this folder, and reuse those of earlier trials.
    on_event
        Called with "progress", and with "trial" after each trial.
    """
    if len(validation) < MIN_DOCUMENTS:
        raise DataError(
            f"there are {len(validation)} documents to tune on, and at least {MIN_DOCUMENTS} are needed; "
            "give a larger validation split, or train without tuning"
        )
    on_event = heard(on_event)
    plan = {name: list(_candidates(config, name, train)) for name in STEPS}
    names = [name for name in STEPS if plan[name] or name != OPENING]
    trials: list[Trial] = []
    features: dict[TfidfConfig, tuple[Csr, Dataset]] = {}

    def run_trial(setting: str, changed: LinearTreeConfig) -> Trial:
        start = time.perf_counter()
        if changed.tfidf not in features:
            features[changed.tfidf] = _as_features(changed, train, validation, on_event)
        X, measured = features[changed.tfidf]
        model = LinearTree(replace(changed, holdout=HoldoutConfig(calibrate=False)))
        model.fit(X, train.Y, label_names=train.labels, run_dir=run_dir, on_event=on_event)
        scores = evaluate_model(model, measured, on_event=on_event).scores
        trial = Trial(setting=setting, config=changed, scores=scores, seconds=time.perf_counter() - start)
        trials.append(trial)
        task.advance()
        if on_event is not None:
            shown = {name: show_setting(changed, name) for name in names}
            on_event("trial", {"number": len(trials), "settings": shown, "metric": METRIC, "score": _score(trial)})
        return trial

    with Task(on_event, "tuning", total=1 + sum(map(len, plan.values())), unit="trials") as task:
        best = run_trial("", replace(config, n_trees=1))
        for setting, steps in plan.items():
            top = best
            for step in steps:
                trial = run_trial(setting, stepped(best.config, setting, step))
                if top is best or _score(trial) > _score(top):
                    top = trial
                kept = {best.config.tfidf, top.config.tfidf}  # other features would only take memory
                features = {tfidf: pair for tfidf, pair in features.items() if tfidf in kept}
            if _score(top) - _score(best) >= MIN_GAIN:
                best = top
    chosen = replace(best.config, n_trees=config.n_trees)
    return TuningResult(trials=trials, config=chosen, n_docs=len(validation))


def stepped(config: LinearTreeConfig, setting: str, step: float) -> LinearTreeConfig:
    """The configuration with one setting multiplied by `step`; the opening is set to `step` words."""
    index, matcher, ranker = config.index, config.matcher, config.ranker
    if setting == OPENING:
        return replace(config, tfidf=replace(config.tfidf, opening=int(step)))
    if setting == "cost":
        matcher, ranker = (replace(part, cost=part.cost * step) for part in (matcher, ranker))
        return replace(config, matcher=matcher, ranker=ranker)
    if setting == "threshold":
        return replace(config, ranker=replace(ranker, threshold=ranker.threshold * step))
    if index.n_clusters is not None:
        return replace(config, index=replace(index, n_clusters=max(1, round(index.n_clusters / step))))
    return replace(config, index=replace(index, max_leaf=max(1, round(index.max_leaf * step))))


def show_setting(config: LinearTreeConfig, setting: str) -> str:
    """The value of a setting as text."""
    if setting == OPENING:
        return f"{config.tfidf.opening}"
    if setting == "max_leaf":
        index = config.index
        if index.method == "none":
            return "–"
        return f"{index.max_leaf}" if index.n_clusters is None else f"{index.n_clusters} clusters"
    return f"{getattr(config.ranker, setting):g}"


def _candidates(config: LinearTreeConfig, setting: str, train: Dataset) -> Iterator[float]:
    """The steps that can be tried for this setting."""
    if setting == OPENING:
        yield from _openings(config, train)
        return
    if (setting == "max_leaf" and config.index.method == "none") or (
        setting == "threshold" and not config.ranker.threshold
    ):
        return
    for step in STEPS[setting]:
        n_clusters = stepped(config, setting, step).index.n_clusters
        if n_clusters is None or n_clusters <= train.n_labels:
            yield step


def _openings(config: LinearTreeConfig, train: Dataset) -> Iterator[float]:
    """Numbers of words of openings that are clearly shorter than most texts; none without texts."""
    documents = train.documents
    if not isinstance(documents, list) or config.tfidf.analyzer not in ("auto", "word"):
        return
    if config.tfidf.analyzer == "auto" and lacks_spaces(documents):
        return
    sample = documents[:: max(1, len(documents) // SAMPLE)]
    median = statistics.median(len(text.split()) for text in sample)
    for words in STEPS[OPENING]:
        if words != config.tfidf.opening and median >= LONGER * words:
            yield words


def _as_features(
    config: LinearTreeConfig, train: Dataset, validation: Dataset, on_event: OnEvent | None
) -> tuple[Csr, Dataset]:
    """Features of the training documents, and the validation documents with theirs, computed once for all trials."""
    documents = train.documents
    if not isinstance(documents, list):
        return documents, validation
    if validation.texts is None:
        raise DataError("the training documents have texts, but those to tune on have none")
    tfidf = Tfidf(config.tfidf, threads=config.threads).fit(documents, on_event=on_event)
    measured = replace(validation, features=tfidf.transform(validation.texts, on_event=on_event))
    return tfidf.transform(documents, on_event=on_event), measured


def _score(trial: Trial) -> float:
    return trial.scores[METRIC]
