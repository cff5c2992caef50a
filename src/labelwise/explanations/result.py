"""An explanation: what it holds, as plain data that goes to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from rich.console import RenderableType

Span: TypeAlias = tuple[int, int]
"""Where something stands in the text: its first character, and the one after its last."""


@dataclass(frozen=True)
class Word:
    """A term of tf-idf, or a word as the encoder reads it."""

    term: str
    contribution: float
    """What it adds to the label's own score."""
    spans: tuple[Span, ...] = ()
    """Its places in the text; none where the tokenizer does not tell them."""


@dataclass(frozen=True)
class EmbeddingShare:
    """The embedding's share of the label's own score, over the words that the encoder has read."""

    share: float
    """What the embedding adds: base + words + others."""
    base: float
    """What it would add if every word were masked."""
    words: tuple[Word, ...]
    """The strongest words, each at its own place."""
    others: float
    """What all other words add together."""
    error: float
    """What the method's sum missed of share - base before it was spread over the words, as a part of their sizes."""
    method: str
    """How it was found."""


@dataclass(frozen=True)
class PathStep:
    """A node on the path from the root to the label."""

    kind: Literal["node", "cluster", "centroid", "label"]
    """A node of the tree; the cluster above the label; the label's centroid, where there is no tree; the label."""
    node: int
    """Its number in its level."""
    score: float
    """As its model gives it: for the label, the own score that the words add up to."""
    factor: float | None
    """What it counts in the path's score, between 0 and 1; None if it only chooses where to look."""
    n_labels: int
    """Labels at or below it."""
    among: tuple[str, ...] = ()
    """For a cluster, the other labels in it that suit the text best."""


@dataclass(frozen=True)
class Path:
    """The way to the label through one tree."""

    steps: tuple[PathStep, ...]
    score: float
    """The product of the factors, or the label's own score where there are none."""
    weight: float
    """Its part in the label's score: one over the number of trees."""
    listed: bool
    """Whether the search came this way. Of several trees those that do not list a label count 0."""


@dataclass(frozen=True)
class Neighbour:
    """A document that has the label."""

    text: str
    """Its beginning."""
    id: str | None
    similarity: float
    """The cosine between its embedding, or tf-idf, and the text's."""


@dataclass(frozen=True)
class MemberExplanation:
    """What a member of an ensemble says of the label."""

    name: str
    weight: float
    value: float
    """What it counts by the ensemble's rule; 0 or its list's lowest where it does not list the label."""
    contribution: float | None
    """weight * value, which add up to the ensemble's score; None where the rule is no mean."""
    explanation: Explanation


@dataclass(frozen=True)
class Explanation:
    """Why a text has a label, or has not.

    `own_score` is the sum of `bias`, the words' contributions, `others` and the embedding's share; `score` is made of
    it and of the scores along the path, as `combine` says; `probability` is what the score means.
    """

    label: str
    score: float
    """The model's own number; computed as if the search had come to the label where it has not."""
    probability: float | None
    """None if the model is not calibrated."""
    listed: bool
    """Whether the model itself comes to the label for this text."""
    own_score: float
    """h(x, l): what the label's linear models say, averaged over trees and members."""
    bias: float
    words: tuple[Word, ...]
    """The strongest terms of tf-idf."""
    others: float
    """What all other terms add together."""
    neural: EmbeddingShare | None
    """None where the label's models see no embedding."""
    paths: tuple[Path, ...]
    """One for each tree; none of an ensemble, whose members have theirs."""
    combine: str
    """How these make the score, in a sentence."""
    neighbours: tuple[Neighbour, ...] = ()
    members: tuple[MemberExplanation, ...] = ()
    notes: tuple[str, ...] = ()
    """What else there is to know."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Explanation:
        """What `to_dict` gave, also after a way through JSON."""
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
        """The same with only so many words of each kind; the others become one number."""
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
