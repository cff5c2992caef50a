"""The engine that runs work in the processes of a Ray cluster.

What items share is put into Ray's store once, and read there without a copy by the processes of each node. Items are
sent in batches of about equal cost. A task whose process or node dies runs again; an error of the work itself is raised
in this process as it is.
"""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from labelwise.engines.interface import Threads, count_cpu_seconds, engine
from labelwise.errors import LabelwiseError, UsageError, need

T = TypeVar("T")
U = TypeVar("U")

log = logging.getLogger(__name__)

BATCHES_PER_CPU = 4
"""Batches of items for each CPU of the cluster, so that a slow process holds nobody up for long."""
ITEMS_WITHOUT_COSTS = 4
"""Items of a batch where the number of items is not known."""
RETRIES = 5
"""How often a batch is sent again after its process or its node has died."""
SECONDS_TO_CONNECT = 10.0
SECONDS_TO_WARN = 120.0
"""After so long without a result a remark says where to look."""


class Ray:
    """Runs work on a Ray cluster, which this process joins or starts.

    Parameters
    ----------
    address
        As in `ray.init`; None to start Ray on this machine, unless RAY_ADDRESS is set or Ray runs in this process.
    **options
        Passed to `ray.init`.
    """

    name = "ray"

    def __init__(self, address: str | None = None, **options: Any) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
        self._ray = ray = need("ray", extra="ray", purpose="Ray clusters")
        self._own = not ray.is_initialized()
        if self._own:
            _check_reachable(address or os.environ.get("RAY_ADDRESS"))
            settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            if address is None:
                settings["include_dashboard"] = False
            try:
                ray.init(address=address, **{**settings, **options})
            except (ConnectionError, ValueError, TypeError, RuntimeError) as err:
                where = f"the Ray cluster at {address}" if address else "Ray"
                reason = str(err).strip().partition("\n")[0][:300]
                raise UsageError(f"{where} cannot be reached ({reason}); start it, or leave the address out") from err
        self._task = ray.remote(max_retries=RETRIES, num_cpus=1)(_run_batch)

    def map(
        self,
        work: Callable[[T], U],
        items: Iterable[T],
        *,
        threads: int | None = None,  # each process of the cluster uses one
        ahead: int | None = None,  # the cluster's size says how many
        costs: Sequence[float] | None = None,
        done: Callable[[T], object] | None = None,
    ) -> Iterator[U]:
        """The results in order, computed by tasks of the cluster; a single item is done in this process."""
        source = iter(items)
        first = list(islice(source, 2))
        if len(first) < 2:
            yield from Threads().map(work, first, threads=1, done=done)
            return
        cpus = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        shared = self._ray.put(_packed(work))
        waiting: deque[tuple[list[T], Any]] = deque()
        most = cpus * BATCHES_PER_CPU
        try:
            for batch in _batches(chain(first, source), costs, most):
                waiting.append((batch, self._task.remote([shared], batch)))
                if len(waiting) > most:
                    yield from self._results(*waiting.popleft(), done)
            while waiting:
                yield from self._results(*waiting.popleft(), done)
        finally:
            for _, task in waiting:
                self._ray.cancel(task, force=False)

    def _results(self, batch: list[T], task: Any, done: Callable[[T], object] | None) -> Iterator[Any]:
        """The results of a batch, as soon as all of them are there."""
        exceptions, begin = self._ray.exceptions, time.monotonic()
        while not self._ray.wait([task], timeout=SECONDS_TO_WARN)[0]:
            seconds = int(time.monotonic() - begin)
            log.warning("Ray has given no result for %d s; `ray status` says what the cluster waits for", seconds)
        try:
            found, seconds = self._ray.get(task)
            count_cpu_seconds(seconds)
        except exceptions.RayTaskError as err:
            raise err.cause from err
        except exceptions.RayError as err:
            reason = str(err).strip().partition("\n")[0][:300]
            raise EngineError(f"a task of the Ray cluster was lost ({reason}); look at `ray status`") from err
        for item, result in zip(batch, found, strict=True):
            if done is not None:
                done(item)
            yield result

    def close(self) -> None:
        """Leave the cluster, or stop it if this engine has started it."""
        if self._own:
            self._ray.shutdown()


class EngineError(LabelwiseError):
    """The cluster failed, not the work."""


def _batches(source: Iterator[T], costs: Sequence[float] | None, n_batches: int) -> Iterator[list[T]]:
    """The items in order, cut into batches of about equal cost, or of few items where costs are not known."""
    if costs is None:
        while batch := list(islice(source, ITEMS_WITHOUT_COSTS)):
            yield batch
        return
    items = list(source)
    ends = np.cumsum(np.maximum(np.asarray(costs, np.float64), 1e-12))
    borders = np.searchsorted(ends, np.linspace(0, ends[-1], n_batches + 1)[1:-1], side="right") + 1
    begin = 0
    for end in [*np.unique(np.minimum(borders, len(items))).tolist(), len(items)]:
        if end > begin:
            yield items[begin:end]
        begin = end


def _check_reachable(address: str | None) -> None:
    """Refuse the address of a host that does not answer: Ray itself would wait for minutes."""
    parts = urlsplit(address if address and "://" in address else f"//{address or ''}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError as err:
        raise UsageError(f"{address} is no address of a Ray cluster; give auto, HOST:PORT or ray://HOST:PORT") from err
    if host is None or port is None:  # "auto", "local", a name without a port
        return
    try:
        with socket.create_connection((host, port), timeout=SECONDS_TO_CONNECT):
            pass
    except OSError as err:
        reason = err.strerror or err
        raise UsageError(f"the Ray cluster at {address} cannot be reached ({reason}); start it, or omit it") from err


def _packed(work: Any) -> tuple[bytes, list[npt.NDArray[np.uint8]]]:
    """Work as bytes, and its arrays beside them, which Ray's store then holds once for each node."""
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(work, protocol=5, buffer_callback=buffers.append)
    return content, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]


def _unpacked(content: bytes, arrays: list[npt.NDArray[np.uint8]]) -> Any:
    """The work, with its arrays where Ray's store has them.

    The store gives them as read-only. numba compiles a kernel anew for read-only arrays, so that each node would spend
    half a minute on code that it has; work changes nothing that it shares, so its arrays are told as they were.
    """
    buffers = [(ctypes.c_char * array.nbytes).from_address(array.ctypes.data) for array in arrays]
    return pickle.loads(content, buffers=buffers)  # noqa: S301  # what this very run has put into the store


_opened: dict[str, Any] = {}
"""The work that a process of the cluster did last, with what keeps its arrays in the store."""


def _run_batch(shared: list[Any], items: list[Any]) -> tuple[list[Any], float]:
    """What a process of the cluster does: the items one after the other, in one thread, and its CPU seconds."""
    import ray

    begin = time.process_time()
    key = shared[0].hex()
    if key not in _opened:
        _opened.clear()
        packed = ray.get(shared[0])
        _opened[key] = (_unpacked(*packed), packed)
    work, _ = _opened[key]
    with engine("threads"):  # work inside of work stays in its process
        results = [work(item) for item in items]
    return results, time.process_time() - begin
