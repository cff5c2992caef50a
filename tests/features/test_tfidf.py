"""Tf-idf: scikit-learn's values, on any text, from any thread."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from labelwise import DataError, Tfidf, UsageError
from labelwise.config import TfidfConfig
from labelwise.errors import StorageError
from labelwise.features import blocks
from tests.reference import tokens as reference

TEXTS = [
    "The cat sat on the mat.",
    "A dog, a cat: two animals!",
    "",
    "mat mat MAT cat_9 über Straße",
    "…",
    "The dog ate the cat's mat",
]


def sklearn_twin(config: TfidfConfig) -> TfidfVectorizer:
    config = config.resolved()
    return TfidfVectorizer(
        analyzer=config.analyzer,
        ngram_range=config.ngram_range,
        token_pattern=r"(?u)\b\w\w+\b" if config.min_token_length == 2 or config.analyzer != "word" else r"(?u)\b\w+\b",
        lowercase=config.lowercase,
        min_df=config.min_df,
        max_df=config.max_df,
        max_features=config.max_features,
        sublinear_tf=config.sublinear_tf,
        use_idf=config.use_idf,
        smooth_idf=config.smooth_idf,
        norm=config.norm,
        dtype=np.float64,
    )


def assert_same(X, names, S, sklearn_names):
    assert names == sklearn_names
    assert X.dtype == np.float32
    assert X.indices.dtype == np.int32
    assert X.has_sorted_indices
    for a, b in zip(X.indptr, X.indptr[1:], strict=False):
        assert (np.diff(X.indices[a:b]) > 0).all()
    assert X.shape == S.shape
    difference = abs(X - S)
    assert difference.max() <= 1e-6 if difference.nnz else True


CONFIGS = st.builds(
    TfidfConfig,
    analyzer=st.sampled_from(["word", "char", "char_wb"]),
    ngram_range=st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 2), (2, 4)]),
    min_token_length=st.sampled_from([1, 2]),
    lowercase=st.booleans(),
    min_df=st.sampled_from([1, 2, 0.3]),
    max_df=st.sampled_from([1.0, 0.9, 3]),
    sublinear_tf=st.booleans(),
    use_idf=st.booleans(),
    norm=st.sampled_from(["l1", "l2", None]),
)


@pytest.mark.rivals
@given(st.lists(st.one_of(st.text(max_size=60), st.text("ab AB.\nΣσİ", max_size=40)), max_size=8), CONFIGS)
def test_equals_scikit_learn_on_any_unicode(texts, config):
    twin = sklearn_twin(config)
    try:
        S = twin.fit_transform(texts)
    except ValueError:  # no terms, or none left
        with pytest.raises((DataError, UsageError)):
            Tfidf(config).fit_transform(texts)
        return
    tfidf = Tfidf(config)
    X = tfidf.fit_transform(texts)
    names = list(twin.get_feature_names_out())
    if config.norm is None and S.nnz:  # unscaled values grow: compare relatively
        S, X = S / S.max(), (X / X.max()).astype(np.float32)
    assert_same(X, tfidf.feature_names(), S, names)
    assert (tfidf.transform(texts) != tfidf.fit_transform(texts)).nnz == 0


@pytest.mark.rivals
def test_max_features_keeps_the_most_frequent():
    texts = ["a a a b b c d d d d", "a b e e e e e", "f"]
    config = TfidfConfig(max_features=3)
    tfidf = Tfidf(config)
    X = tfidf.fit_transform(texts)
    twin = sklearn_twin(config)
    S = twin.fit_transform(texts)
    assert_same(X, tfidf.feature_names(), S, list(twin.get_feature_names_out()))
    assert tfidf.feature_names() == ["a", "d", "e"]


def test_by_hand():
    """Two documents, l2: "a" is in both (idf 1), "b" in one (idf ln(3/2) + 1)."""
    X = Tfidf(TfidfConfig(sublinear_tf=False)).fit_transform(["a a b", "a"])
    b = np.log(1.5) + 1
    length = np.hypot(2, b)
    np.testing.assert_allclose(X.toarray(), [[2 / length, b / length], [1, 0]], rtol=1e-6)


def test_the_opening_by_hand():
    """Three words of the opening with their pairs, of length 0.7 next to the text's own 1."""
    config = TfidfConfig(opening=3, opening_min_df=1, opening_weight=0.7, sublinear_tf=False, use_idf=False)
    tfidf = Tfidf(config)
    X = tfidf.fit_transform(["On cats. Cats purr", "cats"])
    assert tfidf.feature_names() == ["^cats", "^cats cats", "^on", "^on cats", "cats", "on", "purr"]
    whole = np.hypot(1, 0.7)
    opening = np.array([2, 1, 1, 1]) * 0.7 / np.sqrt(7)
    np.testing.assert_allclose(X.toarray()[0] * whole, [*opening, *np.array([2, 1, 1]) / np.sqrt(6)], rtol=1e-6)
    np.testing.assert_allclose(X.toarray()[1] * whole, [0.7, 0, 0, 0, 1, 0, 0], rtol=1e-6)


