"""The data sets of the paper: where they lie, how they are fetched, and their conversion. Nothing else fetches data."""

from labelwise.datasets.paper.get import PaperData, get_paper_set
from labelwise.datasets.paper.table import PaperSet, find_set, paper_sets

__all__ = ["PaperData", "PaperSet", "find_set", "get_paper_set", "paper_sets"]
