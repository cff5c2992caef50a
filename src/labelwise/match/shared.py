"""One encoder for several trees: fine-tuned on the clusters of all of them, which lie side by side in one head.

The paper fine-tunes an encoder for each label embedding. Trees over the same documents ask for much the same of an
encoder, though: sharing one costs a single fine-tuning, and a text is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.features.encoder_folder import TextEncoder
from labelwise.match.documents import Documents
from labelwise.match.exported import ExportedMatcher
from labelwise.match.heads import History, LabelHead
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr

if TYPE_CHECKING:
    from labelwise.match.finetuned import FineTunedMatcher


def side_by_side(clusters: Sequence[Csr]) -> Csr:
    """(n_docs, all clusters) the clusters of several trees side by side; `FineTunedMatcher.groups_` has their sizes."""
    if len(clusters) == 1:
        return clusters[0]
    joined = Csr(sp.hstack(clusters, format="csr"))
    joined.sort_indices()
    return joined


class SharedMatcherView:
    """One tree's share of a matcher that several trees share: a `Matcher`."""

    reads_pretrained = False

    def __init__(self, joint: FineTunedMatcher | ExportedMatcher, group: int) -> None:
        self.joint, self.group = joint, group

    @property
    def encoder_(self) -> TextEncoder:
        """The encoder that all trees share, fine-tuned."""
        return self.joint.encoder_

    @property
    def history_(self) -> History:
        """What the training of all trees looked like."""
        return self.joint.history_

    @property
    def label_head(self) -> LabelHead | None:
        """The one-vs-all head over the labels, which all trees share."""
        return self.joint.label_head

    @property
    def device(self) -> Any:
        """The device of the encoder."""
        return self.joint.device

    @property
    def source(self) -> FineTunedMatcher | ExportedMatcher:
        """The matcher that all trees share."""
        return self.joint

    @property
    def number_of_tree(self) -> int:
        """Which of the trees this is."""
        return self.group

    def match(self, documents: Documents, **options: Any) -> tuple[npt.NDArray[np.float32], Csr]:
        """Embeddings, and the best clusters of this tree with their scores; see `FineTunedMatcher.match`."""
        E, found = self.joint.match(documents, **options)
        return E, self.own(found)

    def own(self, found: Csr) -> Csr:
        """(n_docs, n_clusters) this tree's share of what the shared matcher has found."""
        begin = sum(self.joint.groups_[: self.group])
        return Csr(found[:, begin : begin + self.joint.groups_[self.group]])

    def write(self, folder: Path, parts: SharedParts) -> dict[str, Any]:
        """Write the shared matcher once for all trees; each model's folder says which of its trees it uses."""
        parts.save(self.joint, folder)
        return {"group": self.group}
