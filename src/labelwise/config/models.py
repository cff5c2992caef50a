"""The configurations of whole models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, get_args

from labelwise.config.features import EncoderConfig, TfidfConfig
from labelwise.config.holdout import HoldoutConfig
from labelwise.config.index import IndexConfig, LabelEmbedding
from labelwise.config.matcher import MatcherConfig
from labelwise.config.ranker import RankerConfig
from labelwise.config.score_transform import DEFAULT_TRANSFORM, TRANSFORMS, ScoreTransform
from labelwise.config.settings import Count, NonNegative, Place, Positive, Seed, Settings, Share, Threads
from labelwise.errors import UsageError

Rule: TypeAlias = Literal["average", "rank_average", "sigmoid_average", "softmax_average", "round_robin"]
"""Ways to combine the lists of several models into one: see `labelwise.models.ensemble.rules`."""
ScoreSpace: TypeAlias = Literal["scores", "probabilities"]
"""What an ensemble combines."""
RankerFeatures: TypeAlias = Literal["both", "tfidf", "neural"]
"""What the ranker of X-Transformer reads: tf-idf, the embedding, or both."""
Matching: TypeAlias = Literal["tree", "neighbours"]
"""Where a document's labels are looked for: down the tree, or among the labels whose centroids are nearest."""
MemberWeights: TypeAlias = Literal["equal", "learned"]
"""Whether the models of an ensemble count the same, or as held-out documents say."""


def _within(part: str, *names: str) -> dict[str, tuple[Place, ...]]:
    return {name: ((part, name),) for name in names}


_ALL: dict[str, tuple[Place, ...]] = {
    "hold_out": (("holdout", "share"),),
    **_within("holdout", "calibrate", "learn_validation"),
}
"""The flat names of all models."""
_SINGLE: dict[str, tuple[Place, ...]] = {
    **_ALL,
    **_within("tfidf", "analyzer", "ngram_range", "min_df", "max_df", "max_features", "opening"),
    **_within("index", "n_clusters", "branching", "max_leaf"),
    **_within("ranker", "negatives", "positive_weight"),
    "weight_threshold": (("ranker", "threshold"),),
}
"""The flat names of all single models."""
_HOLDOUT_BEFORE: Mapping[str, str | None] = {
    "hold_out": "holdout.share",
    "calibrate": "holdout.calibrate",
    "learn_validation": "holdout.learn_validation",
}


