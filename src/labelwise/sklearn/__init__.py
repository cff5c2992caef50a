"""The models as scikit-learn estimators."""

from labelwise.sklearn.classifiers import EnsembleClassifier, LinearTreeClassifier, XTransformerClassifier

__all__ = ["EnsembleClassifier", "LinearTreeClassifier", "XTransformerClassifier"]
