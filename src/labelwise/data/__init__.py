"""Data: the Dataset, file formats, splits and statistics."""

from labelwise.data.conversion import Conversion, convert
from labelwise.data.dataset import Dataset
from labelwise.data.formats import FORMATS, Format
from labelwise.data.load import load_dataset, load_splits
from labelwise.data.options import BadRows, ReadOptions
from labelwise.data.parts import split_data
from labelwise.data.split import split_validation
from labelwise.data.stats import Statistics, describe, statistics_table

__all__ = [
    "FORMATS",
    "BadRows",
    "Conversion",
    "Dataset",
    "Format",
    "ReadOptions",
    "Statistics",
    "convert",
    "describe",
    "load_dataset",
    "load_splits",
    "split_data",
    "split_validation",
    "statistics_table",
]
