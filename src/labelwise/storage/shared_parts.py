"""Where the parts of saved models lie: in a model's own folder, or once for all models of an ensemble.

A part that is shared leaves a link in the model's folder, `NAME.link.json`, which names a folder of the ensemble.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from labelwise import storage
from labelwise.errors import StorageError
from labelwise.storage.checks import check_folder

T = TypeVar("T")
SHARED = "shared"
_LINK = re.compile(rf"((?:\.\./)+){SHARED}/([a-z]+)-[0-9]{{1,9}}")
_MEMBER = re.compile(r"members/[0-9]{2,}(/[a-z]+)?")
"""Where a link lies in the folder of an ensemble: in a member's folder, or in that of its matcher."""


class Savable(Protocol):
    """A part of a model."""

    def save(self, path: Path) -> None:
        """Write a folder."""


class SharedParts:
    """Saves and loads parts; with a root, those of several models, each part once.

    Encoders that are loaded compute on `device`, or on the GPU if there is one.
    """

    def __init__(self, root: Path | None = None, *, device: str | None = None) -> None:
        self.root, self.device = root, device
        self._saved: dict[int, tuple[Savable, Path]] = {}
        self._loaded: dict[Path, Any] = {}

    @classmethod
    def of_folder(cls, path: Path, *, device: str | None = None) -> Self:
        """The parts of a saved model, whose folder is checked before any file in it is opened."""
        check_folder(path)
        return cls(device=device)

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
        if folder.is_dir() and os.path.lexists(_link(folder)):
            raise StorageError(f"{_link(folder)} lies beside the folder {folder.name}; copy or make the model again")
        if not folder.is_dir() and _link(folder).is_file():
            place = _shared_part(folder)
        place = place.resolve()
        if place not in self._loaded:
            self._loaded[place] = load(place)
        found: T = self._loaded[place]
        return found


def _shared_part(folder: Path) -> Path:
    """The folder that a link names: a part of the same name among the shared parts of the link's own ensemble."""
    link = storage.read_json(_link(folder))
    target = link.get("folder") if isinstance(link, dict) else None
    found = _LINK.fullmatch(target) if isinstance(target, str) else None
    if isinstance(target, str) and found is not None and found[2] == folder.name:
        n_up, above = found[1].count("/"), folder.parent.resolve()
        ensemble = Path(*above.parts[: len(above.parts) - n_up])
        place = ensemble.joinpath(*Path(target).parts[n_up:])
        if _MEMBER.fullmatch(above.relative_to(ensemble).as_posix()) and place.resolve() == place:
            check_folder(place)
            return place
    raise StorageError(f"{_link(folder)} names no shared part of its ensemble; copy or make it again")


def _link(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.link.json")
