"""Stage one: what each label looks like (`embed`), and the tree of clusters above the labels (`cluster`, `tree`)."""

from labelwise.index.tree import Tree

__all__ = ["Tree"]
