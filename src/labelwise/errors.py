"""What can go wrong, by whose fault it is. Each message says what, where and what to do."""

from importlib import import_module
from pathlib import Path
from typing import Any


class LabelwiseError(Exception):
    """Base of every error that labelwise raises on purpose; the command line prints it as one sentence."""

    exit_code = 1


class DataError(LabelwiseError, ValueError):
    """The data are not what they should be.

    Parameters
    ----------
    message
        What is wrong and what to do about it.
    path, line
        Where: a file, and the 1-based number of a line (or row, for formats without lines) in it.
    """

    def __init__(self, message: str, *, path: Path | str | None = None, line: int | None = None) -> None:
        self.message, self.path, self.line = message, path, line
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + message)


class StorageError(LabelwiseError, OSError):
    """A saved model or stage result is missing, damaged or of a newer format."""


class UsageError(LabelwiseError, ValueError):
    """An option or argument makes no sense, whatever the data are."""

    exit_code = 2


class MissingExtraError(LabelwiseError, ImportError):
    """Something optional is not installed."""

    exit_code = 2


def need(module: str, *, extra: str, purpose: str) -> Any:
    """Return an optional module, or say which extra brings it.

    >>> pq = need("pyarrow.parquet", extra="parquet", purpose="parquet files")
    """
    try:
        return import_module(module)
    except ImportError as err:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} need {package}, which is not installed; run: pip install 'labelwise[{extra}]'"
        ) from err
