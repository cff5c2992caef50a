"""How labels are grouped into clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from labelwise.config.settings import Count, Range, Settings

LabelEmbedding: TypeAlias = Literal["pifa-tfidf", "pifa-neural", "text-emb"]
"""What a label is clustered by: the tf-idf of its documents, the pretrained embeddings of its documents, or the
embedding of its own text (see `labelwise.index.label_embedding`)."""


@dataclass(frozen=True, kw_only=True)
class IndexConfig(Settings):
    """How labels are grouped into a tree of clusters."""

    RENAMED: ClassVar[Mapping[str, str | None]] = {"embedding": None, "seed": None, "threads": None}

    normalize_documents: bool = False
    """Give each document one vote to share among its labels (rows of Y scaled to length one), not one per label."""
    method: Literal["balanced", "kmeans", "random", "none"] = "balanced"
    """Balanced 2-means; k-way k-means with clusters of any size; equal clusters drawn at random; a single cluster."""
    n_clusters: Count | None = None
    """Clusters just above the labels. If not given, the least power of two above n_labels // max_leaf + 1, which is
    the paper's choice for its data sets. Not for kmeans, where max_leaf decides."""
    branching: Annotated[int, Range(at_least=2)] | None = None
    """Most children of a node above the clusters. If not given, 16 where there are more than 64 clusters and one
    flat level otherwise; 100 for kmeans."""
    max_leaf: Count = 100
    """The most labels that a cluster holds, if n_clusters is not given; for kmeans, labels without an embedding are
    not counted."""
    iterations: Count = 20
    """Most times that the labels of a node are assigned to its children; fewer when nothing moves any more."""
    sample: Annotated[int, Range(at_least=2)] = 100_000
    """Labels of a larger node are assigned by centres that were found on a random sample of this size."""

    def problems(self) -> Iterator[str]:
        """Some methods decide on the number of clusters themselves."""
        if self.n_clusters is not None and self.method in ("kmeans", "none"):
            instead = "set max_leaf instead" if self.method == "kmeans" else "there is a single cluster; leave it out"
            yield f"n_clusters is {self.n_clusters}, but method is {self.method!r}; {instead}"
