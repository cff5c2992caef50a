"""Texts as token numbers: what is kept, what is cut, and that nothing but that changes."""

import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.errors import DataError, StorageError, UsageError
from labelwise.features import token_store as tokens
from labelwise.features.token_store import TokenStore
from tests.features.tiny import WORDS, make_tokenizer

TEXTS = ["the law of fishing quotas", "", "a shoe", "cheap " * 500]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer("bert")


def plain(tokenizer, texts, max_length):
    """What transformers itself makes of each text, alone."""
    return [tokenizer(text, truncation=True, max_length=max_length)["input_ids"] for text in texts]


def test_tokens_are_those_of_transformers(tokenizer):
    store = TokenStore.build(TEXTS, tokenizer, 16)
    assert [row.tolist() for row in map(store.__getitem__, range(len(store)))] == plain(tokenizer, TEXTS, 16)
    assert store.lengths.tolist() == [7, 2, 4, 16]
    assert store.indptr.dtype == np.int64
    assert len(store) == 4


def test_special_tokens_stay_when_a_text_is_cut(tokenizer):
    row = TokenStore.build(["law " * 50], tokenizer, 8)[0]
    assert row[0] == tokenizer.cls_token_id
    assert row[-1] == tokenizer.sep_token_id
    assert len(row) == 8


def test_no_texts(tokenizer):
    store = TokenStore.build([], tokenizer, 8)
    assert len(store) == 0
    assert store.tokens.dtype == np.uint16


@pytest.mark.parametrize(("n_more", "dtype"), [(0, np.uint16), (1 << 16, np.uint32)])
def test_the_vocabulary_decides_the_type(n_more, dtype):
    tokenizer = make_tokenizer("bert", n_more)
    store = TokenStore.build(["law", f"unused{n_more - 1}"], tokenizer, 8)
    assert store.tokens.dtype == dtype
    if n_more:
        assert store[1][1] == len(tokenizer) - 1


texts_of_words = st.lists(st.sampled_from([*WORDS, "redshoe", "lawsaeinrst", "?", "  ", "\n", "x" * 120]), max_size=200)


@given(st.lists(texts_of_words.map(" ".join), max_size=5), st.integers(3, 24), st.sampled_from(["bert", "xlnet"]))
def test_cutting_before_tokenising_changes_no_token(texts, max_length, kind):
    tokenizer = _CACHE.setdefault(kind, make_tokenizer(kind))
    store = TokenStore.build(texts, tokenizer, max_length)
    assert [store[row].tolist() for row in range(len(store))] == plain(tokenizer, texts, max_length)


_CACHE = {}


def test_long_texts_are_cut_and_texts_cut_too_short_are_read_in_full(tokenizer, monkeypatch):
    seen = []
    encode = tokens._encode
    monkeypatch.setattr(tokens, "_encode", lambda texts, *rest: seen.append([*map(len, texts)]) or encode(texts, *rest))
    rich, poor = "law of " * 1000, " " * 5000 + "law of the waters"
    store = TokenStore.build([rich, poor], tokenizer, 8)
    assert seen[0][0] < 100
    assert seen[1] == [len(poor)]
    assert store.lengths.tolist() == [8, 6]


def test_threads_change_nothing(tokenizer, monkeypatch):
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    alone, many = (TokenStore.build(TEXTS * 50, tokenizer, 16, threads=threads) for threads in (1, None))
    np.testing.assert_array_equal(alone.tokens, many.tokens)
    assert "TOKENIZERS_PARALLELISM" not in os.environ


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_tokenising_is_silent(tokenizer, capfd, monkeypatch):
    monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    TokenStore.build(TEXTS * 100, tokenizer, 16)
    child = multiprocessing.get_context("fork").Process(target=TokenStore.build, args=(TEXTS * 100, tokenizer, 16))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert capfd.readouterr().err == ""
    assert "TOKENIZERS_PARALLELISM" not in os.environ


def test_progress_is_reported(tokenizer):
    events = []
    TokenStore.build(TEXTS, tokenizer, 8, on_event=lambda name, values: events.append((name, dict(values))))
    assert events[-1][0] == "progress"
    assert events[-1][1]["done"] == events[-1][1]["total"] == 4


def test_rows_are_taken_in_any_order(tokenizer):
    store = TokenStore.build(TEXTS, tokenizer, 16)
    some = store.take(np.array([3, 1, 0, 0]))
    assert [some[row].tolist() for row in range(4)] == [store[row].tolist() for row in (3, 1, 0, 0)]
    assert len(store.take(np.array([], np.int64))) == 0
    np.testing.assert_array_equal(store.take(np.array([True, False, False, True])).lengths, store.lengths[[0, 3]])


def test_round_trip(tokenizer, tmp_path):
    store = TokenStore.build(TEXTS, tokenizer, 16)
    store.save(tmp_path / "tokens")
    again = TokenStore.load(tmp_path / "tokens")
    np.testing.assert_array_equal(again.tokens, store.tokens)
    np.testing.assert_array_equal(again.indptr, store.indptr)
    assert again.tokens.dtype == store.tokens.dtype
    assert not again.tokens.flags.writeable
    file = tmp_path / "tokens" / "arrays.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    with pytest.raises(StorageError, match="damaged"):
        TokenStore.load(tmp_path / "tokens")


def test_lone_surrogates_are_replaced(tokenizer):
    assert TokenStore.build(["law \ud800 of"], tokenizer, 8).lengths.tolist() == [5]


def test_tokens_and_settings_need_no_torch():
    code = (
        "import sys, labelwise.config, labelwise.features.pretrained, labelwise.features.token_store; "
        "labelwise.config.EncoderConfig(); "
        "print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]


def test_bad_input_is_reported(tokenizer):
    with pytest.raises(UsageError, match="got one string"):
        TokenStore.build("law", tokenizer, 8)
    with pytest.raises(UsageError, match="max_length is 0"):
        TokenStore.build(["law"], tokenizer, 0)
    with pytest.raises(DataError, match="text 1 is of class NoneType"):
        TokenStore.build(["law", None], tokenizer, 8)
