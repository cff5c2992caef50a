"""The label tree: label embeddings (`label_embedding`), and the tree of clusters above the labels (`build`, `tree`)."""

from labelwise.index.build import build_tree, choose_n_clusters
from labelwise.index.label_embedding import embed_labels
from labelwise.index.tree import Tree

__all__ = ["Tree", "build_tree", "choose_n_clusters", "embed_labels"]