def test_rare_terms_of_the_opening_are_dropped():
    tfidf = Tfidf(TfidfConfig(opening=2, opening_min_df=2)).fit(["on cats", "on dogs", "cats on mats"])
    assert tfidf.feature_names() == ["^cats", "^on", "cats", "dogs", "mats", "on"]
    assert "^cats" not in Tfidf(TfidfConfig(opening=2, min_df=3)).fit(["on cats", "on dogs", "cats on"]).feature_names()


@given(
    st.lists(st.text("ab c.", max_size=40), min_size=1, max_size=8),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([(1, 1), (1, 2), (2, 2)]),
    st.sampled_from(["l1", "l2"]),
)
def test_the_opening_is_tfidf_of_the_first_words_next_to_that_of_the_text(texts, n_words, longest, ngram_range, norm):
    texts = [*texts, "a b c a b c"]
    config = TfidfConfig(opening=n_words, opening_ngrams=longest, opening_min_df=1, ngram_range=ngram_range, norm=norm)
    tfidf = Tfidf(config)
    X = tfidf.fit_transform(texts)
    first = [" ".join(reference.words(text)[:n_words]) for text in texts]
    blocks_of = [
        Tfidf(TfidfConfig(ngram_range=(1, longest), norm=norm)).fit_transform(first).toarray() * 0.7,
        Tfidf(TfidfConfig(ngram_range=ngram_range, norm=norm)).fit_transform(texts).toarray(),
    ]
    side_by_side = np.hstack(blocks_of)
    sizes = np.linalg.norm(side_by_side, 1 if norm == "l1" else 2, axis=1, keepdims=True)
    np.testing.assert_allclose(X.toarray(), side_by_side / np.maximum(sizes, 1e-9), atol=1e-6)
    assert (tfidf.transform(texts) != X).nnz == 0


def test_block_borders_and_threads_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.zipf(1.3, rng.integers(0, 30)) % 500) for _ in range(300)]
    whole = Tfidf(threads=1)
    X = whole.fit_transform(texts)
    monkeypatch.setattr(blocks, "CHARACTERS_PER_BLOCK", 700)
    for threads in (1, 2, 5):
        tfidf = Tfidf(threads=threads)
        for got in (tfidf.fit_transform(texts), tfidf.transform(iter(texts)), Tfidf().fit(texts).transform(texts)):
            for part in ("indptr", "indices", "data"):
                np.testing.assert_array_equal(getattr(got, part), getattr(X, part))
        assert tfidf.feature_names() == whole.feature_names()


