"""Models in smaller, faster forms."""

from labelwise.export.onnx import export_model

__all__ = ["export_model"]
