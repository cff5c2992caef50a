#!/usr/bin/env python3
"""Reads mutated data files of 15 formats: each is accepted with sound data, or refused with a LabelwiseError.

    python tools/fuzz/data_files.py --cases 100000 --seed 1

A case is a small valid data set with one to four changes: bytes, tokens, numbers at the ends of their ranges, lines,
headers, damage of a compressed stream, arrays of npz files, columns of parquet files, files that are missing, swapped,
or no files at all. `runner.py` has the options.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import logging
import lzma
import os
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import scipy.sparse as sp
from runner import Case, command, scratch

from labelwise.data.files import zstd_module

Files = dict[str, bytes]

TEXTS = ["red apple pie", "red rose, «thorn»", "green apple 漢字", "blue rose", 'a "quoted" text', "six legs"]
LABELS = [["fruit", "red"], ["red", "flower"], ["fruit"], ["flower", "blue"], ["red"], ["blue", "fruit"]]
NAMES = ["fruit", "red", "flower", "blue"]
NUMBERS = [
    *("0", "-1", "1", "2", "-0", "255", "256", "65535", "65536", "2147483646", "2147483647", "2147483648"),
    *("4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *("1e400", "-1e400", "1e-400", "3.5e38", "nan", "NaN", "inf", "-Infinity", "0.1", "1e5", "00", "+1", "1_0", "0x1"),
    *("9" * 400, "9" * 5000, "1." + "0" * 5000, "٣", "½"),
]
TOKENS = [
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\r", b"\r\n", b"\n", b"\n\n", b"\x1a", b"\x85"),
    *(b'"', b"'", b"\\", b",", b";", b"|", b"\t", b":", b" ", b"<", b">", b"<a b>", b"#", b"{", b"}", b"[", b"]"),
    *(b"null", b"true", b"[]", b"{}", b'""', b'"\\ud800"', b"\\udfff", b'{"a":1}', b"[1]", b"[[]]", b"[{[]:1}]"),
    *(b"['a','b']", b"[b'a']", b"[1e999]", b"[-" + b"9" * 5000 + b"]", b"[" * 300, b"[" * 100_000, b'{"a":' * 5000),
    *(b"(" * 300, b"[" + b"-" * 3000 + b"1]", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xf0\x9f\x8d\x8e", b"a" * 70_000),
]
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 1, mtime=0),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".bz2": lambda data: bz2.compress(data, 1),
    ".zst": lambda data: zstd_module().compress(data),
}
FORMATS: dict[str, Files] = {}
"""Files of a valid data set by the name of its format; `prepare` makes them."""
BOMBS: dict[str, bytes] = {}
"""Compressed files of 20 MB of lines, by suffix."""


def prepare() -> None:
    """Make the valid data sets, and compile what reads them."""
    from labelwise.data import load_splits

    FORMATS.update(valid_sets())
    logging.disable(logging.WARNING)
    lines = b'{"text": "a", "labels": ["b"]}\n' * (20_000_000 // 31)
    BOMBS.update({suffix: pack(lines) for suffix, pack in PACK.items() if suffix != ".bz2"})
    with tempfile.TemporaryDirectory() as place:
        for name, files in FORMATS.items():
            folder = Path(place) / name
            write(folder, files)
            load_splits(folder)


def valid_sets() -> dict[str, Files]:
    """The files of each format."""
    rows = [
        {"id": f"d{i}", "text": text, "labels": own} for i, (text, own) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    jsonl = ["".join(json.dumps(row, ensure_ascii=False) + "\n" for row in part).encode() for part in (rows, rows[3:])]
    numbers = [[NAMES.index(name) for name in own] for own in LABELS]
    table = "id,text,labels\n" + "".join(
        f'{i},"{t.replace(chr(34), chr(34) * 2)}",{";".join(own)}\n'
        for i, (t, own) in enumerate(zip(TEXTS, LABELS, strict=True))
    )
    tabs = "text\tlabels\n" + "".join(
        f'{t.replace(chr(34), "")}\t["{chr(34).join(own[:1])}"]\n' for t, own in zip(TEXTS, LABELS, strict=True)
    )
    annif = "".join(f"{t}\t{' '.join(f'<{name}>' for name in own)}\n" for t, own in zip(TEXTS, LABELS, strict=True))
    svm = "".join(f"{','.join(map(str, own))} {i + 1}:0.5 {i + 3}:1e-3\n" for i, own in enumerate(numbers))
    xc = "6 9 4\n" + "".join(f"{','.join(map(str, own))} {i}:0.5 {i + 2}:-1.25\n" for i, own in enumerate(numbers))
    Y = "6 4\n" + "".join(" ".join(f"{n}:1" for n in own) + "\n" for own in numbers)
    X = "6 9\n" + "".join(f"{i}:0.5 {i + 2}:1\n" for i in range(6))
    raw = "".join(
        json.dumps({"uid": f"u{i}", "title": t, "content": t, "target_ind": own, "target_rel": [1.0]}) + "\n"
        for i, (t, own) in enumerate(zip(TEXTS, numbers, strict=True))
    )
    lbl = "".join(json.dumps({"uid": f"l{i}", "title": name, "content": name}) + "\n" for i, name in enumerate(NAMES))
    names = "".join(f"{name}\n" for name in NAMES).encode()
    about = "".join(json.dumps({"label": n, "text": f"about {n}"}) + "\n" for n in NAMES).encode()
    lines = "".join(f"{text}\n" for text in TEXTS).encode()
    found: dict[str, Files] = {
        "jsonl": {"train.jsonl": jsonl[0], "test.jsonl": jsonl[1]},
        "csv": {"train.csv": table.encode()},
        "tsv": {"train.tsv": tabs.encode(), "labels.txt": names},
        "annif": {"train.tsv": annif.encode()},
        "libsvm": {"train.svm": svm.encode()},
        "xc": {"train.txt": xc.encode(), "Y.txt": names},
        "xc family": {"trn_X_Y.txt": Y.encode(), "trn_X_Xf.txt": X.encode(), "trn_X.txt": lines},
        "xc raw": {"trn.json": raw.encode(), "lbl.json": lbl.encode(), "tst.json": raw.encode()},
        "pecos": {
            "Y.trn.npz": npz(indicator(numbers)),
            "X.trn.npz": npz(sp.random(6, 9, 0.4, "csr", random_state=0)),
            "train_raw_texts.txt": lines,
            "label_map.txt": names,
        },
        "labels": {
            "train.jsonl": jsonl[0],
            "labels.jsonl": "".join(json.dumps(n) + "\n" for n in NAMES).encode(),
            "label_texts.jsonl": about,
        },
        "libsvm with names": {"train.txt": svm.encode(), "test.txt": svm.encode(), "labels.txt": names},
        "jsonl.gz": {"train.jsonl.gz": PACK[".gz"](jsonl[0]), "labels.txt.gz": PACK[".gz"](names)},
        "csv.xz": {"train.csv.xz": PACK[".xz"](table.encode())},
        "xc.zst": {"train.txt.zst": PACK[".zst"](xc.encode())},
        "annif.bz2": {"train.tsv.bz2": PACK[".bz2"](annif.encode())},
    }
    parquet = parquet_file({"text": TEXTS, "labels": LABELS, "id": [f"d{i}" for i in range(6)]})
    if parquet is not None:
        found["parquet"] = {"train.parquet": parquet}
    return found


def indicator(rows: Sequence[Sequence[int]]) -> Any:
    """A 0/1 matrix with four columns."""
    return sp.csr_matrix([[float(n in row) for n in range(4)] for row in rows], dtype=np.float32)


def npz(matrix: Any) -> bytes:
    """A matrix as scipy saves it."""
    buffer = io.BytesIO()
    sp.save_npz(buffer, matrix, compressed=matrix.shape[1] != 4)
    return buffer.getvalue()


def parquet_file(columns: dict[str, Any]) -> bytes | None:
    """A table as a parquet file; None without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer, compression="snappy")
    return buffer.getvalue()


