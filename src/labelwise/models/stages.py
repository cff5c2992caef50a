"""The stages of training, each with a declaration of what its result depends on.

A stage names the settings that it reads, the parts of the training data, and the stages whose results it reads. The key
of a result derives from these declarations alone: a run directory finds results by their keys, so that a killed run
resumes; models that are trained together share the results with equal keys. No list of fields is kept anywhere else.

::

    TFIDF ──► FEATURES ──────────────┐
    TOKENS ─► EMBEDDINGS ────────────┼─► TREE ─► matcher ─► CANDIDATES (─► NEGATIVES) ─► RANKER
    LABEL_TEXT_EMBEDDINGS ───────────┘
    TFIDF ──► FEATURES ─► TREE ─► LEVELS                                 (linear models)

The validation documents have stages of their own: VALIDATION_FEATURES, VALIDATION_TOKENS, VALIDATION_EMBEDDINGS.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from labelwise.events import heard
from labelwise.models.training_data import TrainingData
from labelwise.storage.fingerprint import fingerprint
from labelwise.storage.run_directory import RunDirectory
from labelwise.types import OnEvent

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Stage:
    """A step of training, and what its result depends on."""

    name: str
    """What the run directory calls it."""
    reads: tuple[str, ...] = ()
    """Settings by their names in the model's configuration; a nested configuration stands for all of its settings."""
    ignores: tuple[str, ...] = ()
    """Settings among these that the stage does not read."""
    data: tuple[str, ...] = ()
    """Parts of the training data, by the names that `TrainingData.part` knows."""
    after: tuple[Stage, ...] = ()
    """Stages whose results it reads, whatever the settings."""
    chooses: Callable[[Any], tuple[Stage, ...]] | None = None
    """Further stages whose results it reads, which depend on the settings."""
    all_trees: bool = False
    """Whether it reads the label trees of all models that share a matcher, not its own alone."""
    version: int = 1
    """Raised when the algorithm changes, so that results of earlier versions are not taken for new ones."""

    def settings(self, config: Any) -> dict[str, Any]:
        """The settings that the stage reads, by their names; those that change no result are left out."""
        found: dict[str, Any] = {}
        for name in self.reads:
            value = config
            for part in name.split("."):
                value = getattr(value, part)
            found |= _flat(name, value)
        return {name: value for name, value in found.items() if not _below(name, self.ignores)}

    def upstream(self, config: Any) -> tuple[Stage, ...]:
        """The stages whose results it reads, given the settings."""
        return self.after + (self.chooses(config) if self.chooses is not None else ())


def _flat(name: str, value: Any) -> dict[str, Any]:
    """A setting, or the settings of a nested configuration, by their full names."""
    if not dataclasses.is_dataclass(value):
        return {name: value}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        if field.compare:
            found |= _flat(f"{name}.{field.name}", getattr(value, field.name))
    return found


def _below(name: str, names: tuple[str, ...]) -> bool:
    return any(name == other or name.startswith(f"{other}.") for other in names)


# ---------------------------------------------------------------------- documents

TFIDF = Stage("tfidf", reads=("tfidf",), data=("training documents",))
FEATURES = Stage("features", reads=("tfidf",), data=("training documents",), after=(TFIDF,))
ENCODER = Stage("encoder", reads=("encoder",))
TOKENS = Stage("tokens", reads=("encoder",), data=("training documents",))
EMBEDDINGS = Stage("embeddings", reads=("encoder",), after=(TOKENS,))
VALIDATION_FEATURES = Stage("validation-features", reads=("tfidf",), data=("validation documents",), after=(TFIDF,))
VALIDATION_TOKENS = Stage("validation-tokens", reads=("encoder",), data=("validation documents",))
VALIDATION_EMBEDDINGS = Stage("validation-embeddings", reads=("encoder",), after=(VALIDATION_TOKENS,))
DOCUMENTS = (FEATURES, TOKENS, EMBEDDINGS)
VALIDATION_DOCUMENTS = (VALIDATION_FEATURES, VALIDATION_TOKENS, VALIDATION_EMBEDDINGS)
HELD_OUT = ("held-out rows", "held-out labels", "validation documents")
"""The parts of the training data that say which documents are held out."""

