"""The explanations of an ensemble: the explanations of its members, and the contribution of each member."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from labelwise.explanations.context import ExplainContext
from labelwise.explanations.result import EmbeddingShare, Explanation, MemberExplanation, Span, Word
from labelwise.explanations.single_model import probability
from labelwise.models.ensemble.rules import Candidates, Combination, member_values

if TYPE_CHECKING:
    from labelwise.models.base import Model

ExplainMember: TypeAlias = Callable[["Model", ExplainContext, Sequence[int], int], list[Explanation]]

_COUNTS = {
    "average": "its {space}",
    "rank_average": "1 - rank / depth in its list",
    "sigmoid_average": "the sigmoid of its {space}",
    "softmax_average": "its {space} as a part of its list, by softmax",
}


def explain_ensemble(
    model: Model,
    combination: Combination,
    context: ExplainContext,
    labels: Sequence[int],
    top_k: int,
    explain_member: ExplainMember,
) -> list[Explanation]:
    """Explain labels of an ensemble, given a function that explains labels of a member."""
    depth, additive = max(combination.candidates_per_model, top_k), combination.rule != "round_robin"
    weights = (np.asarray(combination.weights) / np.sum(combination.weights)).tolist()
    values = [
        member_values(member, member.scores(context.reading, depth), combination.space) for member in model.members
    ]
    lists = Candidates.of(values, depth)
    counts = lists.counts(combination.rule, combination.space)
    scores = lists.merge(counts, combination.rule, combination.weights)
    by_member = [explain_member(member, context, labels, depth) for member in model.members]
    explained = []
    for number, label in enumerate(labels):
        reasons = [found[number] for found in by_member]
        at = np.flatnonzero(lists.labels == label)
        listed = len(at) > 0
        if listed:
            counted, score = counts[:, at[0]].astype(float).tolist(), float(scores[at[0]])
        else:
            counted = [_unlisted_count(combination, reason) for reason in reasons]
            score = sum(weight * value for weight, value in zip(weights, counted, strict=True))
        members = tuple(
            MemberExplanation(member.describe(), weight, value, weight * value if additive else None, reason)
            for member, weight, value, reason in zip(model.members, weights, counted, reasons, strict=True)
        )
        shares = list(zip(weights, reasons, strict=True))
        explained.append(
            Explanation(
                label=model.labels_[label],
                score=score,
                probability=probability(model, score),
                listed=listed,
                own_score=sum(weight * reason.own_score for weight, reason in shares),
                bias=sum(weight * reason.bias for weight, reason in shares),
                words=_merged_words([(weight, reason.words) for weight, reason in shares]),
                others=0.0,
                neural=_merged_shares(
                    [(weight, reason.neural) for weight, reason in shares if reason.neural is not None]
                ),
                paths=(),
                combine=_sentence(combination),
                members=members,
                notes=() if listed else (_note(combination),),
            )
        )
    return explained


def _unlisted_count(combination: Combination, reason: Explanation) -> float:
    """The count of a label that no member lists: 0 for the rules that depend on ranks or lists."""
    value = reason.score if combination.space == "scores" else reason.probability or 0.0
    if combination.rule == "average":
        return value
    return float(1 / (1 + np.exp(-value))) if combination.rule == "sigmoid_average" else 0.0


def _sentence(combination: Combination) -> str:
    if combination.rule == "round_robin":
        return (
            "the score depends on the rank at which the label appears when the members' lists are read in turn "
            "(round_robin): it is no mean, so the members' numbers do not add up to it"
        )
    what = _COUNTS[combination.rule].format(space="probability" if combination.space == "probabilities" else "score")
    return f"the score is the weighted mean ({combination.rule}) of one number for each member: {what}"


def _note(combination: Combination) -> str:
    if combination.rule in ("average", "sigmoid_average"):
        return "no member lists this label for this text; its score is what it would be otherwise"
    return f"no member lists this label for this text, and {combination.rule} depends on the lists: its score is 0"


def _merged_words(parts: Sequence[tuple[float, tuple[Word, ...]]]) -> tuple[Word, ...]:
    """The weighted words of all members; the same word at the same positions is one."""
    added: defaultdict[tuple[str, tuple[Span, ...]], float] = defaultdict(float)
    for weight, words in parts:
        for word in words:
            added[word.term, word.spans] += weight * word.contribution
    return tuple(Word(term, value, spans) for (term, spans), value in added.items())


def _merged_shares(parts: Sequence[tuple[float, EmbeddingShare]]) -> EmbeddingShare | None:
    """The weighted embedding shares of all members as one."""
    if not parts:
        return None
    return EmbeddingShare(
        share=sum(weight * neural.share for weight, neural in parts),
        base=sum(weight * neural.base for weight, neural in parts),
        words=_merged_words([(weight, neural.words) for weight, neural in parts]),
        others=0.0,
        error=max(neural.error for _, neural in parts),
        method=parts[0][1].method,
    )
