"""The training loop: it learns, resumes, restarts when it diverges, and adapts to the memory that there is."""

import logging
import math

import numpy as np
import pytest
import torch

from labelwise.errors import UsageError
from labelwise.match.training import loop
from labelwise.match.training.checkpoint import History, load_checkpoint, save_checkpoint
from labelwise.match.training.distributed import Processes
from labelwise.match.training.divergence import DivergenceMonitor
from labelwise.match.training.loop import Criteria, DivergedError, train
from labelwise.match.training.step import TrainStep
from tests.match.planted import problem, recall_of, settings, weights_of


class StoppedError(Exception):
    """Stands for a killed process."""


def run(bert, *, dropout=0.0, pack=False, evaluate=None, checkpoint=None, on_event=None, **changes):
    network, corpus, constant = problem(bert, dropout=dropout, pack=pack)
    recall = None if evaluate is None else lambda: evaluate(network, corpus)
    config = settings(dropout=dropout, **changes)
    criteria = Criteria(constant, recall)
    history = train(network, corpus, config, criteria, checkpoint=checkpoint, on_event=on_event)
    return network, corpus, history


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("loss", ["squared-hinge", "bce"])
def test_a_planted_problem_is_learnt(bert, pack, loss):
    before = recall_of(*problem(bert)[:2])
    network, corpus, history = run(bert, dropout=0.1, pack=pack, loss=loss, epochs=20.0)
    assert before < 50
    assert recall_of(network, corpus) > 99
    assert not network.training
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert all(p.grad is None for p in network.parameters())
    assert history.restarts == []
    losses = [point["loss"] for point in history.curve]
    assert losses[-1] < 0.3 * losses[0]
    assert history.steps >= 20 * 96 // 32
    assert history.tokens >= 20 * corpus.lengths.sum()
    assert history.seconds > 0


def test_the_rate_rises_and_falls_and_steps_can_be_counted(bert):
    rates = []
    network, corpus, constant = problem(bert)
    original = loop.MixedPrecisionOptimizer.set_rates

    def set_rates(self, factor):
        rates.append(factor)
        original(self, factor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.MixedPrecisionOptimizer, "set_rates", set_rates)
        history = train(network, corpus, settings(steps=20, warmup=0.25), Criteria(constant))
    assert history.steps == 20
    np.testing.assert_allclose(rates[:5], np.arange(1, 6) / 5)
    np.testing.assert_allclose(rates[5:], np.arange(15, 0, -1) / 15)


@pytest.mark.parametrize("evaluated", [False, True])
def test_an_interrupted_run_ends_with_the_same_bits(bert, tmp_path, monkeypatch, evaluated):
    monkeypatch.setattr(loop, "SECONDS_PER_CHECKPOINT", 0.0)
    options = {"dropout": 0.1, "epochs": 8.0, "patience": 99, "evaluate": recall_of if evaluated else None}
    whole, _, expected = run(bert, **options)

    def stop(name, values):
        if name == "matcher" and values["step"] == 30 and "loss" in values:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(bert, checkpoint=tmp_path / "checkpoint", on_event=stop, **options)
    events = []
    again, _, history = run(
        bert, checkpoint=tmp_path / "checkpoint", on_event=lambda *event: events.append(event), **options
    )
    assert ("remark", {"text": "going on from step 24, where an earlier run stopped"}) in events
    assert torch.equal(weights_of(again), weights_of(whole))
    assert history.curve == expected.curve
    assert (history.steps, history.tokens) == (expected.steps, expected.tokens)
    assert (history.best_recall, history.best_step) == (expected.best_recall, expected.best_step)


