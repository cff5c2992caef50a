"""Models in pickles, as multiprocessing, joblib and Spark send them: the files that `save` writes."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from labelwise.storage import files_below

if TYPE_CHECKING:
    from labelwise.models.base import Model


def files_of(model: Model) -> dict[str, bytes]:
    """The files of a saved model by their paths in its folder."""
    with tempfile.TemporaryDirectory(prefix="labelwise-") as place:
        folder = Path(place) / "model"
        model.save(folder)
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files_below(folder)}


def from_files(files: dict[str, bytes]) -> Model:
    """The model of these files, which lie in a temporary folder as long as the model does: its weights are mapped."""
    from labelwise.models.base import load_model

    place = Path(tempfile.mkdtemp(prefix="labelwise-"))
    try:
        for name, content in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        model = load_model(place)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(model, _remove, place, os.getpid())
    return model


def _remove(place: Path, process: int) -> None:
    """Remove the files, unless a process that was forked ends: its parent may still read them."""
    if os.getpid() == process:
        shutil.rmtree(place, ignore_errors=True)
