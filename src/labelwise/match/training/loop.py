"""The training loop of the matcher, written out.

One GPU or CPU:      labelwise train DATA MODEL --preset x-transformer --encoder minilm
All GPUs of a node:  accelerate launch -m labelwise train DATA MODEL --preset x-transformer --encoder minilm
Two nodes:           accelerate launch --num_machines 2 --machine_rank 0 --main_process_ip … -m labelwise train …
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

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

STEPS_PER_CHECK = 20
"""Steps between two readings of the loss from the device."""
SECONDS_PER_CHECKPOINT = 120.0
MAX_RESTARTS = 3


class DivergedError(LabelwiseError):
    """Training diverged, also with smaller learning rates."""


@dataclass(frozen=True)
class Criteria:
    """What training is measured by."""

    constant_loss: float
    """The loss of the best scores that are the same for all documents, which training must beat (see
    `labelwise.match.losses.constant_loss`)."""
    recall: Callable[[], float] | None = None
    """Returns the recall of the true clusters of held-out documents. The weights with the best recall are kept, and
    training stops when it has not risen `patience` times in a row. Without it the last weights are kept."""


def train(
    network: Network,
    corpus: DeviceData,
    config: MatcherConfig,
    criteria: Criteria,
    *,
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
    checkpoint
        A folder where the state is saved from time to time. If a state is there already, training continues from it.
    """
    processes = processes or Processes()
    with seeded(seed, corpus.device):
        schedule = _schedule(corpus, config, seed, processes)
        training = _Training(network, corpus, config, criteria, schedule, processes, checkpoint, on_event)
        return training.run()


def _schedule(corpus: DeviceData, config: MatcherConfig, seed: int, processes: Processes) -> Schedule:
    """The batches of all processes together."""
    batch_size = min(config.batch_size, len(corpus))
    batch_size -= batch_size % processes.count
    if not batch_size:
        raise UsageError(f"{processes.count} processes cannot share batches of fewer documents; start fewer of them")
    packed = corpus.packer is not None and processes.count == 1
    return Schedule((Packed if packed else Padded)(corpus.lengths, batch_size, seed))


@dataclass(frozen=True)
class _RestartPoint:
    """Weights that training can return to when it diverges."""

    step: int
    state: dict[str, Tensor]
    best_loss: float


