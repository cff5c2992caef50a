"""Data: the Dataset, file formats, splits and statistics."""

from labelwise.data.dataset import Dataset
from labelwise.data.detect import FORMATS, Format
from labelwise.data.load import load_dataset, load_splits
from labelwise.data.options import BadRows, ReadOptions

__all__ = ["FORMATS", "BadRows", "Dataset", "Format", "ReadOptions", "load_dataset", "load_splits"]
