"""Requests that come at about the same time are predicted together, by a thread of their model."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

from labelwise.serve.limits import Limits
from labelwise.serve.prometheus import Metrics
from labelwise.serve.refusal import overloaded

Kind: TypeAlias = tuple[int, int]
"""top_k, and how many of these labels are explained. Only requests of one kind are predicted together: an ensemble
looks deeper for more labels, and an answer must not depend on who else asks."""
Work: TypeAlias = Callable[[list[str], Kind], tuple[str, Sequence[Any]]]
"""Runs in the thread. Returns the model's version and a result for each text."""


@dataclass(eq=False)
class Job:
    """A request that waits for its answer."""

    texts: list[str]
    kind: Kind
    arrived: float
    answer: asyncio.Future[tuple[str, Sequence[Any]]]


class Batcher:
    """The queue of one model. All but the work itself happens in the event loop's thread."""

    def __init__(self, name: str, work: Work, limits: Limits, metrics: Metrics) -> None:
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
        """Refuse what comes to a full queue."""
        if self._waiting >= self.limits.queue:
            raise overloaded(f"the server is busy: {self._waiting} texts wait already; try again in a second.")

    async def answer(self, texts: list[str], kind: Kind) -> tuple[str, Sequence[Any]]:
        """The version that answered and the result of each text."""
        self.check_room()
        loop = asyncio.get_running_loop()
        now = loop.time()
        job = Job(texts, kind, now, loop.create_future())
        self._jobs.append(job)
        self._waiting += len(texts)
        deadline = loop.call_at(now + self.limits.deadline, self._give_up, job)
        if not self._busy:
            self._plan(loop)
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

    def _plan(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a batch: at once if it is full or its first request has waited enough, otherwise when it has."""
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
        batch = [] if self._busy else self._take()
        if not batch:
            return
        self._busy = True
        loop, texts = asyncio.get_running_loop(), [text for job in batch for text in job.texts]
        self.metrics.batches.see(self.name, len(texts))
        future = self._pool.submit(self._timed, texts, batch[0].kind)
        future.add_done_callback(lambda done: loop.call_soon_threadsafe(self._finish, batch, done))

    def _timed(self, texts: list[str], kind: Kind) -> tuple[tuple[str, Sequence[Any]], float]:
        start = time.perf_counter()
        return self._work(texts, kind), time.perf_counter() - start

    def _take(self) -> list[Job]:
        """The requests of the next batch: of one kind, in their order. One that is larger than a batch goes alone."""
        batch: list[Job] = []
        others: list[Job] = []
        n_texts = 0
        while self._jobs and n_texts < self.limits.batch:
            job = self._jobs.popleft()
            if job.answer.done():  # given up
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
            self.metrics.predicting.see(self.name, seconds)
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
            self._apart(batch)
        self._plan(asyncio.get_running_loop())

    def _apart(self, batch: list[Job]) -> None:
        """After a failure each request is tried by itself, so that nobody suffers from another's text."""
        loop = asyncio.get_running_loop()
        for job in batch:
            alone = [job]
            future = self._pool.submit(self._timed, job.texts, job.kind)
            future.add_done_callback(
                lambda done, alone=alone: loop.call_soon_threadsafe(self._finish, alone, done)  # type: ignore[misc]
            )

    def close(self) -> None:
        """Let the thread end when its work is done."""
        self._pool.shutdown(wait=False)
