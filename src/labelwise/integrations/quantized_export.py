"""The weights of a saved model's linear parts in fewer bits."""

from __future__ import annotations

from pathlib import Path

from labelwise import storage
from labelwise.rank import ranker, tree
from labelwise.rank.quantized import Bits, pack, unpack

KINDS = (ranker.KIND, tree.KIND)


def ranker_folders(model: Path) -> list[Path]:
    """The folders of a saved model that hold the weights of labels."""
    folders = [file.parent for file in storage.files_below(model, storage.ARRAYS)]
    return [folder for folder in folders if storage.read_description(folder).get("kind") in KINDS]


def pack_ranker(folder: Path, bits: Bits) -> None:
    """Write the weights of a folder again, with fewer bits."""
    kind = str(storage.read_description(folder)["kind"])
    saved = storage.load(folder, kind=kind)
    prefixes = [""] if kind == ranker.KIND else [f"{level}." for level in range(saved.config["n_levels"])]
    arrays = {name: array for name, array in saved.arrays.items() if not name.startswith(tuple(prefixes))}
    for prefix in prefixes:
        arrays |= pack(unpack(saved.arrays, prefix), bits, prefix)
    storage.save(folder, kind=kind, config=saved.config, arrays=arrays)
