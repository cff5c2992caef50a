"""Losses of the matcher: a contract for every entry of the table, and each loss against an independent formula."""

from typing import get_args

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import torch

from labelwise.config import MatcherConfig, MatcherLoss
from labelwise.config.settings import choices
from labelwise.errors import UsageError
from labelwise.match.losses import LABEL_LOSS, LOSSES, constant_loss, document_losses


def scores_and_signs(seed: int = 0, shape: tuple[int, int] = (7, 5)) -> tuple[torch.Tensor, torch.Tensor]:
    """Random scores in double precision, and M~ with 1 for about a third of the clusters."""
    rng = np.random.default_rng(seed)
    return torch.tensor(3 * rng.normal(size=shape)), torch.tensor(np.where(rng.random(shape) < 0.3, 1.0, -1.0))


# ------------------------------------------------------------------ the contract of every loss


def test_the_table_holds_every_choice_of_the_setting():
    assert list(LOSSES) == list(get_args(MatcherLoss)) == list(choices(MatcherConfig, "loss"))
    assert LABEL_LOSS in LOSSES


def test_a_wrong_name_is_answered_with_the_names_of_the_table():
    names = ", ".join(map(repr, LOSSES))
    with pytest.raises(UsageError, match=f"loss is 'l2'; it must be one of {names}"):
        MatcherConfig(loss="l2").validated()


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_has_one_value_for_each_score_that_falls_with_the_margin(kind):
    margins = torch.linspace(-20, 20, 401, dtype=torch.float64)
    for sign in (1.0, -1.0):
        found = LOSSES[kind].elementwise(margins[None] * sign, torch.full((1, 401), sign, dtype=torch.float64))
        assert found.shape == (1, 401)
        assert float(found.min()) >= 0
        assert float(found.diff(dim=1).max()) <= 0
        assert float(found[0, 0]) > 1  # a wrong answer with a margin of 20 costs something
        assert float(found[0, -1]) < 1e-6


@pytest.mark.parametrize("kind", LOSSES)
def test_gradients_are_those_of_finite_differences(kind):
    scores, signs = scores_and_signs()
    assert torch.autograd.gradcheck(lambda s: LOSSES[kind].elementwise(s, signs), scores.requires_grad_())


@pytest.mark.parametrize("size", [30.0, 1e4])
@pytest.mark.parametrize("kind", LOSSES)
def test_large_scores_in_single_precision_keep_finite_losses_and_gradients(kind, size):
    scores = torch.tensor([[size, -size, size, -size]], requires_grad=True)
    document_losses(scores, torch.tensor([[1.0, 1.0, -1.0, -1.0]]), kind, mean=False).sum().backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("kind", LOSSES)
def test_a_document_has_the_sum_or_the_mean_of_its_clusters_with_or_without_weights(kind):
    scores, signs = scores_and_signs(1)
    weights = torch.tensor([1.0, 1.0, 2.5, 2.5, 3.0], dtype=torch.float64)
    each = LOSSES[kind].elementwise(scores, signs).numpy()
    for given, plain in ((None, np.ones(5)), (weights, weights.numpy())):
        summed = document_losses(scores, signs, kind, mean=False, weights=given)
        np.testing.assert_allclose(summed, each @ plain)
        averaged = document_losses(scores, signs, kind, mean=True, weights=given)
        np.testing.assert_allclose(averaged, np.average(each, axis=1, weights=plain))


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("kind", LOSSES)
def test_the_constant_loss_is_the_least_of_all_constants(kind, mean):
    rng = np.random.default_rng(2)
    has = rng.random((40, 6)) < np.array([0.05, 0.3, 0.5, 0.9, 0.0, 1.1])  # one nobody has, one that all have
    M = sp.csr_array(has.astype(np.float32))
    best = 0.0
    for k in range(6):
        signs = torch.tensor(np.where(has[:, [k]], 1.0, -1.0))

        def loss(constant, signs=signs):
            return float(LOSSES[kind].elementwise(torch.full((40, 1), constant, dtype=torch.float64), signs).mean())

        best += scipy.optimize.minimize_scalar(loss, bounds=(-30, 30), method="bounded", options={"xatol": 1e-10}).fun
    assert constant_loss(M, kind, mean=mean) == pytest.approx(best / (6 if mean else 1), abs=1e-6)


# ------------------------------------------------------------------ each loss against an independent formula


def test_the_papers_equation_on_an_example_worked_by_hand():
    # One document with the first of three clusters: max(0, 1 - .5)^2 + max(0, 1 - 2)^2 + max(0, 1 + .5)^2
    scores, signs = torch.tensor([[0.5, -2.0, 0.5]]), torch.tensor([[1.0, -1.0, -1.0]])
    assert document_losses(scores, signs, "squared-hinge", mean=False).tolist() == [0.25 + 0.0 + 2.25]
    assert document_losses(scores, signs, "squared-hinge", mean=True).tolist() == pytest.approx([2.5 / 3])
    assert document_losses(scores, signs, "hinge", mean=False).tolist() == [2.0]


@pytest.mark.parametrize(("kind", "p"), [("squared-hinge", 2), ("hinge", 1)])
def test_hinges_are_those_of_torchs_multi_margin_loss(kind, p):
    # For a single score x of class 1 of two classes with scores (0, x), torch sums max(0, 1 - x)^p / 2.
    margins = torch.linspace(-4, 4, 41, dtype=torch.float64)
    pairs = torch.stack((torch.zeros_like(margins), margins), dim=1)
    wanted = torch.nn.MultiMarginLoss(p=p, reduction="none")(pairs, torch.ones(41, dtype=torch.long)) * 2
    for sign in (1.0, -1.0):
        found = LOSSES[kind].elementwise(margins * sign, torch.full_like(margins, sign))
        torch.testing.assert_close(found, wanted)


def test_cross_entropy_is_torchs_own():
    scores, signs = scores_and_signs(3)
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(scores, (signs + 1) / 2, reduction="none")
    torch.testing.assert_close(LOSSES["bce"].elementwise(scores, signs), wanted)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(
    ("kind", "formula", "slope"),
    [
        ("squared-hinge", lambda m: np.maximum(0, 1 - m) ** 2, lambda m: -2 * np.maximum(0, 1 - m)),
        ("hinge", lambda m: np.maximum(0, 1 - m), lambda m: -1.0 * (m < 1)),
        ("bce", lambda m: np.log1p(np.exp(-m)), lambda m: -1 / (1 + np.exp(m))),
    ],
)
def test_losses_and_their_gradients_are_those_of_the_formula(kind, formula, slope, mean):
    scores, signs = scores_and_signs()
    found = document_losses(scores.requires_grad_(), signs, kind, mean=mean)
    found.sum().backward()
    margins, share = (scores * signs).detach().numpy(), 5 if mean else 1
    np.testing.assert_allclose(found.detach(), formula(margins).sum(1) / share)
    np.testing.assert_allclose(scores.grad, signs.numpy() * slope(margins) / share, atol=1e-12)
