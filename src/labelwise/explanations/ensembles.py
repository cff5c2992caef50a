"""The explanations of an ensemble: those of its members, and what each of them counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labelwise.explanations.context import ExplainContext
from labelwise.explanations.result import EmbeddingShare, Explanation, MemberExplanation, Span, Word
from labelwise.explanations.single_model import probability
from labelwise.models.ensemble.rules import Candidates
from labelwise.types import Csr

if TYPE_CHECKING:
    from labelwise.models.base import Model
    from labelwise.models.ensemble import Ensemble

Ask = Callable[["Model", ExplainContext, Sequence[int], int], list[Explanation]]

_COUNTS = {
    "average": "its {over}",
    "rank_average": "1 - rank / depth in its list",
    "sigmoid_average": "the sigmoid of its {over}",
    "softmax_average": "its {over} as a part of its list, by softmax",
}


def explain_ensemble(
    model: Ensemble, question: ExplainContext, labels: Sequence[int], top_k: int, ask: Ask
) -> list[Explanation]:
    """Explain labels of an `Ensemble`; `ask` explains those of a member."""
    depth, additive = max(model.config.candidates_per_model, top_k), model.rule_ != "round_robin"
    weights = (np.asarray(model.weights_) / np.sum(model.weights_)).tolist()
    lists = Candidates.of([_values(model, member, question, depth) for member in model.members_], depth)
    counts = lists.counts(model.rule_, model.over_)
    scores = lists.merge(counts, model.rule_, model.weights_)
    each = [ask(member, question, labels, depth) for member in model.members_]
    explained = []
    for number, label in enumerate(labels):
        reasons = [found[number] for found in each]
        at = np.flatnonzero(lists.labels == label)
        listed = len(at) > 0
        counted = counts[:, at[0]].astype(float).tolist() if listed else [_direct(model, reason) for reason in reasons]
        score = float(scores[at[0]]) if listed else sum(w * v for w, v in zip(weights, counted, strict=True))
        members = tuple(
            MemberExplanation(member.describe(), weight, value, weight * value if additive else None, reason)
            for member, weight, value, reason in zip(model.members_, weights, counted, reasons, strict=True)
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
                words=_merged([(weight, reason.words) for weight, reason in shares]),
                others=0.0,
                neural=_neural([(weight, reason.neural) for weight, reason in shares if reason.neural is not None]),
                paths=(),
                combine=_sentence(model),
                members=members,
                notes=() if listed else (_note(model),),
            )
        )
    return explained


def _values(model: Ensemble, member: Model, question: ExplainContext, depth: int) -> Csr:
    """What a member lists: scores, or probabilities where these are combined."""
    scores = member.scores(question.reading, depth)
    if model.over_ == "scores":
        return scores
    assert member.calibrator_ is not None
    return member.calibrator_.transform_matrix(scores)


def _direct(model: Ensemble, reason: Explanation) -> float:
    """What a member would count that does not list the label: nothing by rules that go by its list."""
    value = reason.score if model.over_ == "scores" else reason.probability or 0.0
    if model.rule_ == "average":
        return value
    return float(1 / (1 + np.exp(-value))) if model.rule_ == "sigmoid_average" else 0.0


def _sentence(model: Ensemble) -> str:
    if model.rule_ == "round_robin":
        return (
            "the score is the label's place where the members take turns with their lists (round_robin): no mean, so "
            "the members' numbers do not add up to it"
        )
    what = _COUNTS[model.rule_].format(over="probability" if model.over_ == "probabilities" else "score")
    return f"the score is the weighted mean ({model.rule_}) of what each member counts: {what}"


def _note(model: Ensemble) -> str:
    if model.rule_ in ("average", "sigmoid_average"):
        return "no member lists this label for this text; its score is what it would have been"
    return f"no member lists this label for this text, and {model.rule_} goes by the lists: its score is 0"


def _merged(parts: Sequence[tuple[float, tuple[Word, ...]]]) -> tuple[Word, ...]:
    """The words of all, each weighted; the same word at the same places is one."""
    added: defaultdict[tuple[str, tuple[Span, ...]], float] = defaultdict(float)
    for weight, words in parts:
        for word in words:
            added[word.term, word.spans] += weight * word.contribution
    return tuple(Word(term, value, spans) for (term, spans), value in added.items())


def _neural(parts: Sequence[tuple[float, EmbeddingShare]]) -> EmbeddingShare | None:
    """The embeddings' shares as one."""
    if not parts:
        return None
    return EmbeddingShare(
        share=sum(weight * neural.share for weight, neural in parts),
        base=sum(weight * neural.base for weight, neural in parts),
        words=_merged([(weight, neural.words) for weight, neural in parts]),
        others=0.0,
        error=max(neural.error for _, neural in parts),
        method=parts[0][1].method,
    )
