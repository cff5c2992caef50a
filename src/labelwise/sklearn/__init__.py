"""The models as scikit-learn estimators."""

from labelwise.sklearn.classifiers import EnsembleClassifier, LinearTreeClassifier, Negatives, XTransformerClassifier

__all__ = ["EnsembleClassifier", "LinearTreeClassifier", "Negatives", "XTransformerClassifier"]
