"""Labels that come and go without training anew, and documents that come later."""

from labelwise.growing.grow import add_labels, added_labels, keep_documents, remove_labels
from labelwise.growing.labels import NewLabel, read_new_labels
from labelwise.growing.learn import update

__all__ = ["NewLabel", "add_labels", "added_labels", "keep_documents", "read_new_labels", "remove_labels", "update"]
