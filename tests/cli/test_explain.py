"""labelwise explain: tables, JSON, standard input, and what it refuses."""

import io
import json

import pytest

from labelwise import load_model
from labelwise.explanations import Explanation, explain

TEXT = "a mirror for the bathroom"


def test_tables(labelwise, model):
    result = labelwise("explain", model, TEXT, "--top-k", "2", "--words", "3")
    assert (result.code, result.err) == (0, "")
    expected = explain(load_model(model), TEXT, top_k=2, words=3)
    for one in expected:
        assert f"{one.label}  probability {one.probability:.3f}, score {one.score:.4f}" in result.out
        assert one.combine in " ".join(result.out.split())
    for words in ("mirror", "together", "before any word is read", "cluster"):
        assert words in result.out
    assert "documents with this label" not in result.out


def test_json_of_a_label_with_documents(labelwise, model, shop):
    label = load_model(model).labels_[7]
    result = labelwise("explain", model, TEXT, "--label", label, "--data", shop, "--json")
    assert result.code == 0
    told = json.loads(result.out)
    assert told["text"] == TEXT
    (one,) = map(Explanation.from_dict, told["explanations"])
    assert one.label == label
    assert one.neighbours
    (expected,) = explain(load_model(model), TEXT, label)
    assert one.own_score == pytest.approx(expected.own_score)
    for word in one.words:
        assert all(TEXT[start:end] == word.term for start, end in word.spans)


def test_standard_input_and_a_model_without_probabilities(labelwise, plain_model, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a mirror\nfor the bathroom\n"))
    result = labelwise("explain", plain_model, "-", "--top-k", "1", "--json")
    assert json.loads(result.out)["text"] == "a mirror\nfor the bathroom\n"
    assert json.loads(result.out)["explanations"][0]["probability"] is None
    assert "not calibrated" in result.err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--top-k", "0"), 2, "--top-k 0: give 1 or more"),
        (("--words", "-1"), 2, "--words -1: give 1 or more"),
        (("--label", "no such label §"), 2, "the model has no label 'no such label §'"),
        (("--data", "nowhere"), 1, "nowhere"),
    ],
)
def test_bad_input_is_told_in_one_sentence(labelwise, model, options, code, words):
    result = labelwise("explain", model, TEXT, *options)
    assert (result.code, result.out) == (code, "")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_a_text_in_another_encoding(labelwise, model):
    result = labelwise("explain", model, "stra\udcdfe", "--json")
    assert (result.code, result.out) == (1, "")
    assert "convert it first" in result.err


def test_no_model(labelwise, tmp_path):
    result = labelwise("explain", tmp_path / "none", TEXT)
    assert (result.code, result.err.count("\n")) == (1, 1)
