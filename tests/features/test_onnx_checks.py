"""ONNX files, written by hand as protocol buffers: an encoder's arithmetic passes, everything else is refused."""

import struct

import numpy as np
import pytest

from labelwise.errors import StorageError
from labelwise.features.onnx_checks import check_onnx

FLOAT, INT64, INT8, DOUBLE, FLOAT16, INT32 = 1, 7, 3, 11, 10, 6


def varint(value):
    value %= 1 << 64
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(at, value):
    return varint(at << 3) + varint(value)


def block(at, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(at << 3 | 2) + varint(len(content)) + content


def tensor(values, kind=FLOAT, dims=None, *, raw=True, more=b""):
    values = np.asarray(values)
    dims = values.shape if dims is None else dims
    out = b"".join(number(1, size) for size in dims) + number(2, kind) + block(8, "w") + more
    if raw:
        return out + block(9, values.tobytes())
    if kind in (FLOAT, DOUBLE):
        return out + block(4 if kind == FLOAT else 10, values.tobytes())
    return out + block(7 if kind == INT64 else 5, b"".join(varint(int(one)) for one in values.reshape(-1)))


def node(operator="MatMul", domain="", attributes=()):
    out = block(1, "x") + block(2, "y") + block(4, operator)
    return out + (block(7, domain) if domain else b"") + b"".join(block(5, one) for one in attributes)


def model(tmp_path, *, nodes=(), tensors=(), more=b"", graph_more=b""):
    graph = b"".join(block(1, one) for one in nodes) + b"".join(block(5, one) for one in tensors) + graph_more
    file = tmp_path / "model.onnx"
    file.write_bytes(number(1, 10) + block(7, graph) + more)
    return file


def test_an_encoder_passes(tmp_path):
    tensors = [
        tensor(np.ones((300, 8), np.float32)),
        tensor(np.array([0, -1, 4, 2]), INT64),
        tensor(np.array([2**63 - 1]), INT64),
        tensor(np.float32(-np.inf), dims=()),
        tensor(np.ones(3, np.float32), raw=False),
        tensor(np.array([1, -1], np.int8), INT8, raw=False),
        tensor(np.array([3, -3], np.int64), INT64, raw=False),
        tensor(np.ones((2, 2), np.float16), FLOAT16),
        tensor(np.arange(512), INT64),
    ]
    check_onnx(
        model(
            tmp_path,
            nodes=[node(), node("Gather", "ai.onnx"), node("Constant", "", [block(5, tensors[1])])],
            tensors=tensors,
        )
    )


def beside(place, more=b""):
    """A tensor whose values lie in another file."""
    where = block(13, block(1, "location") + block(2, place))
    return tensor(np.zeros(0), dims=(4,), more=number(14, 1) + where + more)


BIG = np.zeros((4, 4), np.float32)
NAN = np.full((4, 4), np.nan, np.float32)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"nodes": [node("Loop")]}, "the operator Loop, which no encoder needs"),
        ({"nodes": [node("If")]}, "the operator If"),
        ({"nodes": [node("RandomNormal")]}, "the operator RandomNormal"),
        ({"nodes": [node("MatMul", "com.evil")]}, "the operator com.evil:MatMul"),
        ({"nodes": [node("Add", "", [block(6, b"")])]}, "the operator Add has a graph of its own"),
        ({"nodes": [node("Constant", "", [block(5, tensor(NAN))])]}, "are not all finite"),
        ({"tensors": [tensor(NAN)]}, "'w' are not all finite"),
        ({"tensors": [tensor(np.float32(np.nan), dims=())]}, "are not all finite"),
        ({"tensors": [tensor(np.full(2, np.nan, np.float32), raw=False)]}, "or are not all finite"),
        ({"tensors": [tensor(np.full(2, np.inf, np.float16), FLOAT16)]}, "are not all finite"),
        ({"tensors": [tensor(BIG, dims=(4, 5))]}, "have another size than they say"),
        ({"tensors": [tensor(BIG, dims=(1 << 60, 4))]}, "an unknown type or shape"),
        ({"tensors": [tensor(BIG, dims=(-1, 4))]}, "an unknown type or shape"),
        ({"tensors": [tensor(BIG, 8)]}, "an unknown type or shape"),
        ({"tensors": [tensor(np.array([1, 1 << 40]), INT64)]}, "is among its weights"),
        ({"tensors": [tensor(np.array([60_000, 60_000]), INT64)]}, "it has the shape"),
        ({"tensors": [tensor(np.array([1 << 30], np.int32), INT32)]}, "is among its weights"),
        ({"tensors": [tensor(np.array([1 << 40]), INT64, raw=False)]}, "is among its weights"),
        ({"tensors": [beside("/etc/passwd")]}, "lie outside of the folder"),
        ({"tensors": [beside("../x")]}, "lie outside of the folder"),
        ({"tensors": [beside("k", block(13, block(1, "location") + block(2, "/x")))]}, "name their place twice"),
        ({"tensors": [beside("k", block(13, block(1, "length") + block(2, "9" * 5000)))]}, "lie outside of the folder"),
        ({"tensors": [tensor(np.array([-(2**63)]), INT64)]}, "the smallest of all numbers"),
        ({"nodes": [node("Constant", "", [number(3, 2**63)])]}, "the smallest of all numbers"),
        ({"nodes": [node("Conv", "", [number(8, 10**8) + number(8, 10**8)])]}, "is among its weights"),
        ({"nodes": [node()] * 16_001}, "it has 16,001 operators"),
        ({"more": block(25, b"")}, "no plain graph of operators"),
        ({"more": block(7, b"")}, "no plain graph of operators"),
        ({"graph_more": block(15, b"")}, "sparse weights"),
        ({"more": b"\x3a\xff\xff\xff\xff\x0f"}, "cut off"),
        ({"more": b"\x07"}, "no valid ONNX file"),
        ({"more": b"\xff" * 20}, "no valid ONNX file"),
        ({"graph_more": number(5, 3)}, "no valid ONNX file"),
    ],
)
def test_anything_else_is_refused(tmp_path, parts, message):
    with pytest.raises(StorageError, match=message):
        check_onnx(model(tmp_path, **parts))


def test_weights_beside_the_file(tmp_path):
    def entry(key, value):
        return block(13, block(1, key) + block(2, value))

    def outside(offset="0", length="64", place="model.onnx.data"):
        entries = entry("location", place) + entry("offset", offset) + entry("length", length)
        return number(1, 4) + number(1, 4) + number(2, FLOAT) + number(14, 1) + entries

    (tmp_path / "model.onnx.data").write_bytes(np.ones((4, 4), np.float32).tobytes())
    check_onnx(model(tmp_path, tensors=[outside()]))
    for wrong in (outside("8"), outside("x"), outside("0", "60"), outside(place="nowhere"), outside("-1")):
        with pytest.raises(StorageError):
            check_onnx(model(tmp_path, tensors=[wrong]))
    (tmp_path / "model.onnx.data").write_bytes(struct.pack("<16f", *[float("nan")] * 16))
    with pytest.raises(StorageError, match="not all finite"):
        check_onnx(model(tmp_path, tensors=[outside()]))


def test_files_that_are_none(tmp_path):
    file = tmp_path / "model.onnx"
    for content in (b"", b"ORTM" * 10, b"\0" * 50, bytes(range(256))):
        file.write_bytes(content)
        with pytest.raises(StorageError, match=r"model\.onnx"):
            check_onnx(file)
