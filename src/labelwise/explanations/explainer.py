"""`explain`: why a model gives a text its labels."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from labelwise.data import Dataset
from labelwise.errors import UsageError
from labelwise.explanations.context import ExplainContext
from labelwise.explanations.neighbours import Neighbours
from labelwise.explanations.result import Explanation
from labelwise.models.base import Model, check_fitted
from labelwise.predictions.ranking import rank_best
from labelwise.types import OnEvent


def explain(
    model: Model,
    text: str,
    label: str | Sequence[str] | None = None,
    *,
    top_k: int = 3,
    words: int = 10,
    neighbours: Dataset | Neighbours | None = None,
    threads: int | None = None,
    on_event: OnEvent | None = None,
) -> list[Explanation]:
    """Why a text has a label: its words, the path through the tree, and documents like it.

    >>> print(explain(model, "council regulation on fishing quotas")[0])

    Parameters
    ----------
    label
        The label, or labels, to explain; the text's best ones if not given. Those that the search does not come to are
        explained as if it had.
    top_k
        How many of the best labels are explained, and how far several trees are searched: `predict` with the same
        `top_k` gives the same scores.
    words
        Words of each kind, tf-idf's and the encoder's, that are told; what the others add is summed up.
    neighbours
        Documents to show those of that are like the text and have the label. Prepare them once, by `Neighbours.of`,
        to ask more than once.
    threads
        Threads to use; as the model's configuration says if not given.
    """
    if not isinstance(text, str):
        raise UsageError(f"text is a {type(text).__name__}, not a string; explain one text at a time")
    if top_k < 1 or words < 1:
        raise UsageError(f"top_k is {top_k} and words is {words}; both must be at least 1")
    check_fitted(model, "labels_")
    if not model.reads_texts:
        raise UsageError(
            "this model was fitted on features, not on texts, so there are no words to explain its labels by; "
            "train one on the texts"
        )
    names = [label] if isinstance(label, str) else label
    wanted = None if names is None else [_column(model, name) for name in names]
    if isinstance(neighbours, Dataset):
        neighbours = Neighbours.of(model, neighbours, threads=threads, on_event=on_event)
    question = ExplainContext(text, model.reading([text], threads=threads))
    if wanted is None:
        scores = model.scores(question.reading, top_k)
        wanted = scores.indices[rank_best(scores, top_k)[1]].tolist()
    found = _explained(model, question, wanted, top_k)
    if neighbours is not None:
        found = [replace(one, neighbours=neighbours.nearest(model, question, one.label)) for one in found]
    return [one.strongest(words) for one in found]


def _explained(model: Any, question: ExplainContext, labels: Sequence[int], top_k: int) -> list[Explanation]:
    """By the kind of the model; what needs torch is imported for models that have it anyway."""
    if model.kind == "ensemble":
        from labelwise.explanations.ensembles import explain_ensemble

        return explain_ensemble(model, question, labels, top_k, _explained)
    from labelwise.explanations.single_model import explain_transformer, explain_tree

    if model.kind == "linear-tree":
        return explain_tree(model, question, labels, top_k)
    if model.kind == "x-transformer":
        return explain_transformer(model, question, labels)
    raise UsageError(f"{type(model).__name__} cannot be explained; there are explanations of labelwise's own models")


def _column(model: Model, name: str) -> int:
    try:
        return model.labels_.index(name)
    except ValueError:
        close = difflib.get_close_matches(str(name), model.labels_, 1)
        hint = (
            f"did you mean {close[0]!r}?"
            if close
            else f"it has {len(model.labels_)}, the first is {model.labels_[0]!r}"
        )
        raise UsageError(f"the model has no label {name!r}; {hint}") from None