# ---------------------------------------------------------------------- semantic label indexing

LABEL_TEXT_EMBEDDINGS = Stage("label-text-embeddings", reads=("encoder",), data=("label texts",))


def embedding_source(config: Any) -> tuple[Stage, ...]:
    """The stage that a label embedding aggregates (see `labelwise.index.label_embedding.LABEL_EMBEDDINGS`)."""
    from labelwise.index.label_embedding import LABEL_EMBEDDINGS

    stages = {"features": FEATURES, "embeddings": EMBEDDINGS, "label-texts": LABEL_TEXT_EMBEDDINGS}
    return (stages[LABEL_EMBEDDINGS[config.label_embedding].source],)


LABEL_EMBEDDING = Stage(
    "label-embedding",
    reads=("label_embedding", "index.normalize_documents"),
    data=("labels",),
    chooses=embedding_source,
)
TREE = Stage("tree", reads=("index", "seed"), ignores=("index.normalize_documents",), after=(LABEL_EMBEDDING,))
CLUSTERS = Stage("clusters", after=(TREE,))
"""The tree with its clusters right below the root."""

# ---------------------------------------------------------------------- neural matching

FINE_TUNED_MATCHER = Stage(
    "matcher",
    reads=("encoder", "matcher", "linear", "seed"),
    ignores=("matcher.negatives_from",),
    data=("labels", *HELD_OUT),
    after=(*DOCUMENTS, *VALIDATION_DOCUMENTS, TREE),
    all_trees=True,
)
FROZEN_MATCHER = Stage(
    "frozen-matcher",
    reads=("encoder", "matcher.dense_weight", "linear", "seed"),
    data=("labels", "held-out rows"),
    after=(*DOCUMENTS, TREE),
)


def matcher_stage(config: Any) -> Stage:
    """The stage of the matcher that the settings ask for."""
    return FINE_TUNED_MATCHER if config.fine_tune else FROZEN_MATCHER


# ---------------------------------------------------------------------- ranking

CANDIDATES = Stage("candidates", reads=("beam",), chooses=lambda config: (matcher_stage(config),))
VALIDATION_CANDIDATES = Stage("validation-candidates", reads=("beam",), chooses=lambda config: (matcher_stage(config),))
NEGATIVES = Stage("negatives", reads=("beam", "matcher.folds", "seed"), after=(CANDIDATES,))
"""The out-of-fold negatives; without them the candidates are the negatives."""


def negatives_stage(config: Any) -> tuple[Stage, ...]:
    """The stage of the negatives that the settings ask for, beside the candidates."""
    return (CANDIDATES, NEGATIVES) if config.matcher.negatives_from == "out-of-fold" else (CANDIDATES,)


RANKER = Stage(
    "ranker",
    reads=(
        "ranker",
        "features",
        "dense_weight",
        "label_weight",
        "score_transform",
        "matcher_weight",
        "beam",
        "matcher.negatives_from",
        "holdout.calibrate",
        "seed",
    ),
    data=("labels", *HELD_OUT),
    after=(FEATURES, TREE),
    chooses=negatives_stage,
    version=3,
)
LEVELS = Stage(
    "levels",
    reads=(
        "matcher",
        "ranker",
        "matching",
        "neighbours",
        "beam",
        "score_transform",
        "index.normalize_documents",
        "seed",
    ),
    data=("labels", *HELD_OUT),
    after=(FEATURES, VALIDATION_FEATURES, TREE),
)