def test_seconds_of_an_earlier_run_count(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SECONDS_PER_CHECKPOINT", 0.0)
    run(bert, checkpoint=tmp_path / "checkpoint", epochs=2.0)
    progress, history, state, best = load_checkpoint(tmp_path / "checkpoint", torch.device("cpu"))
    assert history.seconds > 0
    history.seconds += 1000
    save_checkpoint(tmp_path / "checkpoint", progress, history, state, best, torch.device("cpu"))
    assert run(bert, checkpoint=tmp_path / "checkpoint", epochs=2.0)[2].seconds > 1000


def test_a_damaged_checkpoint_is_ignored_with_a_warning(bert, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(loop, "SECONDS_PER_CHECKPOINT", 0.0)
    expected = weights_of(run(bert, epochs=2.0)[0])
    run(bert, checkpoint=tmp_path / "checkpoint", epochs=2.0)
    file = tmp_path / "checkpoint" / "state" / "arrays.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with caplog.at_level(logging.WARNING):
        network, _, history = run(bert, checkpoint=tmp_path / "checkpoint", epochs=2.0)
    assert "the checkpoint cannot be used" in caplog.text
    assert history.steps == 12
    assert torch.equal(weights_of(network), expected)


def test_a_checkpoint_restores_progress_and_random_numbers(tmp_path):
    state = {"scale": torch.tensor(4.0), "0.weights": torch.arange(3.0)}
    torch.manual_seed(5)
    device = torch.device("cpu")
    assert load_checkpoint(tmp_path / "none", device) is None
    history = History(curve=[{"step": 1, "loss": 2.5}], restarts=["why"], best_recall=3.5)
    save_checkpoint(tmp_path / "one", {"lowest_loss": math.inf}, history, state, [torch.ones(2)], device)
    expected = torch.rand(3)
    torch.manual_seed(6)
    progress, found, tensors, best = load_checkpoint(tmp_path / "one", device)
    assert torch.equal(torch.rand(3), expected)
    assert progress == {"lowest_loss": math.inf}
    assert found == history
    assert tensors.keys() == state.keys()
    assert all(torch.equal(tensors[name], state[name]) for name in state)
    assert torch.equal(best[0], torch.ones(2))


def test_the_best_weights_are_kept_and_patience_ends_training(bert):
    recalls, seen = iter([10.0, 20.0, 60.0, 60.0, 40.0, 59.0, 70.0]), []

    def evaluate(network, corpus):
        seen.append(weights_of(network))
        assert not network.training
        return next(recalls)

    events = []
    network, _, history = run(
        bert, evaluate=evaluate, patience=3, epochs=20.0, on_event=lambda *event: events.append(event)
    )
    assert len(seen) == 6  # at the start, and after five epochs
    assert (history.best_recall, history.best_step, history.steps) == (60.0, 12, 30)
    assert torch.equal(weights_of(network), seen[2])
    assert "recall has not risen for 3 evaluations: stopping at step 30 of 120" in [
        values["text"] for name, values in events if name == "remark"
    ]


def test_without_a_better_recall_the_first_weights_are_kept(bert):
    before = weights_of(problem(bert)[0])
    recalls = iter([90.0, 10.0, 10.0, 10.0])
    network, _, history = run(bert, evaluate=lambda *_: next(recalls), patience=3)
    assert history.best_recall == 90.0
    assert torch.equal(weights_of(network), before)


# ---------------------------------------------------------------------- the monitor


def check(monitor, step, loss, *, similarity=0.1, skipped=0, steps=20):
    return monitor.reason_to_restart(step=step, loss=loss, similarity=similarity, skipped=skipped, steps=steps)


def test_the_monitor_accepts_a_falling_loss():
    monitor = DivergenceMonitor(constant_loss=4.0, total_steps=1000)
    for number in range(50):
        assert check(monitor, 20 * number + 20, 5.0 * 0.9**number, skipped=1) is None


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_the_monitor_notices_a_loss_that_is_no_number(loss):
    assert (
        check(DivergenceMonitor(constant_loss=4.0, total_steps=1000), 20, loss) == "the loss is not a number any more"
    )


def test_the_monitor_notices_a_rising_loss():
    monitor = DivergenceMonitor(constant_loss=4.0, total_steps=1000)
    assert check(monitor, 20, 3.0) is None
    assert check(monitor, 40, 3.9) is None
    assert check(monitor, 60, 4.4) is None  # above that of one answer, but not by half above the best
    assert check(monitor, 80, 4.6) == "the loss rose from 3 to 4.6"
    monitor.best = 0.1
    assert check(monitor, 80, 3.9) is None  # risen, but still better than one answer for all


def test_the_monitor_notices_embeddings_that_are_all_equal():
    monitor = DivergenceMonitor(constant_loss=4.0, total_steps=1000)
    for step in (20, 40, 60, 80):  # at first it may be so
        assert check(monitor, step, 3.0, similarity=0.9999) is None
    assert check(monitor, 100, 3.0, similarity=0.9999) == "all texts have the same embedding"
    monitor.go_back(3.0)
    for step in range(20, 200, 20):  # it must last
        assert check(monitor, step, 3.0, similarity=0.999 if step % 80 == 0 else 0.9999) is None


def test_the_monitor_notices_gradients_that_are_not_finite():
    monitor = DivergenceMonitor(constant_loss=4.0, total_steps=1000)
    assert check(monitor, 20, 3.0, skipped=10) is None
    assert check(monitor, 40, 3.0, skipped=11) == "the gradients of 11 of the last 20 steps were not finite"
    assert check(monitor, 43, 3.0, skipped=2, steps=3) is None


def test_the_monitor_notices_that_nothing_is_learnt():
    monitor = DivergenceMonitor(constant_loss=4.0, total_steps=1000)
    assert check(monitor, 380, 4.1) is None
    assert "does not fall below 4" in check(monitor, 400, 4.1)
    assert check(DivergenceMonitor(constant_loss=4.0, total_steps=100), 80, 4.1) is None  # too early to tell
    monitor.best = 3.9
    assert check(monitor, 400, 4.1) is None  # it once was


def test_where_all_documents_have_the_same_clusters_there_is_nothing_to_learn():
    monitor = DivergenceMonitor(constant_loss=0.0, total_steps=1000)
    for loss in (0.2, 0.01, 0.05):
        assert check(monitor, 500, loss) is None


def test_a_learning_rate_that_is_too_large_is_reduced_until_training_learns(bert):
    events = []
    network, corpus, history = run(
        bert,
        learning_rate=0.3,
        head_learning_rate=0.3,
        epochs=40.0,
        on_event=lambda *event: events.append(event),
    )
    assert 1 <= len(history.restarts) <= 3
    remarks = [values["text"] for name, values in events if name == "remark"]
    assert len(remarks) == len(history.restarts)
    assert "going back to step" in remarks[0]
    assert "0.25 of the learning rate" in remarks[0]
    assert history.steps == 240
    assert recall_of(network, corpus) > 99


def test_training_that_diverges_too_often_is_an_error(bert):
    with pytest.raises(DivergedError) as error:
        run(bert, learning_rate=1e4, head_learning_rate=1e4, epochs=40.0)
    assert str(error.value).startswith("fine-tuning failed 4 times, at last because ")
    assert "set a smaller learning rate" in str(error.value)


def test_after_a_restart_the_loss_is_compared_with_the_loss_at_that_point(bert, monkeypatch):
    """A low loss of steps that were undone must not make the same steps, done again, look like a rise."""
    checks = iter([(5.0, 0.1, 0), (0.5, 0.1, 0), (9.0, 0.1, 0), (5.0, 0.1, 0), *[(0.4, 0.1, 0)] * 9])
    monkeypatch.setattr(TrainStep, "collect", lambda self: next(checks))
    _, _, history = run(bert, steps=100, evaluate_every=100.0)
    assert history.restarts == ["the loss rose from 0.5 to 9 (step 60)"]


@pytest.mark.parametrize(
    ("losses", "steps"),
    [
        ([5.0, 9.0], [0]),  # worse than one answer for all: not worth going back to
        ([1.0, 9.0], [6]),
        ([1.0, 1.2, 9.0], [6]),  # on the way up already
        ([1.0, 9.0, 9.0], [6, 0]),  # wrong again at once: the harm was done before
        ([1.0, 9.0, 0.9, 9.0], [6, 12]),
    ],
)
def test_training_returns_to_weights_that_had_learnt(bert, monkeypatch, losses, steps):
    checks, events = iter([*losses, *[0.8] * 99]), []
    monkeypatch.setattr(TrainStep, "collect", lambda self: (next(checks), 0.1, 0))
    run(bert, epochs=6.0, on_event=lambda *event: events.append(event))
    remarks = [values["text"] for name, values in events if name == "remark"]
    assert [int(remark.partition("going back to step ")[2].split()[0]) for remark in remarks] == steps


# ---------------------------------------------------------------------- memory


@pytest.mark.parametrize("pack", [False, True])
def test_with_too_little_memory_parts_are_smaller_and_the_result_is_the_same(bert, monkeypatch, pack):
    expected, _, whole = run(bert, pack=pack, epochs=2.0)
    original, events = TrainStep._run, []

    def limited(self, rows, shape):
        n = int((rows >= 0).sum())
        if n > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        original(self, rows, shape)

    if pack:  # the parts of a packed batch are wide enough for the longest text besides their share

        def limited(self, rows, shape):
            if shape.width > 100:
                raise torch.OutOfMemoryError("CUDA out of memory")
            original(self, rows, shape)

    monkeypatch.setattr(TrainStep, "_run", limited)
    network, _, history = run(bert, pack=pack, epochs=2.0, on_event=lambda *event: events.append(event))
    remarks = [values["text"] for name, values in events if name == "remark"]
    assert remarks
    assert remarks[-1].startswith("out of memory; going on with ")
    assert "going on with 8 documents at a time" in remarks[0]
    torch.testing.assert_close(weights_of(network), weights_of(expected), atol=2e-3, rtol=1e-2)
    losses = [[point["loss"] for point in one.curve if "loss" in point] for one in (history, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert history.steps == whole.steps


def test_out_of_memory_between_two_parts_leaves_no_gradients(bert, monkeypatch):
    expected, _, _ = run(bert, steps=1)
    original, calls = TrainStep._run, []

    def limited(self, rows, shape):
        calls.append(len(rows))
        if len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        original(self, rows, shape)

    monkeypatch.setattr(TrainStep, "_run", limited)
    network, _, _ = run(bert, steps=1, micro_batch=8)
    assert calls == [8, 8, 4, 4, 4, 4]
    torch.testing.assert_close(network.head.weight, expected.head.weight, atol=1e-5, rtol=1e-3)


def test_out_of_memory_with_single_documents_is_an_error(bert, monkeypatch):
    def never(self, rows, shape):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(TrainStep, "_run", never)
    with pytest.raises(torch.OutOfMemoryError):
        run(bert)


def test_more_processes_than_documents_are_refused(bert):
    network, corpus, constant = problem(bert, n_docs=3)
    with pytest.raises(UsageError, match="start fewer"):
        train(network, corpus, settings(), Criteria(constant), processes=Processes(0, 4))
