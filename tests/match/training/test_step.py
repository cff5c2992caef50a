"""Steps of training: the updates are those of AdamW, parts sum to the whole batch, and 16-bit training is stable."""

import copy

import numpy as np
import pytest
import torch

from labelwise.match.losses import document_losses
from labelwise.match.training import optimizer as optimizer_module
from labelwise.match.training.batches import Batch, Shape
from labelwise.match.training.distributed import Processes
from labelwise.match.training.optimizer import MixedPrecisionOptimizer
from labelwise.match.training.step import TrainStep
from tests.match.planted import batch_of, problem, recall_of, settings, weights_of

ROWS = np.random.default_rng(0).permutation(96)


def make(bert, *, precision="fp32", pack=False, batch_size=16, dropout=0.0, **changes):
    network, corpus, _ = problem(bert, pack=pack, dropout=dropout)
    config = settings(**changes)
    weights = MixedPrecisionOptimizer(network, config, precision, Processes())
    step = TrainStep(network, corpus, weights, config, batch_size)
    network.train()
    weights.set_rates(1.0)
    return network, corpus, weights, step


def loss_of(network, corpus, rows):
    rows = torch.from_numpy(rows)
    scores = network.score(network.embed(corpus.inputs(rows, Shape("padded", corpus.longest))))
    return document_losses(scores, corpus.signs(rows), "squared-hinge", mean=False).mean()


@pytest.mark.parametrize("clip", [0.05, 1e3])
def test_updates_are_those_of_adamw_with_clipping(bert, clip):
    changes = {"max_grad_norm": clip, "weight_decay": 0.3}
    network, corpus, weights, step = make(bert, **changes)
    config = settings(**changes)
    plain = copy.deepcopy(network)
    for p in plain.parameters():
        p.grad = None
    groups = []
    for name, p in plain.named_parameters():
        rate = config.head_learning_rate if name.startswith("head.") else config.learning_rate
        groups.append({"params": [p], "lr": rate, "weight_decay": 0.3 if p.ndim > 1 else 0.0, "rate": rate})
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8)
    start = weights_of(network)
    for number, factor in enumerate((0.3, 1.0, 0.7)):
        rows = ROWS[16 * number : 16 * number + 16]
        weights.set_rates(factor)
        step(batch_of(corpus, rows))
        optimizer.zero_grad()
        loss_of(plain, corpus, rows).backward()
        norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), clip)
        assert (norm > clip) == (clip < 1)
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * factor
        optimizer.step()
    assert (weights_of(network) - start).abs().max() > 1e-3
    ours = dict(network.named_parameters())
    for name, p in plain.named_parameters():
        if not name.endswith("key.bias"):  # their gradients are zero but for rounding, which Adam makes much of
            torch.testing.assert_close(ours[name], p, atol=2e-6, rtol=1e-4)


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("micro_batch", [1, 5, 8])
def test_parts_add_up_to_the_whole_batch(bert, micro_batch, pack):
    found = []
    for size in (None, micro_batch):
        network, corpus, _, step = make(bert, pack=pack, micro_batch=size)
        sizes = []
        learn = step._learn
        step._learn = lambda rows, shape, learn=learn, sizes=sizes: (
            sizes.append(int((rows >= 0).sum())),
            learn(rows, shape),
        )
        for number in range(2):
            step(batch_of(corpus, ROWS[16 * number : 16 * number + 16], pack))
        assert sum(sizes) == 32
        if size is not None and not pack:
            assert max(sizes) <= size
        found.append((weights_of(network), step.collect()))
    torch.testing.assert_close(found[0][0], found[1][0], atol=2e-5, rtol=1e-4)
    assert found[0][1][0] == pytest.approx(found[1][1][0], rel=1e-5)


def test_packed_and_padded_steps_are_the_same(bert):
    found = []
    for pack in (False, True):
        network, corpus, _, step = make(bert, pack=pack)
        step(batch_of(corpus, ROWS[:16], pack))
        found.append((weights_of(network), step.collect()))
    torch.testing.assert_close(found[0][0], found[1][0], atol=2e-5, rtol=1e-4)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-5)


@pytest.mark.parametrize("pack", [False, True])
def test_gradient_checkpointing_changes_nothing(bert, pack):
    found = []
    for again in (False, True):
        network, corpus, _, step = make(bert, pack=pack)
        if again:
            network.model.gradient_checkpointing_enable({"use_reentrant": False})
        step(batch_of(corpus, ROWS[:16], pack))
        found.append(weights_of(network))
    torch.testing.assert_close(found[0], found[1], atol=1e-6, rtol=1e-5)


def test_collect_returns_means_since_the_last_call(bert):
    network, corpus, _, step = make(bert, learning_rate=1e-12, head_learning_rate=1e-12)
    for number in range(3):
        step(batch_of(corpus, ROWS[16 * number : 16 * number + 16]))
    loss, similarity, skipped = step.collect()
    with torch.no_grad():
        assert loss == pytest.approx(float(loss_of(network, corpus, ROWS[:48])), rel=1e-4)
        rows = torch.from_numpy(ROWS[:48])
        E = network.embed(corpus.inputs(rows, Shape("padded", corpus.longest)))
    unit = torch.nn.functional.normalize(E, dim=1).reshape(3, 16, -1)
    cosines = torch.stack([(u @ u.T)[~torch.eye(16, dtype=bool)].mean() for u in unit])
    assert similarity == pytest.approx(float(cosines.mean()), abs=1e-4)
    assert skipped == 0
    assert step.collect() == (0.0, 0.0, 0)  # sums start from zero


