"""Labels added to and removed from a trained model, and further documents for it, without training from scratch."""

from labelwise.incremental.grow import add_labels, added_labels, keep_documents, remove_labels
from labelwise.incremental.new_labels import NewLabel, read_new_labels
from labelwise.incremental.updating import update
from labelwise.models.training_report import AddedLabel

__all__ = [
    "AddedLabel",
    "NewLabel",
    "add_labels",
    "added_labels",
    "keep_documents",
    "read_new_labels",
    "remove_labels",
    "update",
]
