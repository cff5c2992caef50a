"""The file formats of data sets: one module for each, with its facts, its reader and its writer.

`Format` is the table of formats. A new format is a new module here that defines `FORMAT`, and its name in the table;
detection, conversion, the choices of the command line and the error messages follow from that.
"""

from functools import cache
from importlib import import_module
from typing import Literal, TypeAlias, cast, get_args

from labelwise.data.formats.format import FileFormat

Format: TypeAlias = Literal[
    "jsonl",
    "csv",
    "tsv",
    "parquet",
    "pecos",
    "xc",
    "annif",
    "libsvm",
]
"""Names of the formats. Each one is a module of this package, which defines `FORMAT`.

The order matters: a folder is searched for the formats, and a file's first lines are compared with them, in this order.
"""
FORMATS: tuple[Format, ...] = get_args(Format)


@cache
def file_format(name: Format) -> FileFormat:
    """The format of that name; its module is imported on first use."""
    return cast(FileFormat, import_module(f"{__name__}.{name}").FORMAT)


def file_formats() -> list[FileFormat]:
    """All formats, in the order of the table."""
    return [file_format(name) for name in FORMATS]
