"""Safe files: whole or not at all, mapped when read, found again by what they depend on; no pickle anywhere."""

from labelwise.storage.objects import (
    ARRAYS,
    CONFIG,
    FORMAT_VERSION,
    Saved,
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
from labelwise.storage.paths import files_below
from labelwise.storage.replacing import atomic_file, atomic_folder, read_whole
from labelwise.storage.write_errors import check_writable

__all__ = [
    "ARRAYS",
    "CONFIG",
    "FORMAT_VERSION",
    "Saved",
    "atomic_file",
    "atomic_folder",
    "check_writable",
    "files_below",
    "load",
    "map_arrays",
    "read_description",
    "read_json",
    "read_whole",
    "restore",
    "save",
    "to_json",
    "write_description",
    "write_json",
]
