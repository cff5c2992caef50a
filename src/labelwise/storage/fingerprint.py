"""One hash for anything that a result can depend on: settings, arrays, matrices, texts, datasets."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def fingerprint(value: Any) -> str:
    """A hexadecimal digest of the value's content, the same in every process and on every machine.

    Dataclasses count by their fields, without those that have `compare=False`; a mapping's order does not matter; a
    path counts by the file's content. Two values of different types never share a digest: 1 is not True, nor "1".
    """
    digest = hashlib.blake2b(digest_size=32)
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: hashlib.blake2b, value: Any) -> None:
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | complex | np.generic):
        _part(digest, kind, repr(value).encode())
    elif isinstance(value, str):
        _part(digest, "str", value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        _part(digest, "bytes", value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.compare}
        _part(digest, "dataclass", kind.encode())
        _feed(digest, fields)
    elif isinstance(value, Mapping):
        _part(digest, "mapping", str(len(value)).encode())
        for key in sorted(value, key=str):
            _feed(digest, key)
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        _part(digest, "sequence", str(len(value)).encode())
        for item in value:
            _feed(digest, item)
    elif isinstance(value, np.ndarray):
        _part(digest, "array", f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    elif sp.issparse(value):
        rows: Any = value.tocsr()  # type: ignore[attr-defined]  # every sparse format has it
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        _part(digest, "sparse", str(rows.shape).encode())
        for part in (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data):
            _feed(digest, part)
    elif isinstance(value, Path):
        with value.open("rb") as file:
            _part(digest, "file", hashlib.file_digest(file, "sha256").digest())
    else:
        raise TypeError(f"a result cannot depend on a {kind}: it has no fingerprint")


def _part(digest: hashlib.blake2b, kind: str, content: bytes) -> None:
    """Feed one delimited part, so that no two sequences of parts look alike."""
    digest.update(f"{kind}:{len(content)}:".encode())
    digest.update(content)
