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
    """Most children of a node above the clusters. If not given, 16 where there are more than 256 clusters and one
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