@dataclass(frozen=True, kw_only=True)
class XTransformerConfig(Settings):
    """The three stages of X-Transformer: label index, neural matcher, ranker on tf-idf and embeddings.

    Examples
    --------
    >>> from labelwise import XTransformer, XTransformerConfig
    >>> from labelwise.config import EncoderConfig
    >>> config = XTransformerConfig(encoder=EncoderConfig(name="minilm", max_length=32), fine_tune=False)
    >>> config.describe()
    'minilm, pifa-neural, not fine-tuned'
    >>> model = XTransformer(config)
    """

    kind: ClassVar[str] = "x-transformer"
    family: ClassVar[str] = "X-Transformer"
    """What the models are called in messages."""
    texts_only: ClassVar[bool] = True
    """Whether the documents must be texts, not features."""
    tunable: ClassVar[bool] = False
    """Whether `labelwise.tuning.search` can choose settings."""
    FLAT_NAMES: ClassVar[Mapping[str, tuple[Place, ...]]] = {
        **_SINGLE,
        "encoder": (("encoder", "name"),),
        **_within("encoder", "max_length", "pooling"),
        "cost": (("linear", "cost"), ("ranker", "cost")),
        **_within("matcher", "loss", "epochs", "steps", "batch_size", "micro_batch", "learning_rate"),
        **_within("matcher", "head_learning_rate", "precision", "device", "learn_labels"),
    }
    INSTEAD: ClassVar[Mapping[Place, Place]] = {("matcher", "epochs"): ("matcher", "steps")}
    RENAMED: ClassVar[Mapping[str, str | None]] = {"combine": "score_transform", **_HOLDOUT_BEFORE}

    tfidf: TfidfConfig = field(default_factory=TfidfConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    label_embedding: LabelEmbedding = "pifa-neural"
    """What labels are clustered by: the tf-idf of their documents, the pretrained embeddings of their documents, or the
    embedding of their own text."""
    fine_tune: bool = True
    """Fine-tune the encoder on the clusters; without it the matcher is linear, on tf-idf and pretrained embeddings."""
    matcher: MatcherConfig = field(default_factory=MatcherConfig)
    linear: RankerConfig = field(default_factory=lambda: RankerConfig(tolerance=0.3, max_sweeps=12, threshold=0.1))
    """The linear models of the clusters: the matcher's start and its linear term, or all of it without fine-tuning."""
    ranker: RankerConfig = field(
        default_factory=lambda: RankerConfig(negatives="tfn+man", tolerance=0.1, max_sweeps=30, matcher_sweeps=12)
    )
    """The models of the labels. With matcher-aware negatives their own scores decide, so the
    tolerance is smaller."""
    features: RankerFeatures = "both"
    """What the ranker reads."""
    dense_weight: Positive | None = None
    """Length of the embedding beside tf-idf's 1 in the ranker; chosen on held-out documents if not given, 1 without
    any."""
    label_weight: Share | None = None
    """Share of the network's own score in a label's, the rest being the linear model's on tf-idf, where the matcher
    learns labels; chosen on held-out documents if not given, 0.4 without any."""
    beam: Count = 20
    """Clusters whose labels are ranked; as many of each training document give the matcher-aware negatives."""
    score_transform: ScoreTransform | None = None
    """How the scores of cluster and label become one (see LinearTreeConfig); chosen on held-out documents if not given,
    l3-hinge without any."""
    matcher_weight: NonNegative | None = None
    """The power of the cluster's part in a label's score; chosen on held-out documents if not given, 1 without any."""
    holdout: HoldoutConfig = field(default_factory=HoldoutConfig)
    """Which documents stop the fine-tuning, choose and calibrate."""
    seed: Seed = 0
    """Random seed."""
    threads: Threads = field(default=None, compare=False)
    """Threads to use; all cores if not given. The model does not depend on it."""

    def problems(self) -> Iterator[str]:
        """Labels are learnt while an encoder is fine-tuned."""
        if self.matcher.learn_labels and not self.fine_tune:
            yield "matcher.learn_labels needs an encoder that is fine-tuned; set fine_tune, or leave it out"
        if self.label_weight is not None and not self.matcher.learn_labels:
            yield f"label_weight is {self.label_weight}, but the matcher learns no labels; set matcher.learn_labels"
        elif self.label_weight is not None and self.features != "both":
            yield (
                f"label_weight is {self.label_weight}, but with features {self.features!r} the ranker leaves out the "
                "network's scores of labels; leave it out, or set features to 'both'"
            )
        if self.dense_weight in (None, 1.0):  # 1 is what counts where nothing is weighted
            return
        if self.features != "both":
            yield (
                f"dense_weight is {self.dense_weight}, but with features {self.features!r} the ranker has nothing to "
                "weight; leave it out, or set features to 'both'"
            )
        elif self.matcher.learn_labels:
            yield (
                f"dense_weight is {self.dense_weight}, but where the matcher learns labels, its scores of labels take "
                "the place of the embedding; leave it out, or give label_weight"
            )

    def describe(self) -> str:
        """What tells the model from others, in a few words."""
        frozen = "" if self.fine_tune else ", not fine-tuned"
        return f"{Path(self.encoder.name).name}, {self.label_embedding}{frozen}"

    def encoders(self) -> tuple[EncoderConfig, ...]:
        """The encoders that read the texts."""
        return (self.encoder,)

    def fine_tuning(self) -> MatcherConfig | None:
        """How the encoder is fine-tuned; None where it stays as it was pretrained."""
        return self.matcher if self.fine_tune else None

    def label_trainings(self) -> int:
        """How often one `fit` trains the models of the labels, roughly: for each weight of the embedding that is tried,
        and once more with the held-out documents."""
        return 2 if self.dense_weight is not None or (self.fine_tune and self.matcher.learn_labels) else 4

    def warm_up(self) -> LinearTreeConfig:
        """The settings of a small linear model whose training loads the kernels that this model needs."""
        return LinearTreeConfig()


@dataclass(frozen=True, kw_only=True)
class LinearTreeConfig(Settings):
    """A tree of linear models over tf-idf, or several trees averaged.

    Examples
    --------
    >>> from labelwise import LinearTree, LinearTreeConfig
    >>> from labelwise.config import TfidfConfig
    >>> config = LinearTreeConfig(n_trees=3, tfidf=TfidfConfig(ngram_range=(1, 2)))
    >>> config.describe()
    'linear, 3 trees'
    >>> model = LinearTree(config)
    """

    kind: ClassVar[str] = "linear-tree"
    family: ClassVar[str] = "linear trees"
    """What the models are called in messages."""
    texts_only: ClassVar[bool] = False
    """Whether the documents must be texts, not features."""
    tunable: ClassVar[bool] = True
    """Whether `labelwise.tuning.search` can choose settings."""
    FLAT_NAMES: ClassVar[Mapping[str, tuple[Place, ...]]] = {
        **_SINGLE,
        "cost": (("matcher", "cost"), ("ranker", "cost")),
        "loss": (("matcher", "loss"), ("ranker", "loss")),
    }
    label_embedding: ClassVar[LabelEmbedding] = "pifa-tfidf"
    """What labels are clustered by: the features of their documents."""
    RENAMED: ClassVar[Mapping[str, str | None]] = {"combine": "score_transform", **_HOLDOUT_BEFORE}

    tfidf: TfidfConfig = field(default_factory=TfidfConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    matcher: RankerConfig = field(default_factory=lambda: RankerConfig(tolerance=0.5, max_sweeps=8, threshold=0.15))
    """The models of the nodes above the labels, which only choose clusters, so the tolerance is larger."""
    ranker: RankerConfig = field(default_factory=RankerConfig)
    """The models of the labels."""
    n_trees: Count = 1
    """Number of trees, each with a random seed of its own, whose scores are averaged."""
    matching: Matching = "tree"
    """Where a document's labels are looked for: down the tree, or among the labels whose centroids are nearest; the
    tree then only says which labels are trained together."""
    neighbours: Count = 300
    """Nearest labels of a document that have it as a negative when training and are scored when predicting, where
    matching is by neighbours."""
    beam: Count = 10
    """Number of nodes that the search keeps at each level."""
    score_transform: ScoreTransform = DEFAULT_TRANSFORM
    """How scores along the path to a label become one: the product of exp(-max(0, 1 - s)^p) or of sigmoids, or the
    label's own score alone, the scores above only choosing the clusters."""
    holdout: HoldoutConfig = field(default_factory=HoldoutConfig)
    """Which documents calibrate."""
    seed: Seed = 0
    """Random seed."""
    threads: Threads = field(default=None, compare=False)
    """Threads to use; all cores if not given. The model does not depend on it."""

    def problems(self) -> Iterator[str]:
        """Averages of several trees need scores between 0 and 1, and all levels share one constant feature."""
        if self.n_trees > 1 and self.matching == "neighbours":
            yield (
                f"n_trees is {self.n_trees}, but trees only differ in how they find labels; set it to 1 with neighbours"
            )
        if self.n_trees > 1 and not TRANSFORMS[self.score_transform].bounded:
            others = " or ".join(name for name, transform in TRANSFORMS.items() if transform.bounded)
            yield (
                f"score_transform is {self.score_transform!r}, but n_trees is {self.n_trees}, and scores of different "
                f"trees can only be averaged if they lie between 0 and 1; set n_trees to 1, or score_transform to "
                f"{others}"
            )
        if self.matcher.bias != self.ranker.bias:
            yield "matcher.bias and ranker.bias differ; one constant feature serves both"

    def describe(self) -> str:
        """What tells the model from others, in a few words."""
        trees = f"{self.n_trees} trees" if self.n_trees > 1 else "one tree"
        return f"linear, {trees if self.matching == 'tree' else 'nearest labels'}"

    def encoders(self) -> tuple[EncoderConfig, ...]:
        """The encoders that read the texts: none."""
        return ()

    def fine_tuning(self) -> MatcherConfig | None:
        """How the encoder is fine-tuned: there is none."""
        return None

    def label_trainings(self) -> int:
        """How often one `fit` trains the models of the labels: each tree with and without the held-out documents."""
        return 2 * self.n_trees

    def warm_up(self) -> LinearTreeConfig:
        """The settings of a small linear model whose training loads the kernels that this model needs."""
        return replace(self, n_trees=1)


SingleConfig: TypeAlias = LinearTreeConfig | XTransformerConfig
"""The configuration of a single model: what a preset holds, and what the members of an ensemble are."""


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig(Settings):
    """Several models over the same labels, combined into one.

    Examples
    --------
    >>> from labelwise import Ensemble, EnsembleConfig, LinearTreeConfig, load_preset
    >>> config = EnsembleConfig(members=(LinearTreeConfig(), load_preset("parabel")), rule="average")
    >>> config.describe()
    'ensemble of 2 models'
    >>> model = Ensemble(config)
    """

    kind: ClassVar[str] = "ensemble"
    FLAT_NAMES: ClassVar[Mapping[str, tuple[Place, ...]]] = _ALL
    RENAMED: ClassVar[Mapping[str, str | None]] = {
        "combine": "rule",
        "over": "combine_on",
        "depth": "candidates_per_model",
        **_HOLDOUT_BEFORE,
    }

    members: tuple[SingleConfig, ...] = ()
    """The models to train. The ensemble's `holdout` counts for all of them; where it is as by default, and all members
    have the same one, theirs does."""
    rule: Rule | None = None
    """The rule that combines the models' lists (see `labelwise.models.ensemble.rules`); chosen on held-out documents if
    not given, average without any."""
    combine_on: ScoreSpace | None = None
    """What is combined: the models' own scores, or probabilities; if not given, probabilities where every model has
    them."""
    weights: MemberWeights = "learned"
    """Whether every model counts the same, or as held-out documents say."""
    share_encoder: bool = True
    """Fine-tune one encoder for all models that differ in their label trees and rankers alone, instead of one each."""
    prune: NonNegative | None = None
    """Drop models that raise the mean of P@1, P@3 and P@5 on held-out documents by less than this number of points."""
    candidates_per_model: Count = 20
    """Best labels of each model that are combined; more where more are asked for."""
    holdout: HoldoutConfig = field(default_factory=HoldoutConfig)
    """Which documents choose, weigh and calibrate, in all models."""
    seed: Seed = 0
    """Random seed of the choice of held-out documents."""
    threads: Threads = field(default=None, compare=False)
    """Threads to use, also for members that name no number of their own; all cores if not given."""

    @property
    def texts_only(self) -> bool:
        """Whether the documents must be texts, not features: those of one member are those of all."""
        return any(member.texts_only for member in self.members)

    def for_training(self) -> EnsembleConfig:
        """The checked settings with the one hold-out policy that counts for all members; members' others are refused.

        Members keep what they say of themselves: `fit` applies the policy to them.
        """
        checked = self.validated()
        policies = {member.holdout for member in checked.members}
        if checked.holdout == HoldoutConfig() and len(policies) == 1:
            checked = replace(checked, holdout=policies.pop())
        # Members of a trained ensemble are calibrated, whether the ensemble is or not.
        fitting = (HoldoutConfig(), checked.holdout, replace(checked.holdout, calibrate=True))
        for number, member in enumerate(checked.members, start=1):
            if member.holdout not in fitting:
                raise UsageError(
                    f"member {number} of the ensemble has a hold-out policy of its own ({_policy(member.holdout)}), "
                    f"but one counts for all members ({_policy(checked.holdout)}); set hold_out, calibrate and "
                    "learn_validation for the ensemble, and not for its members"
                )
        return checked

    def describe(self) -> str:
        """What tells the model from others, in a few words."""
        return f"ensemble of {len(self.members)} models"

    def encoders(self) -> tuple[EncoderConfig, ...]:
        """The encoders that read the texts: those of the members, in order."""
        return tuple(encoder for member in self.members for encoder in member.encoders())

    def warm_up(self) -> LinearTreeConfig:
        """The settings of a small linear model whose training loads the kernels that this model needs."""
        return LinearTreeConfig()


def _policy(holdout: HoldoutConfig) -> str:
    """A hold-out policy, in the words of the flat names."""
    return f"hold_out {holdout.share:g}, calibrate {holdout.calibrate}, learn_validation {holdout.learn_validation}"


ModelConfig: TypeAlias = SingleConfig | EnsembleConfig
"""The configuration of any model."""
SINGLE_CONFIGS: tuple[type[SingleConfig], ...] = get_args(SingleConfig)
"""The classes of the configurations of single models."""
MODEL_CONFIGS: tuple[type[ModelConfig], ...] = get_args(ModelConfig)
"""The classes of the configurations of all models; `labelwise.models.registry.KINDS` has the models' classes."""
