"""Where the parts of saved models lie: in a model's own folder, or once for all models of an ensemble.

A part that is shared leaves a link in the model's folder, `NAME.link.json`, which names a folder of the ensemble.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from labelwise import storage
from labelwise.errors import StorageError

T = TypeVar("T")
SHARED = "shared"
_LINK = re.compile(rf"(\.\./)+{SHARED}/[a-z]+-[0-9]+")


class Savable(Protocol):
    """A part of a model."""

    def save(self, path: Path) -> None:
        """Write a folder."""


class SharedParts:
    """Saves and loads parts; with a root, those of several models, each part once."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root
        self._saved: dict[int, tuple[Savable, Path]] = {}
        self._loaded: dict[Path, Any] = {}

    def save(self, part: Savable, folder: Path) -> None:
        """Write a part to its folder, or among the shared ones with a link where its folder would be."""
        if self.root is None:
            part.save(folder)
            return
        if id(part) not in self._saved:
            number = 1 + sum(place.name.startswith(f"{folder.name}-") for _, place in self._saved.values())
            place = self.root / SHARED / f"{folder.name}-{number}"
            part.save(place)
            self._saved[id(part)] = (part, place)
        target = Path(os.path.relpath(self._saved[id(part)][1], folder.parent)).as_posix()
        storage.write_json(_link(folder), {"folder": target})

    def has(self, folder: Path) -> bool:
        """Whether there is such a part."""
        return folder.is_dir() or _link(folder).is_file()

    def load(self, folder: Path, load: Callable[[Path], T]) -> T:
        """Read a part; one that was read before is given again."""
        place = folder
        if not folder.is_dir() and _link(folder).is_file():
            link = storage.read_json(_link(folder))
            target = link.get("folder") if isinstance(link, dict) else None
            if not isinstance(target, str) or not _LINK.fullmatch(target):
                raise StorageError(f"{_link(folder)} names no shared part of an ensemble; copy or make it again")
            place = folder.parent / target
        place = place.resolve()
        if place not in self._loaded:
            self._loaded[place] = load(place)
        found: T = self._loaded[place]
        return found


def _link(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.link.json")
