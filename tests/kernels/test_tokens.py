"""UTF-8 kernels against plain Python."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.features.blocks import ALL
from labelwise.features.characters import AWKWARD, character_table, to_bytes
from labelwise.kernels.tokens import (
    add_openings,
    fold_characters,
    hash_windows,
    hash_words,
    spell_codes,
    spell_words,
)
from tests.reference import tokens as reference

TEXTS = st.lists(st.text(max_size=40), max_size=6)


def encoded(texts, lowercase=True):
    parts = [to_bytes(text, lowercase) for text in texts]
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum([len(part) for part in parts], dtype=np.int64)


def starts_of(ends):
    return np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(ends)]


def terms_of_docs(letters, sizes, indptr):
    ends = np.cumsum(sizes)
    terms = [
        bytes(letters[end - size : end]).decode("utf-8", "surrogatepass") for size, end in zip(sizes, ends, strict=True)
    ]
    return [terms[a:b] for a, b in pairwise(indptr)]


def test_the_table_knows_what_python_knows():
    table, plain = character_table(True), character_table(False)
    for code in [*range(0x3000), *range(0x1F000, 0x1F100), 0x10FFFF]:
        character = chr(code)
        assert bool(table[code] >> 31) == (character.isalnum() or character == "_"), hex(code)
        assert bool(table[code] >> 30 & 1) == character.isspace(), hex(code)
        assert plain[code] & 0x1FFFFF == code
        if character not in AWKWARD:
            assert chr(table[code] & 0x1FFFFF) == character.lower(), hex(code)


@given(TEXTS, st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_words_are_those_of_the_regular_expression(texts, min_length, n_min, more, lowercase):
    buffer, ends = encoded(texts, lowercase)
    table = character_table(lowercase)
    hashes, starts, stops, indptr = hash_words(
        buffer, starts_of(ends), ends, table, min_length, n_min, n_min + more, ALL
    )
    got = terms_of_docs(*spell_words(buffer, table, min_length, starts, stops), indptr)
    want = [reference.words(text, min_length, n_min, n_min + more, lowercase) for text in texts]
    assert [sorted(doc) for doc in got] == [sorted(doc) for doc in want]
    flat = [term for doc in got for term in doc]
    assert len(set(hashes.tolist())) == len(set(flat))  # equal terms, equal hashes, and only they
    assert 0 not in hashes


@given(TEXTS, st.integers(1, 3), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_openings_are_the_first_words(texts, min_length, n_words, longest, lowercase):
    buffer, ends = encoded(texts, lowercase)
    table, starts = character_table(lowercase), starts_of(ends)
    opened = hash_words(buffer, starts, ends, table, min_length, 1, longest, n_words)
    got = terms_of_docs(*spell_words(buffer, table, min_length, *opened[1:3]), opened[3])
    first = [" ".join(reference.words(text, min_length, lowercase=lowercase)[:n_words]) for text in texts]
    want = [reference.words(text, min_length, 1, longest, lowercase=False) for text in first]
    assert [sorted(doc) for doc in got] == [sorted(doc) for doc in want]

    found = hash_words(buffer, starts, ends, table, min_length, 1, longest, ALL)
    hashes, _, _, indptr, opening = add_openings(*found, *opened)
    whole = terms_of_docs(*spell_words(buffer, table, min_length, *found[1:3]), found[3])
    marks = [opening[a:b].tolist() for a, b in pairwise(indptr)]
    assert marks == [[False] * len(doc) + [True] * len(more) for doc, more in zip(whole, got, strict=True)]
    np.testing.assert_array_equal(hashes[~opening], found[0])
    assert not set(hashes[opening].tolist()) & set(hashes[~opening].tolist())
    assert len(set(hashes[opening].tolist())) == len({term for doc in got for term in doc})


@given(TEXTS, st.integers(1, 4), st.integers(0, 3), st.booleans(), st.booleans())
def test_windows_are_those_of_scikit_learn(texts, n_min, more, bounded, lowercase):
    buffer, ends = encoded(texts, lowercase)
    codes, *pieces = fold_characters(buffer, ends, character_table(lowercase), bounded)
    hashes, starts, stops, indptr = hash_windows(codes, *pieces, n_min, n_min + more, bounded)
    got = terms_of_docs(*spell_codes(codes, starts, stops), indptr)
    want = [reference.windows(text, n_min, n_min + more, bounded, lowercase) for text in texts]
    assert [sorted(doc) for doc in got] == [sorted(doc) for doc in want]
    flat = [term for doc in got for term in doc]
    assert len(set(hashes.tolist())) == len(set(flat))


@pytest.mark.parametrize(
    "text", ["ΟΔΥΣΣΕΥΣ Σ ΑΣ, Σίσυφος", "İSTANBUL İ", "ẞß Ǆ ﬁ", "\ud800 a\udfff", "日本語テキスト x٣"]
)
def test_awkward_letters(text):
    buffer, ends = encoded([text])
    table = character_table(True)
    _, starts, stops, indptr = hash_words(buffer, starts_of(ends), ends, table, 1, 1, 1, ALL)
    assert terms_of_docs(*spell_words(buffer, table, 1, starts, stops), indptr) == [reference.words(text)]


def test_word_order_matters_in_n_grams():
    buffer, ends = encoded(["red shoe", "shoe red"])
    hashes, *_ = hash_words(buffer, starts_of(ends), ends, character_table(True), 1, 2, 2, ALL)
    assert hashes[0] != hashes[1]


def test_read_only_input_works():
    buffer, ends = encoded(["one two", "two"])
    buffer.flags.writeable = ends.flags.writeable = False
    hashes, *_ = hash_words(buffer, starts_of(ends), ends, character_table(True), 1, 1, 1, ALL)
    assert hashes[1] == hashes[2]
