"""Numbering, ordering and spelling of terms."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelwise.features.vocabulary import Vocabulary, VocabularyBuilder, alphabetical_order, join_letters

TERMS = st.lists(
    st.one_of(st.text(max_size=30), st.text(alphabet="ab\0", max_size=30), st.text("a", max_size=40)), unique=True
)


@given(TERMS)
def test_alphabetical_order_is_that_of_python(terms):
    letters, sizes = join_letters(terms)
    ends = np.cumsum(sizes)
    order = alphabetical_order(letters, ends - sizes, ends)
    assert [terms[i] for i in order] == sorted(terms)


def test_terms_round_trip():
    terms = ["alpha", "", "日本", "β γ"]
    vocabulary = Vocabulary.build(*join_letters(terms), np.array([5, 6, 7, 8], np.uint64))
    assert len(vocabulary) == 4
    assert vocabulary.terms() == terms
    assert [vocabulary.term(i) for i in range(4)] == terms
    assert vocabulary.find(np.array([8, 5, 9], np.uint64)).tolist() == [3, 0, -1]


def test_a_term_with_hash_zero_is_never_found():
    vocabulary = Vocabulary.build(*join_letters(["a", "B", "c"]), np.array([5, 0, 7], np.uint64))
    assert vocabulary.find(np.array([5, 7], np.uint64)).tolist() == [0, 2]


def test_builder_numbers_across_blocks():
    builder = VocabularyBuilder()
    rng = np.random.default_rng(1)
    known: dict[int, int] = {}
    for _ in range(20):
        block = np.unique(rng.integers(1, 5000, 800).astype(np.uint64))
        before = builder.n_terms
        numbers = builder.number(block)
        builder.store_letters(*join_letters([str(h) for h, n in zip(block, numbers, strict=True) if n >= before]))
        assert numbers.tolist() == [known.setdefault(h, len(known)) for h in block.tolist()]
    numbers = builder.in_order(np.arange(0, builder.n_terms, 2))
    vocabulary = builder.finish(numbers)
    names = {n: str(h) for h, n in known.items()}
    assert vocabulary.terms() == sorted(names[n] for n in range(0, builder.n_terms, 2))
    assert vocabulary.terms() == [names[n] for n in numbers.tolist()]
