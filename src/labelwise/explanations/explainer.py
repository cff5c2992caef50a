"""`explain`: why a model gives a text its labels."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from labelwise.config.settings import Count, checked_value
from labelwise.data import Dataset
from labelwise.errors import UsageError
from labelwise.explanations.context import ExplainContext
from labelwise.explanations.ensembles import explain_ensemble
from labelwise.explanations.neighbours import Neighbours
from labelwise.explanations.result import Explanation
from labelwise.explanations.single_model import explain_single
from labelwise.features.texts import is_collection, type_and_value
from labelwise.models.base import Model, check_fitted, checked_top_k
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
    """Why a text has a label: its words, the path through the tree, and similar documents.

    Parameters
    ----------
    label
        The label, or labels, to explain; the text's best labels if not given. A label that the search does not reach
        is explained as if the search had reached it.
    top_k
        Number of best labels to explain, and depth of the search in several trees: `predict` with the same `top_k`
        gives the same scores.
    words
        Number of words of each kind (of tf-idf, and of the encoder) that are listed; the contributions of all other
        words are summed.
    neighbours
        Documents among which to find those that are similar to the text and have the label. To explain more than one
        text, prepare them once with `Neighbours.of`.
    threads
        Threads to use; as the model's configuration says if not given.

    Examples
    --------
    >>> from labelwise import LinearTree, explain
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> model = LinearTree().fit(texts, labels)
    >>> explanation = explain(model, "a red shoe", "shoe")[0]
    >>> explanation.label, [word.term for word in explanation.words]
    ('shoe', ['shoe', 'red'])
    """
    if not isinstance(text, str):
        raise UsageError(f"text is of class {type(text).__name__}, not a string; explain one text at a time")
    top_k, words = checked_top_k(top_k), checked_value(Count, words, "words")
    check_fitted(model, "labels_")
    if not isinstance(neighbours, Dataset | Neighbours | None):
        raise UsageError(
            f"neighbours is {type_and_value(neighbours)}; give a Dataset, or what Neighbours.of made of one"
        )
    if label is not None and not isinstance(label, str) and not is_collection(label):
        raise UsageError(f"label is {type_and_value(label)}; give a label's name, or a list of names")
    if not model.reads_texts:
        raise UsageError(
            "this model was fitted on features, not on texts, so there are no words to explain its labels by; "
            "train one on the texts"
        )
    names = [label] if isinstance(label, str) else label
    wanted = None if names is None else [_column(model, name) for name in names]
    if isinstance(neighbours, Dataset):
        neighbours = Neighbours.of(model, neighbours, threads=threads, on_event=on_event)
    context = ExplainContext(text, model.reading([text], threads=threads))
    if wanted is None:
        scores = model.scores(context.reading, top_k)
        wanted = scores.indices[rank_best(scores, top_k)[1]].tolist()
    found = _explanations(model, context, wanted, top_k)
    if neighbours is not None:
        found = [replace(one, neighbours=neighbours.nearest(model, context, one.label)) for one in found]
    return [one.strongest(words) for one in found]


def _explanations(model: Model, context: ExplainContext, labels: Sequence[int], top_k: int) -> list[Explanation]:
    combination = model.combination
    if combination is None:
        return explain_single(model, context, labels, top_k)
    return explain_ensemble(model, combination, context, labels, top_k, _explanations)


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
