"""Safe files: whole or not at all, mapped when read, found again by what they depend on; no pickle anywhere."""

from labelwise.storage.objects import (
    ARRAYS,
    CONFIG,
    FORMAT_VERSION,
    Saved,
    atomic_file,
    atomic_folder,
    load,
    map_arrays,
    read_description,
    read_json,
    restore,
    save,
    to_json,
    write_description,
    write_json,
)

__all__ = [
    "ARRAYS",
    "CONFIG",
    "FORMAT_VERSION",
    "Saved",
    "atomic_file",
    "atomic_folder",
    "load",
    "map_arrays",
    "read_description",
    "read_json",
    "restore",
    "save",
    "to_json",
    "write_description",
    "write_json",
]
