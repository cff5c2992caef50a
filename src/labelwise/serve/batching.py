"""Batches across requests: texts that arrive at about the same time are predicted together, in the model's thread."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from labelwise.serve.limits import Limits
from labelwise.serve.prometheus import ServerMetrics
from labelwise.serve.request_error import overloaded

RequestKind: TypeAlias = tuple[int, int]
"""(top_k, number of explained labels). Only requests of one kind are predicted together: an ensemble takes more labels
from its members where `top_k` is larger, and an answer must not depend on the other requests of the batch."""
PredictFunction: TypeAlias = Callable[[list[str], RequestKind], tuple[str, Sequence[Any]]]
"""Predicts texts in the model's thread. Returns the model's version and a result for each text."""


@dataclass(eq=False)
class Job:
    """A request in the queue."""

    texts: list[str]
    kind: RequestKind
    arrived: float
    answer: asyncio.Future[tuple[str, Sequence[Any]]]


class Batcher:
    """The queue of one model. Everything except for the predictions runs in the event loop's thread."""

    def __init__(self, name: str, work: PredictFunction, limits: Limits, metrics: ServerMetrics) -> None:
        self.name, self.limits, self.metrics = name, limits, metrics
        self._work = work
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"predict-{name}")
        self._jobs: deque[Job] = deque()
        self._waiting = 0
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Texts in the queue."""
        return self._waiting

    def check_room(self) -> None:
        """Raise an error if the queue is full."""
        if self._waiting >= self.limits.queue:
            raise overloaded(f"the server is busy: {self._waiting} texts wait already; try again in a second.")

    async def answer(self, texts: list[str], kind: RequestKind) -> tuple[str, Sequence[Any]]:
        """The model's version and the result of each text, once they are predicted."""
        self.check_room()
        loop = asyncio.get_running_loop()
        now = loop.time()
        job = Job(texts, kind, now, loop.create_future())
        self._jobs.append(job)
        self._waiting += len(texts)
        deadline = loop.call_at(now + self.limits.deadline, self._give_up, job)
        if not self._busy:
            self._schedule(loop)
        try:
            return await job.answer
        finally:
            deadline.cancel()

    def _give_up(self, job: Job) -> None:
        if not job.answer.done():
            seconds = self.limits.deadline
            job.answer.set_exception(
                overloaded(f"there was no answer within {seconds:g} seconds; try again later.", "deadline", 2)
            )

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a batch now if it is full or its first request has waited for `wait_ms`, otherwise set a timer."""
        if self._waiting >= self.limits.batch:
            self._start()
        elif self._timer is None and self._jobs:
            due = self._jobs[0].arrived + self.limits.wait_ms / 1000
            if due <= loop.time():
                self._start()
            else:
                self._timer = loop.call_at(due, self._start)

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch = [] if self._busy else self._next_batch()
        if not batch:
            return
        self._busy = True
        loop, texts = asyncio.get_running_loop(), [text for job in batch for text in job.texts]
        self.metrics.batches.observe(self.name, len(texts))
        future = self._pool.submit(self._timed_predict, texts, batch[0].kind)
        future.add_done_callback(lambda done: loop.call_soon_threadsafe(self._finish, batch, done))

    def _timed_predict(self, texts: list[str], kind: RequestKind) -> tuple[tuple[str, Sequence[Any]], float]:
        start = time.perf_counter()
        return self._work(texts, kind), time.perf_counter() - start

    def _next_batch(self) -> list[Job]:
        """The requests of the next batch: of one kind, in their order. A request larger than a batch is alone in it."""
        batch: list[Job] = []
        others: list[Job] = []
        n_texts = 0
        while self._jobs and n_texts < self.limits.batch:
            job = self._jobs.popleft()
            if job.answer.done():  # its deadline has passed
                self._waiting -= len(job.texts)
            elif batch and (job.kind != batch[0].kind or n_texts + len(job.texts) > self.limits.batch):
                others.append(job)
            else:
                batch.append(job)
                n_texts += len(job.texts)
        self._jobs.extendleft(reversed(others))
        self._waiting -= n_texts
        return batch

    def _finish(self, batch: list[Job], done: Future[tuple[tuple[str, Sequence[Any]], float]]) -> None:
        self._busy = False
        error = done.exception()
        if error is None:
            (version, results), seconds = done.result()
            self.metrics.predicting.observe(self.name, seconds)
            self.metrics.texts.add(self.name, by=len(results))
            at = 0
            for job in batch:
                end = at + len(job.texts)
                if not job.answer.done():
                    job.answer.set_result((version, results[at:end]))
                at = end
        elif len(batch) == 1:
            if not batch[0].answer.done():
                batch[0].answer.set_exception(error)
        else:
            self._predict_separately(batch)
        self._schedule(asyncio.get_running_loop())

    def _predict_separately(self, batch: list[Job]) -> None:
        """Predict each request of a failed batch by itself, so that one text does not fail the other requests."""
        loop = asyncio.get_running_loop()
        for job in batch:
            alone = [job]
            future = self._pool.submit(self._timed_predict, job.texts, job.kind)
            future.add_done_callback(
                lambda done, alone=alone: loop.call_soon_threadsafe(self._finish, alone, done)  # type: ignore[misc]
            )

    def close(self) -> None:
        """End the thread when its last batch is done."""
        self._pool.shutdown(wait=False)