class _Training:
    """One run of training, and its state between two steps."""

    def __init__(
        self,
        network: Network,
        corpus: DeviceData,
        config: MatcherConfig,
        criteria: Criteria,
        schedule: Schedule,
        processes: Processes,
        checkpoint: Path | None,
        on_event: OnEvent | None,
    ) -> None:
        self.network, self.corpus, self.config, self.criteria = network, corpus, config, criteria
        self.schedule, self.processes, self.checkpoint, self.on_event = schedule, processes, checkpoint, on_event
        self.total = config.steps or max(1, round(config.epochs * schedule.steps_per_epoch))
        self.warmup = max(1, round(config.warmup * self.total))
        self.between = max(1, round(config.evaluate_every * schedule.steps_per_epoch))
        """Steps between two evaluations."""
        precision = choose_precision(config.precision, corpus.device)
        self.weights = MixedPrecisionOptimizer(network, config, precision, processes)
        self.train_step = TrainStep(network, corpus, self.weights, config, schedule.plan.batch_size // processes.count)
        self.monitor = DivergenceMonitor(constant_loss=criteria.constant_loss, total_steps=self.total)
        self.history, self.begun = History(), time.perf_counter()
        self.step, self.patience = 0, 0
        self.slowdown = 1.0
        """The share of the learning rate that is left after restarts."""
        self.best: list[Tensor] | None = None
        """The weights with the best recall so far."""

    def run(self) -> History:
        """Train to the end."""
        self._resume()
        self.restart_point = self._point()
        self.first_point = replace(
            self.restart_point, state={name: value.cpu() for name, value in self.restart_point.state.items()}
        )
        self.returned_to = -1
        self.network.train()
        if self.criteria.recall is not None and self.best is None:  # training must beat the weights it starts from
            self.history.best_recall, self.best = self._recall(), self.weights.values()
            self._record(step=0, recall=self.history.best_recall)
        self.saved, self.checked = time.perf_counter(), self.step
        reports = self.on_event if self.processes.first else None
        with Task(reports, "fine-tuning the matcher", total=self.total, unit="steps") as task:
            task.advance(self.step)
            while self.step < self.total:
                if not self._take_step():
                    continue
                task.advance()
                end, evaluate = self.step == self.total, self.step % self.between == 0
                if (self.step % STEPS_PER_CHECK == 0 or end or evaluate) and not self._check():
                    continue
                if self.criteria.recall is not None and (evaluate or end) and self._is_exhausted():
                    break
                if evaluate and self.monitor.is_learning:
                    self.restart_point = self._point()
                self._save_checkpoint()
        if self.best is not None:
            self.weights.restore(self.best)
        self.weights.release(self.network)
        self.network.eval()
        self.history.steps = self.step
        self.history.seconds = self._seconds()
        return self.history

    # ------------------------------------------------------------------ steps

    @property
    def rate(self) -> float:
        """The learning rate of the next step, as a share of the configured one: it rises, then falls linearly."""
        done = max(0.0, (self.total - self.step) / max(1, self.total - self.warmup))
        return self.slowdown * min((self.step + 1) / self.warmup, done)

    def _take_step(self) -> bool:
        """Train on one batch. False if memory ran out: the same batch is then tried again, in smaller parts."""
        batch, self.last_rate = self.schedule.batch(self.step), self.rate
        self.weights.set_rates(self.last_rate)
        own = batch.rows
        if self.processes.count > 1:
            own = batch.rows[self.processes.share(self.schedule.plan.batch_size)]
        try:
            self.train_step(Batch(batch.shape, own))
        except torch.OutOfMemoryError:
            left = self.train_step.halve()
            if not left:
                raise
            self._remark(f"out of memory; going on with {left} documents at a time, the same batches otherwise")
            return False
        self.step += 1
        self.history.tokens += int(self.corpus.lengths[batch.rows].sum())
        return True

    def _check(self) -> bool:
        """Read loss and similarity from the device. False if training diverged and continues from earlier weights."""
        loss, similarity, skipped = self.train_step.collect()
        reason = self.monitor.reason_to_restart(
            step=self.step, loss=loss, similarity=similarity, skipped=skipped, steps=self.step - self.checked
        )
        self.checked = self.step
        if reason is not None:
            self._restart(reason)
            return False
        self._record(step=self.step, loss=loss, rate=self.last_rate * self.config.learning_rate)
        return True

    def _restart(self, reason: str) -> None:
        """Return to earlier weights, with a quarter of the learning rate."""
        self.slowdown /= 4
        self.history.restarts.append(f"{reason} (step {self.step})")
        if len(self.history.restarts) > MAX_RESTARTS:
            raise DivergedError(
                f"fine-tuning failed {MAX_RESTARTS + 1} times, at last because {reason}; "
                "set a smaller learning rate, a longer warm-up, or precision fp32"
            )
        if self.returned_to == self.restart_point.step:  # these weights were broken already
            self.restart_point = self.first_point
        point = self.restart_point
        self._remark(f"{reason}: going back to step {point.step} with {self.slowdown:g} of the learning rate")
        self.weights.load_state(point.state)
        self.step = self.checked = self.returned_to = point.step
        self.monitor.go_back(point.best_loss)

    def _point(self) -> _RestartPoint:
        return _RestartPoint(self.step, self.weights.state(), self.monitor.best)

    # ------------------------------------------------------------------ evaluation

    def _recall(self) -> float:
        """The recall on the held-out documents, the same number in all processes."""
        assert self.criteria.recall is not None
        self.network.eval()
        recall = self.processes.agree(self.criteria.recall(), self.corpus.device)
        self.network.train()
        return recall

    def _is_exhausted(self) -> bool:
        """Evaluate, keep the weights if they are the best; whether recall has not risen for too long."""
        recall = self._recall()
        self._record(step=self.step, recall=recall)
        self.patience += 1
        if self.history.best_recall is None or recall > self.history.best_recall:
            self.history.best_recall, self.history.best_step, self.patience = recall, self.step, 0
            self.best = self.weights.values()
        if self.patience < self.config.patience:
            return False
        times = f"{self.patience} evaluations"
        self._remark(f"recall has not risen for {times}: stopping at step {self.step} of {self.total}")
        return True

    # ------------------------------------------------------------------ checkpoints

    def _resume(self) -> None:
        """Continue from a checkpoint, if there is one."""
        self.earlier_seconds = 0.0
        if self.checkpoint is not None:
            found = load_checkpoint(self.checkpoint, self.corpus.device)
            if found is not None:
                progress, self.history, state, self.best = found
                self.step, self.patience = progress["step"], progress["patience"]
                self.slowdown, self.monitor.best = progress["slower"], progress["lowest_loss"]
                self.weights.load_state(state)
                self._remark(f"going on from step {self.step}, where an earlier run stopped")
        if self.processes.agree(self.step, self.corpus.device) != self.step:
            raise UsageError(
                f"the processes do not find the same checkpoint in {self.checkpoint}; use a folder that all share"
            )
        self.earlier_seconds = self.history.seconds

    def _save_checkpoint(self) -> None:
        """Save the state if the last checkpoint is old enough; only the main process does."""
        due = self.checked == self.step and time.perf_counter() - self.saved >= SECONDS_PER_CHECKPOINT
        if self.checkpoint is None or not self.processes.first or not due:
            return
        self.history.seconds = self._seconds()
        progress = {"step": self.step, "slower": self.slowdown, "patience": self.patience}
        progress["lowest_loss"] = self.monitor.best
        state = self.weights.state()
        save_checkpoint(self.checkpoint, progress, self.history, state, self.best, self.corpus.device)
        self.saved = time.perf_counter()

    def _seconds(self) -> float:
        """Seconds of training, those of interrupted runs included."""
        return self.earlier_seconds + time.perf_counter() - self.begun

    # ------------------------------------------------------------------ events

    def _record(self, **point: Any) -> None:
        """Add a point to the training curve."""
        self.history.curve.append(point)
        if self.on_event is not None:
            self.on_event("matcher", point)

    def _remark(self, sentence: str) -> None:
        if self.on_event is not None:
            self.on_event("remark", {"text": sentence})
