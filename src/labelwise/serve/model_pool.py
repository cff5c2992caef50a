"""The models of a server: loaded, warmed up, and exchanged for new versions while requests come in."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labelwise.errors import LabelwiseError, StorageError, UsageError
from labelwise.models.base import Model, load_model
from labelwise.serve.batching import Batcher, Kind
from labelwise.serve.label_search import LabelSearch
from labelwise.serve.limits import Limits
from labelwise.serve.logs import Log
from labelwise.serve.prometheus import Metrics
from labelwise.serve.refusal import RequestRefused

# Short and long, alone and together: kernels take several ways.
_WARM_UP = (["a text"], ["a", "b c", ""], [f"words for a {number}. batch" for number in range(64)])


@dataclass(frozen=True, eq=False)
class Version:
    """A model as it was loaded; never changed afterwards."""

    model: Model
    signature: str
    loaded: str
    labels: LabelSearch
    card: str
    config: dict[str, Any]

    @property
    def version(self) -> str:
        """Its short name."""
        return self.signature[:12]


def load_version(folder: Path, *, threads: int = 1) -> Version:
    """Load a model folder and predict once, so that nothing is compiled when the first request comes."""
    signature = _signature(folder)
    model = load_model(folder)
    if model.tfidf_ is None:
        raise UsageError(
            f"{folder} was trained on features and cannot read texts; give a model that was trained on texts"
        )
    model.config = replace(model.config, threads=threads)
    for texts in _WARM_UP:
        list(model.predict(texts, top_k=10))
    if _signature(folder) != signature:
        raise StorageError(f"{folder} changed while it was read; wait until it is written")
    card = folder / "README.md"
    return Version(
        model=model,
        signature=signature,
        loaded=datetime.now(UTC).isoformat(timespec="seconds"),
        labels=LabelSearch(model),
        card=card.read_text(encoding="utf-8") if card.is_file() else "",
        config=json.loads((folder / "config.json").read_bytes())["config"].get("config", {}),
    )


def _signature(folder: Path) -> str:
    """What tells one version from another: a hash of all descriptions, which hold the checksums of the weights."""
    if not (folder / "config.json").is_file():
        raise StorageError(f"{folder} holds no model; give a folder that was written by labelwise train")
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.json")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


class Served:
    """A name under which the newest version of a model answers."""

    def __init__(self, name: str, folder: Path, limits: Limits, metrics: Metrics, *, threads: int = 1) -> None:
        self.name, self.folder, self.threads = name, folder, threads
        self.now = load_version(folder, threads=threads)
        self.batcher = Batcher(name, self._predict, limits, metrics)
        # Explaining takes hundreds of times longer than suggesting; nobody else waits for it.
        self._explaining = Batcher(name, self._predict, replace(limits, wait_ms=0.0), metrics)
        self._loading = threading.Lock()
        self._seen = _stamp(folder)
        self._metrics = metrics
        metrics.versions.set(name, self.now.version, to=1)

    def _predict(self, texts: list[str], kind: Kind) -> tuple[str, Sequence[Any]]:
        """In the model's own thread. A batch keeps the version that it began with."""
        now, (top_k, explained) = self.now, kind
        rows = list(now.model.predict(texts, top_k=top_k))
        if not explained:
            return now.version, [(row, None) for row in rows]
        explain = explainer()
        told = [[one.to_dict() for one in explain(now.model, text, top_k=explained)] for text in texts]
        return now.version, list(zip(rows, told, strict=True))

    def queue(self, explained: bool) -> Batcher:
        """Where a request waits."""
        return self._explaining if explained else self.batcher

    def close(self) -> None:
        """Let the threads end."""
        self.batcher.close()
        self._explaining.close()

    def load_again(self) -> bool:
        """Exchange the version for what the folder holds now; requests go on all the while. Whether it is another."""
        with self._loading:
            stamp = _stamp(self.folder)
            if _signature(self.folder) == self.now.signature:
                self._seen = stamp
                return False
            self.now = load_version(self.folder, threads=self.threads)
            self._seen = stamp
            return True

    def changed(self) -> bool:
        """Whether the folder's description was written anew since it was last read."""
        return _stamp(self.folder) not in (None, self._seen)


def _stamp(folder: Path) -> tuple[int, int, int] | None:
    try:
        about = (folder / "config.json").stat()
    except OSError:  # between two versions there may be none for a moment
        return None
    return about.st_mtime_ns, about.st_ino, about.st_size


class Models(Mapping[str, Served]):
    """All models of a server, the default first."""

    def __init__(
        self, folders: Mapping[str, Path], limits: Limits, metrics: Metrics, log: Log, *, threads: int = 1
    ) -> None:
        self._served = {
            name: Served(name, folder, limits, metrics, threads=threads) for name, folder in folders.items()
        }
        self._metrics, self._log = metrics, log
        self._failed: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Served:
        return self._served[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)

    def find(self, name: str | None) -> Served:
        """The model of that name, or the default."""
        if not name:
            return next(iter(self._served.values()))
        if name not in self._served:
            raise RequestRefused(404, "unknown_model", f"there is no model of that name; there are: {', '.join(self)}.")
        return self._served[name]

    async def reload(self, served: Served) -> bool:
        """Load a new version aside and exchange it; on failure the former one goes on answering."""
        before = served.now.version
        try:
            changed = await asyncio.to_thread(served.load_again)
        except Exception as error:
            self._metrics.reloads.add(served.name, "failed")
            why = str(error) if isinstance(error, LabelwiseError | OSError) else type(error).__name__
            if self._failed.get(served.name) != why:  # the watcher tries again and again
                self._log.event("reload_failed", model=served.name, reason=why)
            self._failed[served.name] = why
            raise RequestRefused(
                409,
                "reload_failed",
                f"the new version of {served.name} cannot be loaded, the former one goes on: {why}.",
            ) from error
        self._failed.pop(served.name, None)
        if changed:
            self._metrics.reloads.add(served.name, "loaded")
            self._metrics.versions.values.pop((served.name, before), None)
            self._metrics.versions.set(served.name, served.now.version, to=1)
            self._log.event("reloaded", model=served.name, version=served.now.version)
        return changed

    async def reload_all(self) -> None:
        """What SIGHUP asks for."""
        for served in self.values():
            with contextlib.suppress(RequestRefused):
                await self.reload(served)

    async def watch(self, seconds: float) -> None:
        """Load whatever is written into the folders, for ever."""
        while True:
            await asyncio.sleep(seconds)
            for served in self.values():
                if served.changed():
                    with contextlib.suppress(RequestRefused):
                        await self.reload(served)

    def close(self) -> None:
        """Let the threads end."""
        for served in self.values():
            served.close()


def can_explain() -> bool:
    """Whether explanations are part of this labelwise."""
    try:
        explainer()
    except (ImportError, AttributeError):
        return False
    return True


def explainer() -> Callable[..., list[Any]]:
    """`labelwise.explanations.explain`, imported when it is first asked for."""
    from labelwise.explanations import explain

    return explain
