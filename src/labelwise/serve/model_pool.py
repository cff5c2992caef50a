"""The models of a server: loaded, warmed up, and replaced by new versions while requests arrive."""

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

from labelwise import storage
from labelwise.errors import LabelwiseError, StorageError, UsageError
from labelwise.models.base import Model, load_model
from labelwise.serve.batching import Batcher, RequestKind
from labelwise.serve.label_search import LabelSearch
from labelwise.serve.limits import Limits
from labelwise.serve.logs import JsonLog
from labelwise.serve.prometheus import ServerMetrics
from labelwise.serve.request_error import RequestError

# Short and long texts, one and many of them: each takes other kernels.
_WARM_UP = (["a text"], ["a", "b c", ""], [f"words for a {number}. batch" for number in range(64)])


@dataclass(frozen=True, eq=False)
class ModelVersion:
    """A model as it was loaded; it does not change afterwards."""

    model: Model
    signature: str
    """Hash of the model folder: see `_signature`."""
    loaded: str
    """Time of loading, in ISO format."""
    labels: LabelSearch
    card: str
    config: dict[str, Any]

    @property
    def short_id(self) -> str:
        """The start of the signature, which names the version in answers and in the log."""
        return self.signature[:12]


def load_version(folder: Path, *, threads: int = 1, device: str | None = None) -> ModelVersion:
    """Load a model folder and predict once, so that nothing is compiled when the first request comes."""
    signature = _signature(folder)
    model = load_model(folder, device=device)
    if not model.reads_texts:
        raise UsageError(
            f"{folder} was trained on features and cannot read texts; give a model that was trained on texts"
        )
    for texts in _WARM_UP:
        list(model.predict(texts, top_k=10, threads=threads))
    if _signature(folder) != signature:
        raise StorageError(f"{folder} changed while it was read; wait until it is written")
    card = folder / "README.md"
    return ModelVersion(
        model=model,
        signature=signature,
        loaded=datetime.now(UTC).isoformat(timespec="seconds"),
        labels=LabelSearch(model),
        card=card.read_text(encoding="utf-8") if card.is_file() else "",
        config=json.loads((folder / "config.json").read_bytes())["config"].get("config", {}),
    )


def _signature(folder: Path) -> str:
    """A hash of all JSON files of a model folder. They hold the checksums of the weights, so versions differ in it."""
    if not (folder / "config.json").is_file():
        raise StorageError(f"{folder} is not a model; give a folder that was written by labelwise train")
    digest = hashlib.sha256()
    for file in storage.files_below(folder, ".json"):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


class ServedModel:
    """A model under its name: the newest version, and its queues."""

    def __init__(
        self,
        name: str,
        folder: Path,
        limits: Limits,
        metrics: ServerMetrics,
        *,
        threads: int = 1,
        device: str | None = None,
    ) -> None:
        self.name, self.folder, self.threads, self.device = name, folder, threads, device
        self.current = load_version(folder, threads=threads, device=device)
        self.batcher = Batcher(name, self._predict, limits, metrics)
        # Explanations take hundreds of times longer than suggestions, so they have a queue of their own.
        self._explaining = Batcher(name, self._predict, replace(limits, wait_ms=0.0), metrics)
        self._loading = threading.Lock()
        self._seen = _stamp(folder)
        metrics.versions.set(name, self.current.short_id, to=1)

    def _predict(self, texts: list[str], kind: RequestKind) -> tuple[str, Sequence[Any]]:
        """Predict a batch, in the model's thread. A batch keeps the version that it began with."""
        current, (top_k, explained) = self.current, kind
        rows = list(current.model.predict(texts, top_k=top_k, threads=self.threads))
        if not explained:
            return current.short_id, [(row, None) for row in rows]
        explain = explainer()
        options = {"top_k": explained, "threads": self.threads}
        explanations = [[one.to_dict() for one in explain(current.model, text, **options)] for text in texts]
        return current.short_id, list(zip(rows, explanations, strict=True))

    def queue(self, explained: bool) -> Batcher:
        """The queue of requests with or without explanations."""
        return self._explaining if explained else self.batcher

    def close(self) -> None:
        """End the threads."""
        self.batcher.close()
        self._explaining.close()

    def load_again(self) -> bool:
        """Load the version that the folder holds now, while the former one answers. Returns whether it is another."""
        with self._loading:
            stamp = _stamp(self.folder)
            if _signature(self.folder) == self.current.signature:
                self._seen = stamp
                return False
            self.current = load_version(self.folder, threads=self.threads, device=self.device)
            self._seen = stamp
            return True

    def changed(self) -> bool:
        """Whether the folder's config.json was written since it was last read."""
        return _stamp(self.folder) not in (None, self._seen)


