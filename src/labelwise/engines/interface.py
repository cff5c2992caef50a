"""Where work runs: in threads of this process, or in the processes of a Ray cluster. The results are the same bytes.

Work is a callable that can be pickled: an instance of a module-level dataclass whose fields are the data that all items
share, read-only. An item is small. Results are joined in the order of the items, whoever computed them first, so that
the engine changes no result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from labelwise.engines.threads import map_in_order
from labelwise.errors import UsageError

T = TypeVar("T")
U = TypeVar("U")

EngineName: TypeAlias = Literal["threads", "ray"]
"""The names of the engines."""
ENGINES: dict[EngineName, str] = {
    "threads": "labelwise.engines.interface.Threads",
    "ray": "labelwise.engines.on_ray.Ray",
}
"""The class of each engine; its module is imported when it is used. The constructor takes an address and options."""
VARIABLE = "LABELWISE_ENGINE"
"""The environment variable that names the engine where nothing else does."""


class Engine(Protocol):
    """Runs work on items."""

    name: str
    """One of `ENGINES`."""

    def map(
        self,
        work: Callable[[T], U],
        items: Iterable[T],
        *,
        threads: int | None = None,
        ahead: int | None = None,
        costs: Sequence[float] | None = None,
        done: Callable[[T], object] | None = None,
    ) -> Iterator[U]:
        """The results of `work` in the order of `items`.

        Parameters
        ----------
        work
            Can be pickled, and changes nothing that it shares.
        threads
            Threads of this process, for engines that use them; all cores if not given.
        ahead
            How many results may wait for the one before them.
        costs
            What each item costs, in any unit, for engines that send several items together.
        done
            Hears of each item as soon as its result is there, in any order and from any thread: for progress.
        """
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...


class Threads:
    """The threads of this process: kernels release the interpreter's lock, and nothing has to be copied."""

    name = "threads"

    def __init__(self, address: str | None = None, **options: Any) -> None:
        if address is not None or options:
            raise UsageError("an address is for the engine ray; threads run in this process")

    def map(
        self,
        work: Callable[[T], U],
        items: Iterable[T],
        *,
        threads: int | None = None,
        ahead: int | None = None,
        costs: Sequence[float] | None = None,  # threads take one item at a time
        done: Callable[[T], object] | None = None,
    ) -> Iterator[U]:
        """The results in order, computed by a pool of threads."""
        if done is None:
            return map_in_order(work, items, threads, ahead=ahead)

        def work_and_tell(item: T) -> U:
            result = work(item)
            done(item)
            return result

        return map_in_order(work_and_tell, items, threads, ahead=ahead)

    def close(self) -> None:
        """Nothing is held."""


_current: list[Engine] = []
"""The engines of the `engine` contexts that are open, the innermost last: one for all threads of the process."""


@contextmanager
def engine(name: EngineName = "threads", *, address: str | None = None, **options: Any) -> Iterator[Engine]:
    """Context in which work runs elsewhere, with the same results.

    Parameters
    ----------
    name
        "threads", the default of everything, or "ray" (extra `ray`).
    address
        Of a Ray cluster: "auto" for the one that this machine belongs to, or "ray://HOST:PORT". Without an address Ray
        starts on this machine.
    **options
        Passed to `ray.init`, such as `num_cpus`.

    Examples
    --------
    >>> from labelwise import LinearTree, engine, generate_shop
    >>> train = generate_shop(500, 100)["train"]
    >>> with engine("threads"):
    ...     model = LinearTree().fit(train.texts, train.Y, label_names=train.labels)
    """
    made = _make(name, address, options)
    _current.append(made)
    try:
        yield made
    finally:
        _current.remove(made)
        made.close()


def current_engine() -> Engine:
    """The engine of the innermost `engine` context; elsewhere the one that LABELWISE_ENGINE names, or threads."""
    if _current:
        return _current[-1]
    return _from_environment(os.environ.get(VARIABLE) or "threads")


_elsewhere = [0.0]
"""CPU seconds that other processes have taken for this one, together."""


def cpu_seconds() -> float:
    """CPU seconds of this process, and of others for it: the difference of two calls is what the work between took."""
    return time.process_time() + _elsewhere[0]


def count_cpu_seconds(seconds: float) -> None:
    """Add what another process took for this one."""
    _elsewhere[0] += seconds


@cache
def _from_environment(name: str) -> Engine:
    """The engine of that name, made once for the whole process."""
    try:
        return _make(name, None, {})
    except UsageError as err:
        raise UsageError(f"{VARIABLE}: {err}") from err


def _make(name: Any, address: str | None, options: dict[str, Any]) -> Engine:
    if name not in ENGINES:
        raise UsageError(f"there is no engine {name!r}; there are: {', '.join(ENGINES)}")
    module, _, kind = ENGINES[name].rpartition(".")
    made: Engine = getattr(import_module(module), kind)(address, **options)
    return made
