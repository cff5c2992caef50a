"""The training loop of the matcher, written out.

One GPU or CPU:      labelwise train DATA MODEL --preset x-transformer --encoder minilm
All GPUs of a node:  accelerate launch -m labelwise train DATA MODEL --preset x-transformer --encoder minilm
Two nodes:           accelerate launch --num_machines 2 --machine_rank 0 --main_process_ip … -m labelwise train …
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from labelwise.config import MatcherConfig
from labelwise.errors import LabelwiseError, UsageError
from labelwise.events import Task
from labelwise.match.heads import History
from labelwise.match.network import Network
from labelwise.match.training.batches import Batch, Packed, Padded, Schedule
from labelwise.match.training.checkpoint import load_checkpoint, save_checkpoint
from labelwise.match.training.device_data import DeviceData
from labelwise.match.training.distributed import Processes
from labelwise.match.training.divergence import DivergenceMonitor
from labelwise.match.training.optimizer import MixedPrecisionOptimizer, choose_precision
from labelwise.match.training.seeding import seeded
from labelwise.match.training.step import TrainStep
from labelwise.types import OnEvent

STEPS_PER_LOOK = 20
SECONDS_PER_CHECKPOINT = 120.0
MOST_RESTARTS = 3


class DivergedError(LabelwiseError):
    """Training went nowhere, also with smaller learning rates."""


def train(
    network: Network,
    corpus: DeviceData,
    config: MatcherConfig,
    *,
    constant_loss: float,
    evaluate: Callable[[], float] | None = None,
    checkpoint: Path | None = None,
    seed: int = 0,
    processes: Processes | None = None,
    on_event: OnEvent | None = None,
) -> History:
    """Fine-tune a network in place.

    Parameters
    ----------
    corpus
        The training documents with their clusters, on the network's device.
    constant_loss
        The loss of the best scores that are the same for all documents, which training must beat (see
        `labelwise.match.losses.constant_loss`).
    evaluate
        Gives the recall of the true clusters of validation documents; the best weights by it are kept, and training
        stops when it has not risen `patience` times. The last weights are kept if there is none.
    checkpoint
        A folder to save the state in from time to time, and to go on from if it is there.
    """
    with seeded(seed, corpus.device):
        return _train(
            network,
            corpus,
            config,
            constant_loss=constant_loss,
            evaluate=evaluate,
            checkpoint=checkpoint,
            seed=seed,
            processes=processes or Processes(),
            on_event=on_event,
        )


def _train(
    network: Network,
    corpus: DeviceData,
    config: MatcherConfig,
    *,
    constant_loss: float,
    evaluate: Callable[[], float] | None,
    checkpoint: Path | None,
    seed: int,
    processes: Processes,
    on_event: OnEvent | None,
) -> History:
    batch_size = min(config.batch_size, len(corpus))
    batch_size -= batch_size % processes.count
    if not batch_size:
        raise UsageError(f"{processes.count} processes cannot share batches of fewer documents; start fewer of them")
    packed = corpus.packer is not None and processes.count == 1
    schedule = Schedule((Packed if packed else Padded)(corpus.lengths, batch_size, seed))
    total = config.steps or max(1, round(config.epochs * schedule.steps_per_epoch))
    warmup = max(1, round(config.warmup * total))
    between = max(1, round(config.evaluate_every * schedule.steps_per_epoch))

    precision = choose_precision(config.precision, corpus.device)
    weights = MixedPrecisionOptimizer(network, config, precision, processes)
    step_of = TrainStep(network, corpus, weights, config, batch_size // processes.count)
    guard = DivergenceMonitor(constant_loss=constant_loss, total_steps=total)
    history, begun = History(), time.perf_counter()
    slower, patience, best = 1.0, 0, None
    step = 0
    if checkpoint is not None and (found := load_checkpoint(checkpoint, corpus.device)) is not None:
        progress, history, state, best = found
        step, slower, patience = progress["step"], progress["slower"], progress["patience"]
        guard.best = progress["lowest_loss"]
        weights.load_state(state)
        _say(on_event, f"going on from step {step}, where an earlier run stopped")
    if processes.agree(step, corpus.device) != step:
        raise UsageError(f"the processes do not find the same checkpoint in {checkpoint}; use a folder that all share")
    earlier = history.seconds
    good_step, good_state, good_loss = step, weights.state(), guard.best
    first = (step, {name: value.cpu() for name, value in good_state.items()}, guard.best)
    went_back_to = -1
    if evaluate is not None and best is None:  # what the start is worth: training must beat it
        network.eval()
        history.best_recall, best = processes.agree(evaluate(), corpus.device), weights.values()
        _tell(on_event, history, step=0, recall=history.best_recall)
    network.train()
    saved, looked = time.perf_counter(), step
    with Task(on_event if processes.first else None, "fine-tuning the matcher", total=total, unit="steps") as task:
        task.advance(step)
        while step < total:
            batch = schedule.batch(step)
            rate = min((step + 1) / warmup, max(0.0, (total - step) / max(1, total - warmup)))
            weights.set_rates(slower * rate)
            mine = batch.rows if processes.count == 1 else batch.rows[processes.share(batch_size)]
            try:
                step_of(Batch(batch.shape, mine))
            except torch.OutOfMemoryError:
                left = step_of.halve()
                if not left:
                    raise
                _say(on_event, f"out of memory; going on with {left} documents at a time, the same batches otherwise")
                continue
            step += 1
            history.tokens += int(corpus.lengths[batch.rows].sum())
            task.advance()

            if step % STEPS_PER_LOOK == 0 or step == total or step % between == 0:
                loss, alike, skipped = step_of.look()
                trouble = guard.trouble(step=step, loss=loss, alike=alike, skipped=skipped, steps=step - looked)
                looked = step
                if trouble is not None:
                    slower /= 4
                    history.restarts.append(f"{trouble} (step {step})")
                    if len(history.restarts) > MOST_RESTARTS:
                        raise DivergedError(
                            f"fine-tuning failed {MOST_RESTARTS + 1} times, at last because {trouble}; "
                            "set a smaller learning rate, a longer warm-up, or precision fp32"
                        )
                    if went_back_to == good_step:  # the harm was done before
                        good_step, good_state, good_loss = first
                    went_back_to = good_step
                    _say(on_event, f"{trouble}: going back to step {good_step} with {slower:g} of the learning rate")
                    weights.load_state(good_state)
                    step = looked = good_step
                    guard.go_back(good_loss)
                    continue
                _tell(on_event, history, step=step, loss=loss, rate=slower * rate * config.learning_rate)
            if evaluate is not None and (step % between == 0 or step == total):
                network.eval()
                recall = processes.agree(evaluate(), corpus.device)
                network.train()
                _tell(on_event, history, step=step, recall=recall)
                patience += 1
                if history.best_recall is None or recall > history.best_recall:
                    history.best_recall, history.best_step, patience = recall, step, 0
                    best = weights.values()
                if patience >= config.patience:
                    _say(on_event, f"recall has not risen for {patience} looks: stopping at step {step} of {total}")
                    break
            if step % between == 0 and guard.content:
                good_step, good_state, good_loss = step, weights.state(), guard.best
            due = looked == step and time.perf_counter() - saved >= SECONDS_PER_CHECKPOINT
            if checkpoint is not None and processes.first and due:
                history.seconds = earlier + time.perf_counter() - begun
                progress = {"step": step, "slower": slower, "patience": patience, "lowest_loss": guard.best}
                save_checkpoint(checkpoint, progress, history, weights.state(), best, corpus.device)
                saved = time.perf_counter()
    if best is not None:
        weights.restore(best)
    weights.release(network)
    network.eval()
    history.steps = step
    history.seconds = earlier + time.perf_counter() - begun
    return history


def _tell(on_event: OnEvent | None, history: History, **point: Any) -> None:
    """A point of the training curve."""
    history.curve.append(point)
    if on_event is not None:
        on_event("matcher", point)


def _say(on_event: OnEvent | None, sentence: str) -> None:
    if on_event is not None:
        on_event("remark", {"text": sentence})