def _stamp(folder: Path) -> tuple[int, int, int] | None:
    """Time, inode and size of config.json, which differ after it was written again; None if there is no such file."""
    try:
        stat = (folder / "config.json").stat()
    except OSError:  # between two versions there may be no file for a moment
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size


class ModelPool(Mapping[str, ServedModel]):
    """All models of a server, the default first."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        limits: Limits,
        metrics: ServerMetrics,
        log: JsonLog,
        *,
        threads: int = 1,
        device: str | None = None,
    ) -> None:
        how: dict[str, Any] = {"threads": threads, "device": device}
        self._served = {name: ServedModel(name, folder, limits, metrics, **how) for name, folder in folders.items()}
        self._metrics, self._log = metrics, log
        self._failed: dict[str, Any] = {}

    def __getitem__(self, name: str) -> ServedModel:
        return self._served[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)

    def find(self, name: str | None) -> ServedModel:
        """The model of that name; the default one for an empty name."""
        if not name:
            return next(iter(self._served.values()))
        if name not in self._served:
            raise RequestError(404, "unknown_model", f"there is no model of that name; there are: {', '.join(self)}.")
        return self._served[name]

    async def reload(self, served: ServedModel) -> bool:
        """Load a new version while the former one answers, then replace it. If loading fails, the former one stays."""
        before = served.current.short_id
        try:
            changed = await asyncio.to_thread(served.load_again)
        except Exception as error:
            self._metrics.reloads.add(served.name, "failed")
            why = str(error) if isinstance(error, LabelwiseError | OSError) else type(error).__name__
            if self._failed.get(served.name) != why:  # the watcher repeats the attempt; one line is enough
                self._log.event("reload_failed", model=served.name, reason=why)
            self._failed[served.name] = why
            raise RequestError(
                409,
                "reload_failed",
                f"the new version of {served.name} cannot be loaded, so the former one stays: {why}.",
            ) from error
        self._failed.pop(served.name, None)
        if changed:
            self._metrics.reloads.add(served.name, "loaded")
            self._metrics.versions.values.pop((served.name, before), None)
            self._metrics.versions.set(served.name, served.current.short_id, to=1)
            self._log.event("reloaded", model=served.name, version=served.current.short_id)
        return changed

    async def reload_all(self) -> None:
        """Load all models again, as SIGHUP asks for."""
        for served in self.values():
            with contextlib.suppress(RequestError):
                await self.reload(served)

    async def watch(self, seconds: float) -> None:
        """Look for new versions in the folders and load them, until the task is cancelled."""
        while True:
            await asyncio.sleep(seconds)
            for served in self.values():
                if served.changed():
                    with contextlib.suppress(RequestError):
                        await self.reload(served)

    def close(self) -> None:
        """End the threads of all models."""
        for served in self.values():
            served.close()


def can_explain() -> bool:
    """Whether `labelwise.explanations` can be imported."""
    try:
        explainer()
    except (ImportError, AttributeError):
        return False
    return True


def explainer() -> Callable[..., list[Any]]:
    """`labelwise.explanations.explain`, imported on first use."""
    from labelwise.explanations import explain

    return explain