def inputs(
    stage: Stage,
    config: Any,
    identity: Callable[[str], Any],
    *,
    sharing: Sequence[Any] = (),
    without: Stage | None = None,
) -> dict[str, Any]:
    """All that the result of a stage depends on, derived from its declaration and from those of the stages before it.

    Parameters
    ----------
    identity
        Tells a part of the training data from others.
    sharing
        The configurations of the models that share a matcher, if there are several.
    without
        A stage that is left out, with all that it depends on.
    """
    before: dict[str, Any] = {}
    for other in stage.upstream(config):
        if other is without:
            continue
        several = len(sharing) > 1 and stage.all_trees and other is TREE
        found = [
            inputs(other, one, identity, sharing=sharing, without=without)
            for one in (sharing if several else (config,))
        ]
        before[other.name] = found if several else found[0]
    return {
        "version": stage.version,
        "settings": stage.settings(config),
        "data": {part: identity(part) for part in stage.data},
        "after": before,
    }


@dataclasses.dataclass(frozen=True)
class Storage(Generic[T]):
    """How the result of a stage is kept in a run directory."""

    save: Callable[[T, Path], None]
    load: Callable[[Path], T]


class StageCache:
    """Results of stages by their keys: in memory for models that are trained together, and in a run directory."""

    def __init__(self, data: TrainingData, run: RunDirectory | None = None, on_event: OnEvent | None = None) -> None:
        self.data, self.run = data, run
        self.on_event = heard(on_event) if run is None else run.on_event
        self._results: dict[tuple[str, str], Any] = {}
        self._identities: dict[str, str] = {}
        self._said: set[str] = set()

    def identity(self, part: str) -> str:
        """A fingerprint of a part of the training data; without a run directory there are no others to tell it from."""
        if self.run is None:
            return part
        if part not in self._identities:
            self._identities[part] = fingerprint(self.data.part(part))
        return self._identities[part]

    def get(
        self,
        stage: Stage,
        inputs: Mapping[str, Any],
        compute: Callable[[], T],
        storage: Storage[T] | None = None,
    ) -> T:
        """The result of a stage: from memory, from the run directory, or computed.

        Parameters
        ----------
        inputs
            All that the result depends on, as `Pipeline.inputs` lists it.
        storage
            How the run directory keeps the result; memory alone keeps it where there is none.
        """
        key = stage.name, fingerprint(inputs)
        if key not in self._results:
            if self.run is None or storage is None:
                self._results[key] = compute()
            else:
                self._results[key] = self.run.stage(
                    stage.name,
                    inputs=inputs,
                    compute=compute,
                    save=storage.save,
                    load=storage.load,
                )
        result: T = self._results[key]
        return result

    def has(self, stage: Stage, inputs: Mapping[str, Any]) -> bool:
        """Whether a result is in memory."""
        return (stage.name, fingerprint(inputs)) in self._results

    def put(self, stage: Stage, inputs: Mapping[str, Any], result: Any) -> None:
        """Keep a result in memory that came with another one."""
        self._results[stage.name, fingerprint(inputs)] = result

    def forget(self, *stages: Stage, but: Mapping[str, Any] | None = None) -> None:
        """Remove the results of stages from memory, except for the one with these inputs."""
        names, stays = {stage.name for stage in stages}, None if but is None else fingerprint(but)
        self._results = {key: value for key, value in self._results.items() if key[0] not in names or key[1] == stays}

    def drop(self, stage: Stage, inputs: Mapping[str, Any]) -> None:
        """Remove one result from memory."""
        self._results.pop((stage.name, fingerprint(inputs)), None)

    def scratch(self, stage: Stage, inputs: Mapping[str, Any]) -> Path | None:
        """A folder for files of a stage that is not finished, such as checkpoints; None without a run directory."""
        return None if self.run is None else self.run.scratch(stage.name, inputs)

    def say(self, sentence: str, level: int = logging.INFO) -> None:
        """Report a remark of `fit`, once: an event for `on_event`, and a log line. An empty sentence is not reported.

        The log record has the attribute `is_remark`, so that a program that prints both does not print it twice.
        """
        if not sentence or sentence in self._said:
            return
        self._said.add(sentence)
        logger.log(level, sentence, extra={"is_remark": True})
        if self.on_event is not None:
            self.on_event("remark", {"text": sentence})
