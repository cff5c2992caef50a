"""Fuzz target: files of predictions of all formats, read by `read_predictions`."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import random
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from mutate import NUMBERS, STRINGS, change_bytes, change_json, change_text, to_text
from runner import Case, command, scratch

KINDS = (".jsonl", ".csv", ".parquet", ".npz", ".jsonl.gz", ".csv.xz")
RECORDS: list[dict[str, Any]] = [
    {"id": f"d{at}", "labels": [[f"label {at % 3}", 0.9], ["é", 0.25], ["x", -3.5]][: at + 1]} for at in range(4)
]


def make_case(seed: int) -> Case:
    """A changed file of predictions."""
    draw = random.Random(seed)
    kind = draw.choice(KINDS)
    path = scratch() / f"predictions{kind}"
    content, note = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet, ".npz": _npz}[f".{kind.split('.')[1]}"](draw)
    if kind.endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    elif kind.endswith(".xz"):
        content = lzma.compress(content)
    if draw.random() < (0.2 if kind != ".npz" else 0.4):
        content, note = change_bytes(content, draw), f"bytes, {note}"
    path.write_bytes(content)
    options = {
        "labels": draw.choice([None, None, ["é", "x"], ["x", "x"]]),
        "ids": draw.choice([None, None, ["d0", "d1"]]),
    }
    return Case(seed, path, note, options)


def _jsonl(draw: random.Random) -> tuple[bytes, str]:
    records = json.loads(json.dumps(RECORDS))
    if draw.random() < 0.2:
        text = "\n".join(map(json.dumps, records))
        return change_text(text, draw).encode("utf-8", "surrogatepass"), "letters"
    note = change_json(records, draw, ("id", "labels", "label", "score"))
    if not isinstance(records, list):
        records = [records]
    return "\n".join(map(to_text, records)).encode("utf-8", "surrogatepass"), note


def _csv(draw: random.Random) -> tuple[bytes, str]:
    rows = [["id", "rank", "label", "score"]]
    for record in RECORDS:
        rows += [[record["id"], str(rank), name, str(score)] for rank, (name, score) in enumerate(record["labels"], 1)]
    if draw.random() < 0.5:
        row = draw.choice(rows)
        row[draw.randrange(4)] = draw.choice(
            [*STRINGS, *map(str, NUMBERS), "inf", "1e400", '"', "'", "9" * 5000, "x" * 200_000]
        )
    text = "\n".join(",".join(row) for row in rows)
    if draw.random() < 0.3:
        text = change_text(text, draw)
    return text.encode("utf-8", "surrogatepass"), "a cell"


def _parquet(draw: random.Random) -> tuple[bytes, str]:
    import pyarrow as pa
    from pyarrow import parquet

    n = draw.choice([0, 1, 4])
    ids = draw.choice([[f"d{at}" for at in range(n)], list(range(n)), [None] * n, ["d"] * n, [b"\xff"] * n])
    labels = draw.choice(
        [[["a", "b"]] * n, [None] * n, [[None]] * n, [["a", "a"]] * n, [[]] * n, ["a"] * n, [[1, 2]] * n]
    )
    numbers = [0.5, float("nan"), float("inf"), 1e300, None, 2**62]
    scores = draw.choice([[[0.5, 0.25]] * n, [None] * n, [[draw.choice(numbers[:4]), 1.0]] * n, [[0.5]] * n, [0.5] * n])
    table = pa.table({"id": ids, "labels": labels, "scores": scores})
    if draw.random() < 0.1:
        table = table.drop_columns([draw.choice(["id", "labels", "scores"])])
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue(), "columns"


def _npz(draw: random.Random) -> tuple[bytes, str]:
    import numpy as np

    format_of = np.array(draw.choice([b"csr", b"csr", b"csc", b"coo", b"bsr", b"dia", b"xxx", "csr"]))
    arrays: dict[str, Any] = {
        "format": format_of,
        "shape": np.array([3, 4]),
        "indptr": np.array([0, 2, 3, 3], np.int32),
        "indices": np.array([0, 3, 1], np.int32),
        "data": np.array([0.5, 0.25, 1.0]),
        "row": np.array([0, 0, 1]),
        "col": np.array([0, 3, 1]),
        "offsets": np.array([0]),
    }
    name = draw.choice(list(arrays))
    old = arrays[name]
    small = [number for number in NUMBERS if -(2**63) <= number < 2**63]
    numbers = np.array([draw.choice(small) for _ in range(draw.choice([0, 1, 2, 3, 4]))])
    changes = [
        lambda: numbers,
        lambda: old[None],
        lambda: old.astype(draw.choice(["f4", "f8", "c16", "i1", "u8", "S3", "?", "U2", "M8[s]", "O"])),
        lambda: np.repeat(old, 3) if old.ndim else old,
        lambda: np.array([float("nan"), 1.0, float("inf")]),
        lambda: np.array(draw.choice([None, "csr", 3])),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            arrays[name] = draw.choice(changes)()
        except (TypeError, ValueError):
            arrays[name] = numbers
    if draw.random() < 0.1:
        del arrays[draw.choice(list(arrays))]
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", draw.choice([0, 0, 8])) as archive:
        for key, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asanyarray(array))
            content = part.getvalue()
            if draw.random() < 0.1:
                content = change_bytes(content, draw)
            archive.writestr(f"{key}.npy", content)
    return sink.getvalue(), f"{name} of {format_of}"


def check(case: Case) -> str:
    """Read the file; what is accepted must have finite scores and be written again."""
    import numpy as np

    from labelwise import read_predictions

    assert case.path is not None
    found = read_predictions(case.path, **case.data)
    if not np.isfinite(found.matrix.data).all():
        return "wrong: scores that are not finite"
    if sum(map(len, found)) != found.matrix.nnz:
        return "wrong: entries are lost"
    return "accepted"


def prepare() -> None:
    """Import what reads the formats."""
    import pyarrow.parquet  # noqa: F401
    import scipy.sparse  # noqa: F401

    from labelwise import read_predictions  # noqa: F401


if __name__ == "__main__":
    sys.exit(command(make_case, check, about=__doc__ or "", cases=5000, memory_mb=1024, prepare=prepare))