def test_the_similarity_of_single_documents_is_0(bert):
    _, corpus, _, step = make(bert, micro_batch=1)
    step(batch_of(corpus, ROWS[:16]))
    assert step.collect()[1] == 0.0


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_masters_keep_updates_that_16_bits_would_round_away(bert, precision):
    network, corpus, weights, step = make(
        bert, precision=precision, learning_rate=1e-6, head_learning_rate=1e-6, weight_decay=0.0
    )
    head = network.head
    assert head.weight.dtype == optimizer_module.DTYPES[precision]
    assert head.bias.tolist() == [-1.0] * 6
    biases = next(group for group in weights.groups if any(p is head.bias for p in group.params))
    master = biases.masters[next(at for at, p in enumerate(biases.params) if p is head.bias)]
    for _ in range(30):
        step(batch_of(corpus, ROWS[:16]))
        assert torch.equal(head.bias, master.to(head.bias.dtype))
    assert head.bias.tolist() == [-1.0] * 6  # 16 bits cannot tell
    assert float((master + 1).abs().min()) > 1e-5
    weights.release(network)
    assert head.bias.dtype == torch.float32
    assert torch.equal(head.bias, master)
    assert head.bias.grad is None


def test_masters_start_as_the_weights_before_rounding(bert):
    network, _, _ = problem(bert)
    before = weights_of(network)
    weights = MixedPrecisionOptimizer(network, settings(), "bf16", Processes())
    assert not torch.equal(weights_of(network), before)
    weights.release(network)
    assert torch.equal(weights_of(network), before)


def test_fp16_skips_overflows_halves_its_scale_doubles_it_and_learns(bert, monkeypatch):
    monkeypatch.setattr(optimizer_module, "STEPS_TO_DOUBLE", 25)
    network, corpus, weights, step = make(bert, precision="fp16")
    weights.scale.fill_(2.0**40)
    before, scale = weights.state(), float(weights.scale)
    step(batch_of(corpus, ROWS[:16]))
    after = weights.state()
    assert all(torch.equal(before[name], after[name]) for name in before if name.endswith(".weights"))
    assert all(float(after[name]) == 0 for name in after if name.endswith(".step"))  # the moments' count too
    assert float(weights.scale) == scale / 2
    assert step.collect()[2] == 1
    for _ in range(100):  # found by itself
        step(batch_of(corpus, ROWS[:16]))
        if float(weights.good_steps):
            break
    low = float(weights.scale)
    assert low <= 2.0**24
    step.collect()
    highest = low
    for number in range(149):
        step(batch_of(corpus, np.roll(ROWS, 16 * number)[:16]))
        highest = max(highest, float(weights.scale))
    assert step.collect()[2] <= 5
    assert highest > low  # where that is too much, it is halved again
    weights.release(network)
    assert recall_of(network, corpus) > 99


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("broken", [float("inf"), float("nan")])
def test_a_broken_gradient_skips_the_step_in_every_precision(bert, precision, broken):
    network, corpus, weights, step = make(bert, precision=precision)
    step(batch_of(corpus, ROWS[:16]))
    before = weights.state()
    network.head.weight.grad[0, 0] = broken
    step(batch_of(corpus, ROWS[16:32]))
    after = weights.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert step.collect()[2] == 1
    step(batch_of(corpus, ROWS[32:48]))  # and the next one counts
    assert not torch.equal(weights.state()["0.weights"], before["0.weights"])


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_restored_state_gives_the_same_next_step(bert, precision):
    _, corpus, weights, step = make(bert, precision=precision)
    step(batch_of(corpus, ROWS[:16]))
    state = weights.state()
    step(batch_of(corpus, ROWS[16:32]))
    expected = weights.state()
    assert not torch.equal(state["0.weights"], expected["0.weights"])
    for again in (False, True):  # by the same one, and by a fresh one
        if again:
            _, corpus, weights, step = make(bert, precision=precision)
        weights.load_state(state)
        step(batch_of(corpus, ROWS[16:32]))
        found = weights.state()
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    start = make(bert, precision=precision)[2].state()  # before any step: the moments are zero again
    weights.load_state(start)
    step(batch_of(corpus, ROWS[:16]))
    assert all(torch.equal(value, state[name]) for name, value in weights.state().items())


def test_restore_sets_the_weights_to_a_copy_from_values(bert):
    network, corpus, weights, step = make(bert, precision="bf16")
    values, before = weights.values(), weights_of(network)
    step(batch_of(corpus, ROWS[:16]))
    assert not torch.equal(weights_of(network), before)
    weights.restore(values)
    assert torch.equal(weights_of(network), before)


def test_halving_ends_with_single_documents(bert):
    step = make(bert, batch_size=6)[3]
    assert [step.halve() for _ in range(5)] == [3, 2, 1, 0, 0]
    sizes = [len(rows) for rows, _ in step._split(Batch(Shape("padded", 16), ROWS[:6]))]
    assert sizes == [1] * 6
