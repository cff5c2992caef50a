"""The errors of labelwise, one class per cause. Each message says what is wrong, where, and what to do."""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any


class LabelwiseError(Exception):
    """Base of every error that labelwise raises on purpose; the command line prints it as one sentence.

    Examples
    --------
    >>> from labelwise import LabelwiseError, load_preset
    >>> try:
    ...     load_preset("fast")
    ... except LabelwiseError as error:
    ...     print(type(error).__name__, error, sep=": ")
    UsageError: there is no preset 'fast'; there are: default, ...
    """

    exit_code = 1


class DataError(LabelwiseError, ValueError):
    """The data are invalid.

    Parameters
    ----------
    message
        What is wrong and what to do about it.
    path, line
        The file, and the 1-based number of the line (or row, for formats without lines) in the file.

    Examples
    --------
    >>> from labelwise import DataError, load_dataset
    >>> try:
    ...     load_dataset("no-such-folder")
    ... except DataError as error:
    ...     print(error)
    no-such-folder: there is no such file or folder; check the spelling
    """

    def __init__(self, message: str, *, path: Path | str | None = None, line: int | None = None) -> None:
        self.message, self.path, self.line = message, path, line
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + message)


class StorageError(LabelwiseError, OSError):
    """A saved model or stage result is missing, damaged or of a newer format."""


class UsageError(LabelwiseError, ValueError):
    """An option or argument is invalid, whatever the data are.

    Examples
    --------
    >>> from labelwise import LinearTree, UsageError
    >>> try:
    ...     LinearTree(cost=-1)
    ... except UsageError as error:
    ...     print(error)
    LinearTree: cost is -1; it must be a number above 0
    """

    exit_code = 2


class MissingExtraError(LabelwiseError, ImportError):
    """An optional dependency is not installed."""

    exit_code = 2


def need(module: str, *, extra: str, purpose: str) -> Any:
    """Import an optional module; if it is not installed, raise an error that names its extra.

    >>> pq = need("pyarrow.parquet", extra="parquet", purpose="parquet files")
    """
    try:
        return import_module(module)
    except ImportError as err:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} need {package}, which is not installed; run: pip install 'labelwise[{extra}]'"
        ) from err


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""A text that a terminal shows as it is written, whoever wrote it: control characters become escapes.

    Escaped are control characters other than tab and line end, the characters that turn the direction of writing
    around, and halves of characters. The escapes are those of JSON, so a line of JSON keeps its value.

    >>> print(printable("a\x1b[31m\u202eb"))
    a\u001b[31m\u202eb
    """
    return _CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1].replace("\x7f", r"\u007f"), text)