def write(folder: Path, files: Files) -> None:
    """Write files into a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


# ---------------------------------------------------------------------- mutations


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """The bytes with one change anywhere."""
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 64)))
    kind = rng.randrange(6)
    if kind == 0:
        return data[:at] + bytes(rng.randrange(256) for _ in range(end - at)) + data[end:]
    if kind == 1:
        return data[:at] + data[end:]
    if kind == 2:
        return data[:at] + data[at:end] * rng.choice((2, 3, 100)) + data[end:]
    if kind == 3:
        return data[:at]
    if kind == 4:
        return data[:at] + rng.choice(TOKENS) + data[at:]
    return data[:at] + bytes([rng.choice((0, 1, 127, 128, 255))]) * (end - at) + data[end:]


def changed_text(data: bytes, rng: random.Random) -> bytes:
    """Lines of text with one change of a number, a token or a line."""
    kind = rng.randrange(8)
    if kind <= 2:
        places = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", data))
        if places:
            place = rng.choice(places)
            return data[: place.start()] + rng.choice(NUMBERS).encode() + data[place.end() :]
    if kind == 3:
        places = list(re.finditer(rb"\w+|[^\w\s]", data))
        if places:
            place = rng.choice(places)
            return data[: place.start()] + rng.choice((b"", *TOKENS)) + data[place.end() :]
    if kind == 4:
        return rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\n", b" ", b"\x00")) + data
    lines = data.splitlines(keepends=True) or [b""]
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == 5:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 6:
        lines[a] = rng.choice((b"", b"\n", lines[a] * 2, lines[a] * 500, lines[a].rstrip(), b" " * 100_000 + lines[a]))
    else:
        encoding = rng.choice(("utf-16", "utf-16-le", "latin-1", "utf-32", "utf-8-sig"))
        return data.decode("utf-8", "replace").encode(encoding, "replace")
    return b"".join(lines)


def changed_archive(data: bytes, suffix: str, unpack: Callable[[bytes], bytes], rng: random.Random) -> bytes:
    """A compressed file, changed inside or outside."""
    kind = rng.randrange(1, 40)
    if rng.random() < 0.005 and suffix in BOMBS:
        return BOMBS[suffix]
    if kind < 20:
        if data in BOMBS.values():  # a case that changes 20 MB of text would need more memory than what is tested
            return data
        return PACK[suffix](changed_text(unpack(data), rng))
    if kind < 24:
        return data + rng.choice((data, b"\x00" * 100, b"tail", data[: len(data) // 2]))
    return changed_bytes(data, rng)


UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
    ".zst": lambda data: zstd_module().decompress(data),
}


def changed_npz(data: bytes, rng: random.Random) -> bytes:
    """An npz file with one array changed, or with damage."""
    if rng.random() < 0.3:
        return changed_bytes(data, rng)
    with np.load(io.BytesIO(data)) as stored:
        arrays = dict(stored)
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    kind = rng.randrange(7)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        types = ("i1", "u1", "i2", "i8", "u8", "f2", "f4", "f8", "c8", "?", "U5", "S3", ">i4", "M8[s]")
        with np.errstate(all="ignore"):
            arrays[name] = np.asarray(array.astype("U20") if array.dtype.kind == "S" else array).astype(
                rng.choice(types)
            )
    elif kind == 2 and array.size and array.dtype.kind in "iuf":
        array = array.astype(rng.choice(("i8", "f8", array.dtype.str))).copy()
        flat = array.reshape(-1)
        values = (0, -1, 1, 3, 4, 6, 9, 127, 2**31 - 1, -(2**31))
        flat[rng.randrange(flat.size)] = rng.choice(values if array.dtype.itemsize < 8 else (*values, 2**31, 2**62))
        arrays[name] = array
    elif kind == 3:
        arrays[name] = rng.choice(
            (array[:-1] if array.ndim else array[None], np.append(array, array), array[None], array[..., None])
        )
    elif kind == 4 and array.dtype.kind == "f":
        arrays[name] = np.full_like(array, rng.choice((np.nan, np.inf, -np.inf, 3.4e38, 0.0)))
    elif kind == 5:
        arrays["format"] = np.array(rng.choice((b"csr", b"csc", b"coo", b"bsr", b"dia", b"\xff", "csr", "x" * 50)))
    else:
        arrays[name] = np.array(rng.choice((0, -1, 2**40, 1.5, "a", b"b", True)))
    buffer = io.BytesIO()
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(buffer, **arrays)
    return buffer.getvalue()


def changed_parquet(data: bytes, rng: random.Random) -> bytes:
    """A parquet file with damage, or with other columns."""
    if rng.random() < 0.6:
        return changed_bytes(data, rng)
    texts: list[Any] = list(TEXTS)
    labels: list[Any] = [list(own) for own in LABELS]
    ids: list[Any] = [f"d{i}" for i in range(6)]
    at = rng.randrange(6)
    kind = rng.randrange(9)
    if kind == 0:
        texts[at] = rng.choice((None, "", " ", "\x00"))
    elif kind == 1:
        labels[at] = rng.choice((None, [], [""], [None], ["a"] * 1000, ["\x00"]))
    elif kind == 2:
        ids[at] = rng.choice((None, "d0", ""))
    elif kind == 3:
        labels = rng.choice((["fruit;red"] * 6, ["[1e999]", "[{[]:1}]", "[", "[" * 5000, "a|b", ""], [None] * 6))
    elif kind == 4:
        labels = rng.choice(([[1, 2]] * 6, [[1.5]] * 6, [{"a": 1}] * 6, [[["a"]]] * 6, [b"\xff"] * 6, [[b"\xff"]] * 6))
    elif kind == 5:
        texts = rng.choice(
            ([b"\xff\xfe"] * 6, [1] * 6, [1.5] * 6, [True] * 6, [["a"]] * 6, [None] * 6, [{"a": "b"}] * 6)
        )
    elif kind == 6:
        ids = rng.choice(([2**63 - 1] * 6, list(range(6)), [1.5] * 6, [None] * 6, [["a"]] * 6, [b"\xff"] * 6))
    elif kind == 7:
        texts, labels, ids = [], [], []
    made = parquet_file({rng.choice(("text", "text", "Text", "")): texts, "labels": labels, "id": ids})
    return made if made is not None and rng.random() < 0.8 else changed_bytes(made or data, rng)


def changed_file(name: str, data: bytes, rng: random.Random) -> bytes:
    """The file with one change of a sort that belongs to it."""
    suffix = Path(name).suffix
    if rng.random() < 0.15 or not 0 < len(data) < 1 << 20:
        return changed_bytes(data, rng)
    try:
        if suffix in UNPACK:
            return changed_archive(data, suffix, UNPACK[suffix], rng)
        if suffix == ".npz":
            return changed_npz(data, rng)
        if suffix == ".parquet":
            return changed_parquet(data, rng)
    except Exception:  # an earlier change has damaged the file
        return changed_bytes(data, rng)
    return changed_text(data, rng)


def changed_folder(folder: Path, rng: random.Random) -> str:
    """Change what kind of thing a file is, or what it is called."""
    path = folder / rng.choice(sorted(path.name for path in folder.iterdir()))
    kind = rng.choice(("remove", "empty", "folder", "pipe", "loop", "rename", "zero", "closed"))
    if kind == "closed":
        path.chmod(0)
        return f"{path.name}: closed"
    data = path.read_bytes()
    path.unlink()
    if kind == "empty":
        path.touch()
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "zero":
        path.symlink_to(rng.choice(("/dev/zero", "/dev/null", "/nowhere")))
    elif kind == "rename":
        other = rng.choice(sorted({name for files in FORMATS.values() for name in files}))
        (folder / other).unlink(missing_ok=True)
        (folder / other).write_bytes(data)
    return f"{path.name}: {kind}"


def make_case(seed: int) -> Case:
    """A data set with some changes."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(FORMATS))
    files = dict(FORMATS[kind])
    notes = [kind]
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        name = rng.choice(sorted(files))
        files[name] = changed_file(name, files[name], rng)
        notes.append(name)
    folder = scratch() / "data"
    if folder.exists():
        shutil.rmtree(folder)
    write(folder, files)
    if rng.random() < 0.02:
        notes.append(changed_folder(folder, rng))
    return Case(seed, folder, ", ".join(notes))


