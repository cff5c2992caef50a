"""Explanations as plain data and as text."""

import json
import subprocess
import sys

import pytest
from rich.console import Console

from labelwise import explain
from labelwise.explanations import Explanation


def test_an_explanation_survives_json(ensemble, neural, linear, shop):
    text, train = shop["test"].texts[0], shop["train"]
    for model in (ensemble("average"), neural("hybrid"), linear("three-trees"), linear("ranker-only")):
        for one in explain(model, text, top_k=2, neighbours=train.take(range(40))):
            assert Explanation.from_dict(json.loads(json.dumps(one.to_dict(), allow_nan=False))) == one


def test_spans_point_at_the_words(neural, shop):
    for text in shop["test"].texts[:5]:
        for one in explain(neural("hybrid"), text, words=100):
            assert one.words
            for word in one.words:
                assert word.spans
                assert {text[start:end].lower() for start, end in word.spans} == {word.term}
            for word in one.neural.words:
                assert [text[start:end] for start, end in word.spans] == [word.term]


def test_text_and_tables_show_the_sums(ensemble, neural, shop):
    text = shop["test"].texts[0]
    (one,) = explain(neural("hybrid"), text, top_k=1, words=2, neighbours=shop["train"])
    shown_text = str(one)
    assert "\x1b" not in shown_text
    for words in (one.label, "to the label's own score", "the embedding", "with every word masked", "all other words"):
        assert words in shown_text
    assert f"{one.own_score:+.4f} together" in " ".join(shown_text.split())
    assert f"{one.neighbours[0].similarity:.2f}" in shown_text
    console = Console(width=110, color_system=None)
    with console.capture() as shown:
        console.print(one)
    assert [line.rstrip() for line in shown.get().rstrip().split("\n")] == shown_text.split("\n")
    (many,) = explain(ensemble("round_robin"), text, top_k=1)
    assert "member" in str(many)
    assert "do not add up" in " ".join(str(many).split())


def test_markup_in_labels_and_words_is_text(linear, shop):
    (one,) = explain(linear("one-tree"), shop["test"].texts[0], top_k=1)
    odd = Explanation.from_dict({**one.to_dict(), "label": "[red]x[/red]"})
    assert "[red]x[/red]" in str(odd)


@pytest.mark.parametrize("first", ["", "import labelwise.explanations.paths; "])
def test_explain_is_the_function_whatever_was_imported_before_and_needs_no_torch(first):
    code = (
        f"{first}import sys, labelwise; assert 'torch' not in sys.modules\n"
        "try:\n    labelwise.explain(None, 3)\nexcept labelwise.UsageError as err:\n    print(err)\n"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "text is of class int, not a string" in done.stdout
