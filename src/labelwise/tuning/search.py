"""A small, honest search for settings: one after the other, by nDCG@5 on validation documents, every trial shown."""

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
from labelwise.events import Task
from labelwise.features.tfidf import Tfidf
from labelwise.models.calibrator import MIN_DOCUMENTS
from labelwise.models.holdout import evaluate_model
from labelwise.models.linear_tree import LinearTree
from labelwise.types import Csr, OnEvent

if TYPE_CHECKING:
    from rich.table import Table

METRIC = "nDCG@5"
MIN_GAIN = 0.05
"""A setting is changed only for at least so many points more: less is noise, and the preset had its reasons."""

OPENING = "opening"
STEPS: dict[str, tuple[float, ...]] = {
    OPENING: (15, 40, 80),
    "cost": (0.5, 2, 4),
    "max_leaf": (0.5, 2),
    "threshold": (0.5, 2),
}
"""What each setting is multiplied by, in the order in which the settings are tried; of the opening, its words."""
SAMPLE = 2000
LONGER = 1.5
"""An opening is tried where half of the texts have so many times as many words: else it would be the whole text."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training and what it gave."""

    setting: str
    """The setting that was tried; "" for the settings as they came."""
    config: LinearTreeConfig
    scores: dict[str, float]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """All trials, and the settings chosen."""

    trials: list[Trial]
    config: LinearTreeConfig
    n_docs: int
    """Validation documents that decided."""

    def explain(self) -> list[str]:
        """Why each setting is as it is, a sentence each."""
        said, best = [], self.trials[0]
        for setting in dict.fromkeys(trial.setting for trial in self.trials[1:]):
            tried = [trial for trial in self.trials if trial.setting == setting]
            top = max(tried, key=_score)
            old, new = show_setting(best.config, setting), show_setting(top.config, setting)
            if _score(top) - _score(best) < MIN_GAIN:
                other = f"the best other, {new}, gives {METRIC} {_score(top):.2f} for {_score(best):.2f}"
                said.append(f"{setting} stays {old}: {other}, not {MIN_GAIN} more")
                continue
            reason = f"{METRIC} {_score(top):.2f} rather than {_score(best):.2f}"
            end = "; it lies at an end of what was tried" if top in (tried[0], tried[-1]) else ""
            said.append(f"{setting} {new} instead of {old}: {reason}{end}")
            best = top
        return said

    def table(self) -> Table:
        """A row per trial; the chosen one is bold."""
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
) -> Tuning:
    """Look for a better opening (of long texts), cost, cluster size and threshold, one after the other.

    The search starts from `config`.

    Every trial trains one tree, also where the model is to have more.

    Parameters
    ----------
    train, validation
        What trials are trained on and measured on.
    run_dir
        Keep trees there, and find those again that were trained before.
    on_event
        Hears of progress, and "trial" after each.
    """
    if len(validation) < MIN_DOCUMENTS:
        raise DataError(
            f"there are {len(validation)} documents to tune on, and at least {MIN_DOCUMENTS} are needed; "
            "give a larger validation split, or train without tuning"
        )
    plan = {name: list(_candidates(config, name, train)) for name in STEPS}
    names = [name for name in STEPS if plan[name] or name != OPENING]
    trials: list[Trial] = []
    features: dict[TfidfConfig, tuple[Csr, Dataset]] = {}

    def tried(setting: str, changed: LinearTreeConfig) -> Trial:
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
        best = tried("", replace(config, n_trees=1))
        for setting, steps in plan.items():
            top = best
            for step in steps:
                trial = tried(setting, stepped(best.config, setting, step))
                if top is best or _score(trial) > _score(top):
                    top = trial
                kept = {best.config.tfidf, top.config.tfidf}  # features take room
                features = {read: found for read, found in features.items() if read in kept}
            if _score(top) - _score(best) >= MIN_GAIN:
                best = top
    chosen = replace(best.config, n_trees=config.n_trees)
    return Tuning(trials=trials, config=chosen, n_docs=len(validation))


def stepped(config: LinearTreeConfig, setting: str, step: float) -> LinearTreeConfig:
    """The settings with one of them multiplied; the opening is set."""
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
    """The value of a setting, as people read it."""
    if setting == OPENING:
        return f"{config.tfidf.opening}"
    if setting == "max_leaf":
        index = config.index
        if index.method == "none":
            return "–"
        return f"{index.max_leaf}" if index.n_clusters is None else f"{index.n_clusters} clusters"
    return f"{getattr(config.ranker, setting):g}"


def _candidates(config: LinearTreeConfig, setting: str, train: Dataset) -> Iterator[float]:
    """Steps that make sense for this setting."""
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
    """Words of openings that are shorter than most texts; none where the model reads features."""
    documents = train.documents
    if not isinstance(documents, list) or config.tfidf.analyzer != "word":
        return
    sample = documents[:: max(1, len(documents) // SAMPLE)]
    usual = statistics.median(len(text.split()) for text in sample)
    for words in STEPS[OPENING]:
        if words != config.tfidf.opening and usual >= LONGER * words:
            yield words


def _as_features(
    config: LinearTreeConfig, train: Dataset, validation: Dataset, on_event: OnEvent | None
) -> tuple[Csr, Dataset]:
    """Features to train on, and the validation documents with theirs: computed once for all trials."""
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
