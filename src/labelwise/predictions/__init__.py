"""Predictions: what a model answers, as a matrix, as lists of names, and as a file."""

from labelwise.predictions.reading import read_predictions
from labelwise.predictions.result import Predictions

__all__ = ["Predictions", "read_predictions"]
