"""Texts that callers pass in."""

import numpy as np
import pytest

from labelwise.errors import DataError, UsageError
from labelwise.features.texts import text_list, type_and_value


def test_texts_of_any_collection():
    assert text_list(("a", "b")) == text_list(np.array(["a", "b"])) == text_list(x for x in "ab") == ["a", "b"]
    assert text_list([]) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None], r"text number 1 \(counted from 0\) is NoneType \(None\), not a string"),
        (["a", float("nan")], r"text number 1 .* is float \(nan\)"),
        ([b"a"], r"text number 0 .* is bytes"),
        ([10**5000], r"text number 0 \(counted from 0\) is int, not a string"),
        (None, r"the documents are NoneType \(None\); give a list of strings"),
        (5, r"the documents are int \(5\)"),
        (b"abc", "the documents are bytes"),
    ],
)
def test_what_is_no_text(texts, message):
    with pytest.raises(DataError, match=message):
        text_list(texts)


def test_one_string_is_no_list():
    with pytest.raises(UsageError, match="got one string"):
        text_list("abc")


def test_long_values_are_cut():
    assert type_and_value("x" * 100) == f"str ('{'x' * 36}...)"