def check(case: Case) -> str:
    """Read the data set, and sometimes describe or convert it."""
    from labelwise.data import convert, describe, load_splits
    from labelwise.errors import LabelwiseError

    assert case.path is not None
    rng = random.Random(case.seed + 1)
    options: dict[str, Any] = {
        name: True for name in ("skip_bad_rows", "allow_unlabelled", "unique_ids") if rng.random() < 0.3
    }
    source = (
        case.path if rng.random() < 0.9 else case.path / min([path.name for path in case.path.iterdir()] or ["nothing"])
    )
    try:
        splits = load_splits(source, **options)
        for dataset in splits.values():
            problem = unsound(dataset)
            if problem:
                return f"wrong: {problem}"
        if rng.random() < 0.05 and "train" in splits:
            describe(splits)
        if rng.random() < 0.05:
            to: Any = rng.choice(("jsonl", "csv", "tsv", "annif", "libsvm", "xc", "pecos"))
            convert(source, scratch() / "out", to, overwrite=True, **options)
    except LabelwiseError:
        return "refused"
    return "accepted"


def unsound(dataset: Any) -> str:
    """What is wrong with data that were accepted; empty if nothing is."""
    n_docs, n_labels = dataset.Y.shape
    if len(set(dataset.labels)) != n_labels or not all(isinstance(name, str) and name for name in dataset.labels):
        return "label names are empty or not distinct"
    for matrix in (dataset.Y, dataset.features):
        if matrix is None:
            continue
        matrix.check_format(full_check=True)
        if not np.isfinite(matrix.data).all() or matrix.shape[0] != n_docs:
            return "a value is not finite, or a row is missing"
    if dataset.Y.nnz and set(np.unique(dataset.Y.data).tolist()) != {1.0}:
        return "Y has other values than 1"
    texts = dataset.texts
    return "a text is no string" if texts is not None and not all(isinstance(text, str) for text in texts) else ""


if __name__ == "__main__":
    raise SystemExit(command(make_case, check, about=__doc__ or "", cases=100_000, memory_mb=4096, prepare=prepare))