def test_save_load_is_the_same_and_mapped(tmp_path):
    tfidf = Tfidf(TfidfConfig(ngram_range=(1, 2), min_token_length=2, opening=2, opening_min_df=1))
    X = tfidf.fit_transform(TEXTS)
    tfidf.save(tmp_path / "tfidf")
    loaded = Tfidf.load(tmp_path / "tfidf")
    assert loaded.config == loaded.settings_ == tfidf.settings_
    assert loaded.feature_names() == tfidf.feature_names()
    assert not loaded.idf_.flags.writeable
    assert (loaded.transform(TEXTS) != X).nnz == 0
    loaded.save(tmp_path / "again")
    for name in ("config.json", "arrays.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "tfidf" / name).read_bytes()


def test_same_texts_same_bytes(tmp_path):
    for name in ("one", "two"):
        Tfidf().fit(TEXTS).save(tmp_path / name)
    one, two = ((tmp_path / name / "arrays.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_many_threads_share_one_object():
    tfidf = Tfidf().fit(TEXTS)
    want = tfidf.transform(TEXTS).toarray()
    wrong = []

    def work(i):
        got = [tfidf.transform([TEXTS[i]]).toarray()[0] for _ in range(50)]
        wrong.extend(row for row in got if not np.array_equal(row, want[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(TEXTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_unknown_words_and_empty_texts_give_empty_rows():
    tfidf = Tfidf().fit(["known words"])
    X = tfidf.transform(["unknown things", "", "known"])
    assert np.diff(X.indptr).tolist() == [0, 0, 1]
    assert tfidf.transform([]).shape == (0, 2)


def test_progress_is_reported():
    events = []
    Tfidf().fit(TEXTS, on_event=lambda name, values: events.append((name, values)))
    assert events[-1] == (
        "progress",
        {"task": "tf-idf", "done": 6, "total": None, "unit": "documents", "finished": True},
    )


@pytest.mark.rivals
@pytest.mark.filterwarnings("ignore:Upper case characters")
@pytest.mark.parametrize(
    "vectorizer",
    [
        TfidfVectorizer(),
        TfidfVectorizer(stop_words=["the", "a"], sublinear_tf=True, norm="l1"),
        TfidfVectorizer(ngram_range=(1, 3), token_pattern=r"(?u)\b\w+\b", smooth_idf=False),
        TfidfVectorizer(analyzer="char", ngram_range=(2, 4)),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 5), lowercase=False),
        CountVectorizer(min_df=2),
        TfidfVectorizer(vocabulary={"mat": 0, "Cat": 1, "dog": 2}, use_idf=False),
    ],
    ids=str,
)
def test_converts_a_fitted_vectorizer(vectorizer, tmp_path):
    want = vectorizer.fit_transform(TEXTS)
    tfidf = Tfidf.from_sklearn(vectorizer)
    tfidf.save(tmp_path / "adopted")
    for twin in (tfidf, Tfidf.load(tmp_path / "adopted")):
        got = twin.transform(TEXTS)
        np.testing.assert_allclose(got.toarray(), want.toarray(), atol=1e-6)
        assert twin.feature_names() == list(vectorizer.get_feature_names_out())


@pytest.mark.parametrize(
    ("vectorizer", "message"),
    [
        (TfidfVectorizer(strip_accents="unicode"), "strip_accents='unicode', which has no counterpart"),
        (TfidfVectorizer(ngram_range=(1, 2), stop_words="english"), "stop_words='english'"),
        (TfidfVectorizer(token_pattern=r"[a-z]+"), "token_pattern="),
        (CountVectorizer(binary=True), "binary=True"),
    ],
)
def test_refuses_vectorizers_without_counterpart(vectorizer, message):
    with pytest.raises(UsageError, match=message):
        Tfidf.from_sklearn(vectorizer.fit(TEXTS))


@pytest.mark.parametrize(
    ("config", "texts", "error", "message"),
    [
        (TfidfConfig(), [], DataError, "there are no texts"),
        (TfidfConfig(), ["…", ""], DataError, "the 2 texts hold no word n-gram"),
        (TfidfConfig(), ["a", None], DataError, r"text number 1 \(counted from 0\) is NoneType"),
        (TfidfConfig(), "one text", UsageError, r"write \[text\]"),
        (TfidfConfig(ngram_range=(2, 1)), ["a"], UsageError, "ngram_range is"),
        (TfidfConfig(min_df=1.5), ["a"], UsageError, "min_df is 1.5"),
        (TfidfConfig(min_df=3, max_df=2), ["a"], UsageError, "lower min_df or raise max_df"),
        (TfidfConfig(min_df=2), ["a", "b"], DataError, "leave none of the 2 terms"),
        (TfidfConfig(max_features=0), ["a"], UsageError, "max_features is 0"),
        (TfidfConfig(min_token_length=0), ["a"], UsageError, "min_token_length is 0"),
        (TfidfConfig(opening=-1), ["a"], UsageError, "opening is -1"),
        (TfidfConfig(opening=5, analyzer="char"), ["a"], UsageError, "only words have an opening"),
        (TfidfConfig(opening=5, opening_ngrams=0), ["a"], UsageError, "opening_ngrams is 0"),
        (TfidfConfig(opening=5, opening_weight=0), ["a"], UsageError, "opening_weight is 0"),
    ],
)
def test_bad_input_is_reported(config, texts, error, message):
    with pytest.raises(error, match=message):
        Tfidf(config).fit(texts)


def test_unfitted_is_reported(tmp_path):
    with pytest.raises(UsageError, match="not fitted yet"):
        Tfidf().transform(["a"])
    with pytest.raises(UsageError, match="no vocabulary_"):
        Tfidf.from_sklearn(TfidfVectorizer())
    with pytest.raises(StorageError, match="does not exist"):
        Tfidf.load(tmp_path / "nothing")
