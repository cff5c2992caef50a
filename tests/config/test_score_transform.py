"""Score transforms: a contract for every entry of the table, and each formula against an independent one."""

from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special

from labelwise.config import LinearTreeConfig, ScoreTransform, XTransformerConfig
from labelwise.config.score_transform import DEFAULT_TRANSFORM, TRANSFORMS, bounded
from labelwise.config.settings import choices
from labelwise.errors import UsageError
from labelwise.explanations.paths import factor, sentence
from labelwise.rank.features import Features
from labelwise.rank.search import BeamSearch, Shortlist
from tests.kernels.test_beam import level_of

SCORES = np.concatenate((np.linspace(-4, 4, 33), [-60.0, 60.0]))
BOUNDED = [name for name, transform in TRANSFORMS.items() if transform.bounded]
UNBOUNDED = [name for name in TRANSFORMS if name not in BOUNDED]


def search_scores(name: str, scores: np.ndarray) -> np.ndarray:
    """The scores of labels directly below the root whose models give `scores`, by beam search."""
    level = level_of(scores.astype(np.float32)[None], np.zeros(len(scores), np.int64))  # one row: the bias
    documents = Features.of(sp.csr_array((1, 1), dtype=np.float32), bias=1.0)
    found = BeamSearch([level], n_features=1, score_transform=name).top(documents, beam=1, top_k=len(scores))
    return found.toarray()[0]


# ------------------------------------------------------------------ the contract of every transform


def test_the_table_holds_every_choice_of_the_settings():
    names = list(TRANSFORMS)
    assert names == list(get_args(ScoreTransform))
    assert names == [choice for choice in choices(LinearTreeConfig, "score_transform") if choice is not None]
    assert names == [choice for choice in choices(XTransformerConfig, "score_transform") if choice is not None]
    assert TRANSFORMS[DEFAULT_TRANSFORM].bounded
    assert len({transform.pecos for transform in TRANSFORMS.values()}) == len(TRANSFORMS)


def test_a_wrong_name_is_answered_with_the_names_of_the_table():
    names = ", ".join(map(repr, TRANSFORMS))
    with pytest.raises(UsageError, match=f"score_transform is 'mean'; it must be one of {names}"):
        LinearTreeConfig(score_transform="mean").validated()


@pytest.mark.parametrize("name", BOUNDED)
def test_factors_are_between_0_and_1_and_rise_with_the_score(name):
    factors = np.exp(TRANSFORMS[name].logarithm(np.linspace(-60, 60, 500)))
    assert factors.min() >= 0
    assert factors.max() <= 1
    assert np.diff(factors).min() >= 0
    assert factors[-1] == pytest.approx(1)
    assert factors[0] < 1e-6


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_formula_in_words_is_the_factor(name):
    code = TRANSFORMS[name].formula.replace("^", "**")
    expected = [eval(code, {"exp": np.exp, "log": np.log, "max": max, "s": score}) for score in SCORES]  # of our table
    logarithm = TRANSFORMS[name].logarithm
    np.testing.assert_allclose(SCORES if logarithm is None else np.exp(logarithm(SCORES)), expected)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_kernel_computes_the_factors_of_the_table(name):
    logarithm = TRANSFORMS[name].logarithm
    wanted = SCORES if logarithm is None else np.exp(logarithm(SCORES))
    np.testing.assert_allclose(search_scores(name, SCORES), wanted, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_shortlist_has_the_logarithms_of_the_table_times_the_weight(name):
    found = sp.csr_array(np.array([[0.5, -2.0, 3.0]], np.float32))
    logarithm = TRANSFORMS[name].logarithm
    wanted = np.zeros(3) if logarithm is None else 0.3 * logarithm(found.data.astype(np.float64))
    np.testing.assert_allclose(Shortlist.of(found, name, 0.3).scores[0], wanted, rtol=1e-6)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_explanations_tell_the_formula_and_the_factor(name):
    found = [factor(score, name, 0.3) for score in SCORES]
    if name in UNBOUNDED:
        assert found == [None] * len(SCORES)
        assert sentence(name, 1).startswith("the score is the label's own score")
    else:
        np.testing.assert_allclose(found, np.exp(TRANSFORMS[name].logarithm(SCORES)) ** 0.3)
        assert TRANSFORMS[name].formula in sentence(name, 1)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_scores_of_several_trees_are_averaged_only_where_they_have_bounds(name):
    config = LinearTreeConfig(n_trees=3, score_transform=name)
    if name in BOUNDED:
        assert config.validated() == config
    else:
        with pytest.raises(UsageError, match=f"score_transform is '{name}', but n_trees is 3.*{DEFAULT_TRANSFORM}"):
            config.validated()


# ------------------------------------------------------------------ each transform against an independent formula


@pytest.mark.parametrize(
    ("name", "factor_of_0", "factor_of_minus_1", "factor_of_a_half"),
    [
        ("l1-hinge", 0.36787944, 0.13533528, 0.60653066),
        ("l2-hinge", 0.36787944, 0.01831564, 0.77880078),
        ("l3-hinge", 0.36787944, 0.00033546, 0.88249690),
        ("l4-hinge", 0.36787944, 0.00000011, 0.93941306),
    ],
)
def test_hinges_on_examples_worked_by_hand(name, factor_of_0, factor_of_minus_1, factor_of_a_half):
    # exp(-1), exp(-2^p), exp(-0.5^p), and 1 from a margin of one on
    found = np.exp(TRANSFORMS[name].logarithm(np.array([0.0, -1.0, 0.5, 1.0, 7.0])))
    assert found == pytest.approx([factor_of_0, factor_of_minus_1, factor_of_a_half, 1.0, 1.0], abs=1e-8)


def test_the_sigmoid_is_scipys():
    np.testing.assert_allclose(TRANSFORMS["sigmoid"].logarithm(SCORES), scipy.special.log_expit(SCORES))


# ------------------------------------------------------------------ scores between 0 and 1


def test_scores_without_bounds_go_through_the_logistic_function_and_others_are_clipped():
    scores = sp.csr_array(np.array([[0.25, -2.0, 0.0], [3.0, 0.0, 1.5]], np.float32))
    free = bounded(scores, logistic=True)
    np.testing.assert_allclose(free.data, scipy.special.expit([0.25, -2.0, 3.0, 1.5]))
    assert bounded(scores, logistic=False).data.tolist() == [0.25, 0.0, 1.0, 1.0]
    assert scores.data.tolist() == [0.25, -2.0, 3.0, 1.5]  # as before
