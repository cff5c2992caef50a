"""The interface of all matchers, and the loader that finds the class of a saved one.

A matcher finds the clusters of labels that a text belongs to, and embeds the text. There are four:
`FineTunedMatcher` (an encoder trained on the clusters), `FrozenMatcher` (a pretrained encoder as it is, with linear
models), `ExportedMatcher` (a fine-tuned one without torch) and `SharedMatcherView` (one tree's share of a matcher that
several trees share).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Protocol

from labelwise.features.encoder_folder import TextEncoder, is_exported, load_encoder
from labelwise.match.documents import Documents
from labelwise.match.heads import History, LabelHead
from labelwise.storage.checks import Length, damaged, typed
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, Floats, OnEvent


class Matcher(Protocol):
    """Clusters and embeddings for texts."""

    @property
    def encoder_(self) -> TextEncoder:
        """The encoder that reads the texts."""

    @property
    def device(self) -> Any:
        """The device of the encoder; None where the encoder itself decides."""

    @property
    def label_head(self) -> LabelHead | None:
        """The one-vs-all head over the labels; None where the matcher has only learnt clusters."""

    @property
    def history_(self) -> History | None:
        """The training curve; None where nothing was fine-tuned."""

    @property
    def source(self) -> Matcher:
        """The matcher that computes: itself, or the one that several trees share."""

    @property
    def reads_pretrained(self) -> bool:
        """Whether the embeddings are those of the pretrained encoder, which other models may have computed already."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""

    @property
    def n_features(self) -> int | None:
        """Number of sparse features that the matcher reads; None if it reads the texts alone."""

    @property
    def number_of_tree(self) -> int:
        """Which of the trees of `source` this matcher's clusters belong to."""

    def match(
        self,
        documents: Documents,
        *,
        top_b: int,
        embed: bool = True,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> tuple[Floats, Csr]:
        """(n_docs, hidden) embeddings, and (n_docs, n_clusters) the best clusters with their scores g."""

    def own(self, found: Csr) -> Csr:
        """(n_docs, n_clusters) this matcher's own clusters among those that `source` has found."""

    def write(self, folder: Path, parts: SharedParts) -> dict[str, Any]:
        """Write the matcher into a model's folder; returns the entries that `load_matcher` needs in config.json."""


def load_matcher(
    folder: Path, about: dict[str, Any], parts: SharedParts, *, fine_tuned: bool, verify: bool = True
) -> Matcher:
    """The matcher of a model's folder; torch is imported only where the matcher computes with it.

    Parameters
    ----------
    about
        The entries of config.json, among them those that `Matcher.write` gave.
    fine_tuned
        Whether the encoder was fine-tuned.
    """
    if not fine_tuned:
        from labelwise.match.frozen import FrozenMatcher

        encoder = parts.load(folder / "encoder", load_encoder)
        return FrozenMatcher.load(
            folder, encoder=encoder, device=_device(parts.device) if encoder.trainable else None, verify=verify
        )
    matcher = parts.load(folder, partial(_load_fine_tuned, verify=verify, device=parts.device))
    if "group" not in about:
        own: Matcher = matcher
        return own
    from labelwise.match.shared import SharedMatcherView

    group = typed(Length, about["group"], f"{folder}: group")
    if group >= len(matcher.groups_):
        raise damaged(folder, f"it belongs to tree {group}, and the matcher has clusters of {len(matcher.groups_)}")
    return SharedMatcherView(matcher, group)


def _load_fine_tuned(folder: Path, *, verify: bool, device: str | None) -> Any:
    if is_exported(folder / "encoder"):
        from labelwise.match.exported import ExportedMatcher

        return ExportedMatcher.load(folder, verify=verify)
    from labelwise.match.finetuned import FineTunedMatcher

    return FineTunedMatcher.load(folder, device=_device(device), verify=verify)


def _device(wanted: str | None) -> str | None:
    from labelwise.match.training.distributed import choose_device

    return choose_device(wanted)
