"""Checks of an ONNX file before onnxruntime sees it, by reading its protocol buffers: no package is needed for that.

Allowed are the operators of encoders: arithmetic, shapes, lookups and matrix products. There is no loop and no branch
among them, no operator of another domain, and nothing random, so that a file can neither run for ever nor load a
library. Weights lie in the file, or in a file beside it, and are finite.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise.errors import StorageError
from labelwise.features.encoder_checks import is_finite, plain_name
from labelwise.storage.checks import check_file, damaged

OPERATORS = frozenset(
    (
        *("Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Concat", "Constant"),
        *("ConstantOfShape", "Conv", "Cos", "CumSum", "DequantizeLinear", "Div", "DynamicQuantizeLinear", "Einsum"),
        *("Elu", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Gelu"),
        *("Gemm", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN"),
        *("LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "MatMul"),
        *("MatMulInteger", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pad"),
        *("Pow", "QuantizeLinear", "RMSNormalization", "Range", "Reciprocal", "ReduceL2", "ReduceMax", "ReduceMean"),
        *("ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Selu"),
        *("Shape", "Sigmoid", "Sign", "Sin", "Size", "Slice", "Softmax", "Softplus", "Softsign", "Split", "Sqrt"),
        *("Squeeze", "Sub", "Sum", "Swish", "Tanh", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"),
    )
)
"""Standard operators that an encoder may consist of."""
MOST_NODES = 16_000
LARGEST_NUMBER, LARGEST_PRODUCT = 1 << 16, 1 << 26
"""Whole numbers among the weights, which can be sizes; a few of them together are the shape of an array."""
ENDLESS = 1 << 62
"""From here on a number means "to the end"; no array can have such a size, so that onnxruntime refuses it as one."""

_GRAPH, _FUNCTIONS, _NODE, _INITIALIZER, _SPARSE_INITIALIZER = 7, 25, 1, 5, 15  # fields of ModelProto and GraphProto
_OPERATOR, _ATTRIBUTE, _DOMAIN = 4, 5, 7  # of NodeProto
_INT, _INTS = 3, 8  # of AttributeProto
_TENSOR, _SUBGRAPH, _TENSORS, _SUBGRAPHS, _SPARSE, _SPARSES = 5, 6, 10, 11, 22, 23
_DIMS, _TYPE, _FLOATS, _INT32S, _INT64S, _NAME, _RAW, _DOUBLES, _EXTERNAL, _LOCATION = 1, 2, 4, 5, 7, 8, 9, 10, 13, 14
_DTYPES: dict[int, tuple[str, int]] = {
    1: ("F32", 4),
    10: ("F16", 2),
    11: ("F64", 8),
    16: ("BF16", 2),
    2: ("U8", 1),
    3: ("I8", 1),
    4: ("U16", 2),
    5: ("I16", 2),
    6: ("I32", 4),
    7: ("I64", 8),
    9: ("BOOL", 1),
    12: ("U32", 4),
    13: ("U64", 8),
}
"""The types of tensors by their number in ONNX: name and bytes."""
_WHOLE = {"I32": np.int32, "I64": np.int64, "U32": np.uint32, "U64": np.uint64}
_DIGITS = re.compile("[0-9]{1,15}")
Fields = dict[int, list[Any]]


def check_onnx(file: Path) -> None:
    """Refuse an ONNX file that is more than the arithmetic of an encoder, or whose weights are not finite."""
    check_file(file)
    content = memoryview(np.memmap(file, np.uint8, "r").data if file.stat().st_size else b"")
    try:
        model = _fields(content)
        graphs = model.get(_GRAPH, [])
        if len(graphs) != 1 or _FUNCTIONS in model:
            raise NoEncoderError("it is no plain graph of operators")
        graph = _fields(graphs[0])
        if _SPARSE_INITIALIZER in graph:
            raise NoEncoderError("it has sparse weights")
        nodes = graph.get(_NODE, [])
        if len(nodes) > MOST_NODES:
            raise NoEncoderError(f"it has {len(nodes):,} operators")
        tensors = [_fields(tensor) for tensor in graph.get(_INITIALIZER, [])]
        settings = []
        for node in nodes:
            attributes = _attributes(_fields(node))
            tensors += [_fields(tensor) for attribute in attributes for tensor in attribute.get(_TENSOR, [])]
            settings += [number for one in attributes for field in (_INT, _INTS) if (number := _numbers(one, field))]
        longest = max((max(_numbers(tensor, _DIMS), default=1) for tensor in tensors), default=1)
        for numbers in settings:
            _check_whole(np.array(numbers, np.int64), max(LARGEST_NUMBER, longest))
        for tensor in tensors:
            _check_tensor(tensor, file, max(LARGEST_NUMBER, longest))
    except NoEncoderError as err:
        raise StorageError(f"{file}: {err}; export the model again") from err


class NoEncoderError(Exception):
    """What is wrong with the file, in a few words."""


def _fields(message: Any) -> Fields:
    """The fields of a message by number: numbers of varints, views of anything else."""
    found: Fields = {}
    for number, value in _walk(message):
        found.setdefault(number, []).append(value)
    return found


def _walk(message: Any) -> Iterator[tuple[int, Any]]:
    if not isinstance(message, memoryview):
        raise NoEncoderError("it is no valid ONNX file")
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise NoEncoderError("it is no valid ONNX file")
        if size > end - at:
            raise NoEncoderError("it is cut off")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise NoEncoderError("it is no valid ONNX file")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _text(fields: Fields, number: int) -> str:
    """A field that is a text; the last one counts."""
    values = fields.get(number, [b""])
    if any(isinstance(value, int) for value in values):
        raise NoEncoderError("it is no valid ONNX file")
    return bytes(values[-1]).decode("utf-8", "replace")


def _numbers(fields: Fields, number: int) -> list[int]:
    """A field that repeats whole numbers, each for itself or packed; as signed numbers of 64 bits."""
    found: list[int] = []
    for value in fields.get(number, []):
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = _varint(value, at)
            found.append(one)
    return [one - (1 << 64) if one >= 1 << 63 else one for one in found]


def _attributes(node: Fields) -> list[Fields]:
    """The attributes of a node, which must be one of the operators."""
    operator, domain = _text(node, _OPERATOR), _text(node, _DOMAIN)
    if domain not in ("", "ai.onnx") or operator not in OPERATORS:
        raise NoEncoderError(
            f"it has the operator {domain + ':' if domain else ''}{operator[:60]}, which no encoder needs"
        )
    attributes = [_fields(attribute) for attribute in node.get(_ATTRIBUTE, [])]
    for attribute in attributes:
        if {_SUBGRAPH, _SUBGRAPHS, _TENSORS, _SPARSE, _SPARSES} & set(attribute):
            raise NoEncoderError(f"the operator {operator} has a graph of its own")
    return attributes


def _check_tensor(tensor: Fields, file: Path, largest: int) -> None:
    """Refuse a tensor whose size does not fit its content, or with numbers that no encoder has."""
    name, dims = _text(tensor, _NAME)[:60], _numbers(tensor, _DIMS)
    kind, width = _DTYPES.get((_numbers(tensor, _TYPE) or [0])[-1], ("", 0))
    if not kind or len(dims) > 8 or any(not 0 <= one < 1 << 40 for one in dims):
        raise NoEncoderError(f"the weights {name!r} have an unknown type or shape")
    size, content = math.prod(dims), _content(tensor, file, name)
    if content is None:  # in a field for each type, of which only small tensors make use
        _check_few(tensor, kind, size, name, largest)
        return
    if len(content) != size * width:
        raise NoEncoderError(f"the weights {name!r} have another size than they say")
    if kind in ("F16", "BF16", "F32", "F64"):
        # A scalar may be infinite: the mask of an attention adds it.
        if not is_finite(content, kind) and (size > 1 or np.isnan(_scalar(content, kind))):
            raise NoEncoderError(f"the weights {name!r} are not all finite")
    elif kind in _WHOLE:
        aligned = content if content.ctypes.data % width == 0 else content.copy()
        _check_whole(aligned.view(_WHOLE[kind]), largest)


def _scalar(content: npt.NDArray[np.uint8], kind: str) -> float:
    if kind == "BF16":
        return float(np.frombuffer(b"\0\0" + content.tobytes(), np.float32)[0])
    dtype = {"F16": np.float16, "F32": np.float32, "F64": np.float64}[kind]
    return float(np.frombuffer(content.tobytes(), dtype)[0])


def _check_few(tensor: Fields, kind: str, size: int, name: str, largest: int) -> None:
    """The same for numbers in the fields of their type."""
    if kind in ("F32", "F64"):
        field = tensor.get(_FLOATS if kind == "F32" else _DOUBLES, [])
        if any(isinstance(part, int) for part in field):
            raise NoEncoderError("it is no valid ONNX file")
        content = np.frombuffer(b"".join(map(bytes, field)), np.uint8)
        if len(content) != size * (4 if kind == "F32" else 8) or not is_finite(content, kind):
            raise NoEncoderError(f"the weights {name!r} have another size than they say, or are not all finite")
        return
    numbers = _numbers(tensor, _INT64S if kind in ("I64",) else _INT32S)
    if len(numbers) != size or kind in ("U32", "U64"):
        raise NoEncoderError(f"the weights {name!r} have another size than they say")
    if kind in ("F16", "BF16"):
        if not is_finite(np.array([one & 0xFFFF for one in numbers], np.uint16).view(np.uint8), kind):
            raise NoEncoderError(f"the weights {name!r} are not all finite")
    elif kind in ("I32", "I64"):
        _check_whole(np.array(numbers, np.int64), largest)


def _check_whole(values: npt.NDArray[Any], largest: int) -> None:
    """Refuse numbers that can only be the size of an array too large for any memory."""
    if not values.size:
        return
    if int(values.min()) == np.iinfo(np.int64).min:  # divided by -1, it ends the process
        raise NoEncoderError("the smallest of all numbers is among its weights, which no array needs")
    inside = values[(values < ENDLESS) & (values > -ENDLESS)] if values.dtype.itemsize == 8 else values
    if inside.size and (int(inside.max()) > largest or int(inside.min()) < -largest):
        raise NoEncoderError(f"the number {int(inside.max()):,} is among its weights, larger than any array of them")
    if inside.size <= 8 and math.prod(abs(int(one)) for one in inside if one) > LARGEST_PRODUCT:
        raise NoEncoderError(f"it has the shape {inside.tolist()}, larger than any array of an encoder")


def _content(tensor: Fields, file: Path, name: str) -> npt.NDArray[np.uint8] | None:
    """The bytes of a tensor, in the file or in one beside it; None if the values are in a field of their type."""
    if 1 in _numbers(tensor, _LOCATION) or _EXTERNAL in tensor:
        pairs = [(_text(entry, 1), _text(entry, 2)) for entry in map(_fields, tensor.get(_EXTERNAL, []))]
        entries = dict(pairs)
        if len(entries) < len(pairs):  # onnxruntime may take another one than we do
            raise NoEncoderError(f"the weights {name!r} name their place twice")
        place, offset, length = (entries.get(key, "") for key in ("location", "offset", "length"))
        if not plain_name(place) or not all(_DIGITS.fullmatch(number) for number in (offset, length)):
            raise NoEncoderError(f"the weights {name!r} lie outside of the folder")
        beside = file.with_name(place)
        check_file(beside)
        begin, size = int(offset), int(length)
        if not size or begin + size > beside.stat().st_size:
            raise damaged(beside, "it is too short")
        return np.memmap(beside, np.uint8, "r", begin, (size,))
    if _RAW not in tensor:
        return None
    if len(tensor[_RAW]) > 1 or isinstance(tensor[_RAW][0], int):
        raise NoEncoderError("it is no valid ONNX file")
    return np.frombuffer(tensor[_RAW][0], np.uint8)
