"""An explanation as plain data, which can be written as JSON and read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from rich.console import RenderableType

Span: TypeAlias = tuple[int, int]
"""A position in the text: the first character, and the character after the last."""


@dataclass(frozen=True)
class Word:
    """A term of tf-idf, or a word that the encoder reads."""

    term: str
    contribution: float
    """Its contribution to the label's own score."""
    spans: tuple[Span, ...] = ()
    """Its positions in the text; empty where the tokenizer does not provide them."""


@dataclass(frozen=True)
class EmbeddingShare:
    """The embedding's share of the label's own score, divided over the words that the encoder has read."""

    share: float
    """The contribution of the embedding: base + words + others."""
    base: float
    """The contribution of the embedding of the text with every word masked."""
    words: tuple[Word, ...]
    """The words with the largest contributions, one entry for each position."""
    others: float
    """The sum of the contributions of all other words."""
    error: float
    """The method's error in share - base, as a part of the sum of absolute contributions, before its distribution over
    the words."""
    method: str
    """The method that divides the share, in words."""


@dataclass(frozen=True)
class PathStep:
    """A node on the path from the root to the label."""

    kind: Literal["node", "cluster", "centroid", "label"]
    """A node of the tree, the cluster above the label, the label's centroid where there is no tree, or the label."""
    node: int
    """Its number in its level."""
    score: float
    """The score of the node's model; for the label, the own score that the words add up to."""
    factor: float | None
    """Its factor in the score of the path, between 0 and 1; None if the score only guides the search."""
    n_labels: int
    """Number of labels at or below the node."""
    among: tuple[str, ...] = ()
    """For a cluster, its other labels with the best scores."""


@dataclass(frozen=True)
class Path:
    """The path to the label through one tree."""

    steps: tuple[PathStep, ...]
    score: float
    """The product of the factors, or the label's own score where there are none."""
    weight: float
    """Its weight in the label's score: one divided by the number of trees."""
    listed: bool
    """Whether the search reaches the label in this tree. A tree that does not list a label counts 0."""


@dataclass(frozen=True)
class Neighbour:
    """A document that has the label."""

    text: str
    """The beginning of its text."""
    id: str | None
    similarity: float
    """The cosine between the embeddings, or the tf-idf vectors, of the document and of the text."""


@dataclass(frozen=True)
class MemberExplanation:
    """The explanation of a label by one member of an ensemble."""

    name: str
    weight: float
    value: float
    """The number that the ensemble's rule combines; 0, or the lowest of its list, where the list lacks the label."""
    contribution: float | None
    """weight * value: these add up to the ensemble's score. None where the rule is no mean."""
    explanation: Explanation


@dataclass(frozen=True)
class Explanation:
    """Why a text has a label, or does not have it.

    `own_score` is the sum of `bias`, the words' contributions, `others` and the embedding's share. `score` is computed
    from `own_score` and the scores along the path, as `combine` says. `probability` is the calibrated score.
    """

    label: str
    score: float
    """The score of the model; where the search does not reach the label, as if it had reached the label."""
    probability: float | None
    """None if the model is not calibrated."""
    listed: bool
    """Whether the search of the model reaches the label for this text."""
    own_score: float
    """h(x, l): the score of the label's linear models, averaged over trees and members."""
    bias: float
    words: tuple[Word, ...]
    """The terms of tf-idf with the largest contributions."""
    others: float
    """The sum of the contributions of all other terms."""
    neural: EmbeddingShare | None
    """None where the label's models read no embedding."""
    paths: tuple[Path, ...]
    """A path for each tree; empty for an ensemble, whose members have their own paths."""
    combine: str
    """How the score is computed, in a sentence."""
    neighbours: tuple[Neighbour, ...] = ()
    members: tuple[MemberExplanation, ...] = ()
    notes: tuple[str, ...] = ()
    """Further remarks."""

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain lists and numbers, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Explanation:
        """The explanation that `to_dict` has written, also after JSON."""
        neural = values["neural"]
        made: dict[str, Any] = {
            "words": _words(values["words"]),
            "neural": None if neural is None else EmbeddingShare(**{**neural, "words": _words(neural["words"])}),
            "paths": tuple(Path(**{**path, "steps": tuple(map(_step, path["steps"]))}) for path in values["paths"]),
            "neighbours": tuple(Neighbour(**found) for found in values["neighbours"]),
            "members": tuple(
                MemberExplanation(**{**member, "explanation": cls.from_dict(member["explanation"])})
                for member in values["members"]
            ),
            "notes": tuple(values["notes"]),
        }
        return cls(**{**values, **made})

    def strongest(self, words: int) -> Explanation:
        """The explanation with at most `words` words of each kind; the contributions of the others are summed."""
        kept, others = _strongest(self.words, words)
        neural = self.neural
        if neural is not None:
            most, rest = _strongest(neural.words, words)
            neural = replace(neural, words=most, others=neural.others + rest)
        members = tuple(replace(m, explanation=m.explanation.strongest(words)) for m in self.members)
        return replace(self, words=kept, others=self.others + others, neural=neural, members=members)

    def __str__(self) -> str:
        from labelwise.explanations.rendering import plain

        return plain(self)

    def __rich__(self) -> RenderableType:
        from labelwise.explanations.rendering import render

        return render(self)


def _strongest(words: tuple[Word, ...], most: int) -> tuple[tuple[Word, ...], float]:
    ordered = sorted(words, key=lambda word: -abs(word.contribution))
    return tuple(ordered[:most]), sum(word.contribution for word in ordered[most:])


def _words(values: list[Mapping[str, Any]]) -> tuple[Word, ...]:
    return tuple(Word(**{**word, "spans": tuple((a, b) for a, b in word["spans"])}) for word in values)


def _step(values: Mapping[str, Any]) -> PathStep:
    return PathStep(**{**values, "among": tuple(values["among"])})
