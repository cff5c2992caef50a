"""The positions of terms in a text."""

import re

import pytest

from labelwise.config import TfidfConfig
from labelwise.explanations.positions import term_places
from labelwise.features.tfidf import Tfidf

TEXTS = [
    "Red shoes, red  socks and a RED hat",
    "Größe 42:  Straße\tnach Öl",
    "İstanbul ile İzmir ΟΔΟΣ Σ",
    "x 日本語 😀 text 😀😀 y",
    "  two   spaces\n\nand lines  ",
    "",
]


def named(tfidf, text):
    return {tfidf.vocabulary_.term(column): spans for column, spans in term_places(tfidf, text).items()}


def test_by_hand():
    tfidf = Tfidf(TfidfConfig(ngram_range=(1, 2))).fit(TEXTS)
    places = named(tfidf, TEXTS[0])
    assert places["red"] == ((0, 3), (11, 14), (28, 31))
    assert places["red socks"] == ((11, 21),)
    assert places["shoes red"] == ((4, 14),)
    assert named(tfidf, "nothing of RED this kind") == {"red": ((11, 14),)}


def test_words_of_the_opening_stand_where_the_words_do():
    tfidf = Tfidf(TfidfConfig(opening=3, opening_min_df=1)).fit(TEXTS)
    places = named(tfidf, TEXTS[0])
    assert places["red"] == ((0, 3), (11, 14), (28, 31))
    assert places["^red"] == ((0, 3), (11, 14))
    assert places["^shoes red"] == ((4, 14),)
    assert "^socks" not in places


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("lowercase", [True, False])
def test_spans_of_words_point_at_the_words(text, lowercase):
    tfidf = Tfidf(TfidfConfig(lowercase=lowercase, min_token_length=2)).fit(TEXTS)
    places = named(tfidf, text)
    assert set(places) == {tfidf.feature_names()[at] for at in tfidf.transform([text]).indices}
    for term, spans in places.items():
        for start, end in spans:
            there = text[start:end]
            assert (there.lower() if lowercase else there).startswith(term[:1])
            # Python's own words; a dot that lower-casing makes of İ is no part of one.
            assert re.fullmatch(r"\w+", there)
            if "İ" not in there and "Σ" not in there:
                assert (there.lower() if lowercase else there) == term


@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
@pytest.mark.parametrize("text", TEXTS)
def test_spans_of_characters(analyzer, text):
    tfidf = Tfidf(TfidfConfig(analyzer=analyzer, ngram_range=(2, 3))).fit(TEXTS)
    row = tfidf.transform([text])
    places = term_places(tfidf, text)
    assert set(places) == set(row.indices.tolist())
    for column, spans in places.items():
        term = tfidf.vocabulary_.term(column)
        for start, end in spans:
            there = text[start:end]
            assert 0 <= start <= end <= len(text)
            if "İ" not in text and "Σ" not in text:
                expected = term.strip() if analyzer == "char_wb" else term
                assert (re.sub(r"\s\s+", " ", there) if analyzer == "char" else there).lower() == expected


def test_letters_that_grow_when_lower_cased_do_not_move_what_follows():
    tfidf = Tfidf(TfidfConfig(analyzer="char", ngram_range=(3, 3))).fit(["zmir ile"])
    assert named(tfidf, "İİ zmir") == {"zmi": ((3, 6),), "mir": ((4, 7),)}
    words = Tfidf(TfidfConfig()).fit(["ile zmir"])
    assert named(words, "İİ, ile ile") == {"ile": ((4, 7), (8, 11))}


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
def test_every_occurrence_has_a_place(analyzer):
    tfidf = Tfidf(TfidfConfig(analyzer=analyzer, ngram_range=(1, 3), use_idf=False, sublinear_tf=False, norm=None))
    X = tfidf.fit_transform(TEXTS)
    for row, text in enumerate(TEXTS):
        counts = dict(zip(X[[row]].indices.tolist(), X[[row]].data.tolist(), strict=True))
        assert {column: len(spans) for column, spans in term_places(tfidf, text).items()} == counts
