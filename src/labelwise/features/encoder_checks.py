"""Checks of the folder of an encoder, before transformers, tokenizers or onnxruntime see it.

A folder of weights is data, whoever made it. These libraries can be asked by entries of its JSON files to import code
that lies in the folder, to fetch and run code of other repositories, or to open other files; such entries are refused.
Sizes that config.json names are compared with what the files can hold. `onnx_checks` has the checks of ONNX files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from labelwise.config.settings import shown
from labelwise.errors import LabelwiseError, StorageError, UsageError
from labelwise.storage.checks import MOST_JSON_BYTES, check_file, damaged, file_bytes, parse_json

MOST_HEADER_BYTES = 100_000_000
"""Largest header of a safetensors file, as its specification says."""
VALUES_PER_BLOCK = 1 << 20

_CODE = ("auto_map", "custom_pipelines")
_CONFIG_ENTRIES = (
    *_CODE,
    *("quantization_config", "compression_config", "fusion_config", "kernel_config", "distributed_config"),
    *("configuration_files", "transformers_weights", "gguf_file", "backbone", "backbone_config", "device_map"),
    *("tp_plan", "use_kernels", "peft_config", "adapter_config"),
)
"""Entries of config.json by which transformers imports other libraries, runs code or opens other files."""
_TOKENIZER_ENTRIES = (
    *_CODE,
    *("fast_tokenizer_files", "init_inputs", "gguf_file", "tokenizer_object"),
    *("sp_model_kwargs", "mecab_kwargs", "sudachi_kwargs", "jumanpp_kwargs"),
)
"""The same of tokenizer_config.json."""
_TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken", "tekken.json")
"""Files of which a tokenizer has at least one."""
_ATTENTION = re.compile(r"_?(attn|experts)_implementation(_internal)?")
_PLAIN_ATTENTION = ("eager", "sdpa")
_REPEATED = re.compile(r"layer|block|depth|stage|group|expert|repeat|head")
"""Numbers of things that a model has one after the other: each takes time, even if it has no weights of its own."""
_NO_SIZE = re.compile(r"theta|base|freq|seed|_id$|_ids$|version|factor|scale|index")
_MOST_REPEATED, _LARGEST_SIZE, _MOST_POSITIONS, _MOST_CLASSES = 512, 1 << 20, 1 << 14, 1 << 17
_FILE_ENTRIES_UNUSED = ("special_tokens_map_file", "added_tokens_file", "tokenizer_config_file", "chat_template_file")

_FLOATS = {"F16": (np.uint16, 0x7C00), "BF16": (np.uint16, 0x7F80), "F32": (np.float32, 0), "F64": (np.float64, 0)}
"""The types of floating-point weights: how to read them, and the bits that only infinities and NaN have all set."""
_BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16}
_BITS |= {"I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64}


# ---------------------------------------------------------------------- files and JSON


def plain_name(name: Any) -> TypeGuard[str]:
    """Whether a string is the name of a file, without a folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and not re.search(r"[/\\\x00]", name)


def read_table(file: Path) -> dict[str, Any]:
    """The table of entries that a JSON file holds."""
    return as_table(read_document(file), file)


def as_table(value: Any, where: Path | str) -> dict[str, Any]:
    """A value of a JSON file that must be a table of entries."""
    if not isinstance(value, dict):
        raise damaged(where, f"there is {shown(value)} where a table of entries belongs")
    return value


def read_document(file: Path) -> Any:
    """What a JSON file holds: at most so large and so deep as such files are."""
    return parse_json(file_bytes(file, MOST_JSON_BYTES), file)


def _entries(value: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Path, name and value of all entries of nested tables; items of a list have the name of the list."""
    waiting = [(path, path, value)]
    while waiting:
        path, name, value = waiting.pop()
        if isinstance(value, dict):
            inner = [(f"{path}.{key}" if path else key, key, one) for key, one in value.items()]
        elif isinstance(value, list):
            inner = [(f"{path}[{number}]", name, one) for number, one in enumerate(value)]
        else:
            continue
        yield from inner
        waiting += [one for one in inner if isinstance(one[2], dict | list)]


# ---------------------------------------------------------------------- weights


@dataclass(frozen=True)
class WeightSizes:
    """How much the safetensors files of a folder hold."""

    tensors: int
    values: int
    longest: int
    """The longest dimension of a tensor."""


def check_weights(folder: Path) -> WeightSizes:
    """Check the safetensors files that transformers will read: whole, inside the folder, all values finite."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.exists():
        files = [single]
    elif index.exists():
        parts = as_table(read_table(index).get("weight_map"), f"{index}: weight_map")
        for name in parts.values():
            if not plain_name(name) or not name.endswith(".safetensors"):
                raise damaged(index, f"weight_map names {shown(name)}, which is no safetensors file of the folder")
        files = [folder / name for name in sorted(set(parts.values()))]
    else:
        raise UsageError(
            f"{folder} cannot be read as an encoder (it has no model.safetensors); give a folder written by "
            "save_pretrained, with config.json, *.safetensors and the tokenizer's files"
        )
    tensors = values = longest = 0
    for file in files:
        for shape in _check_weight_file(file):
            tensors, values, longest = tensors + 1, values + math.prod(shape), max(longest, *shape, 1)
    return WeightSizes(tensors, values, longest)


def _check_weight_file(file: Path) -> list[list[int]]:
    """The shapes of the tensors of a file, which must be whole and finite."""
    wrong = damaged(file, "it is not a valid safetensors file")
    check_file(file)
    try:
        size = file.stat().st_size
        content = np.memmap(file, np.uint8, "r") if size >= 8 else np.empty(0, np.uint8)
    except OSError as err:
        raise StorageError(f"{file} cannot be read ({err.strerror}); copy or make it again") from err
    length = int(content[:8].view("<u8")[0]) if size >= 8 else size
    if length > min(size - 8, MOST_HEADER_BYTES):
        raise wrong
    header = as_table(parse_json(bytes(content[8 : 8 + length]), f"{file}: its header"), f"{file}: its header")
    tensors, ends = [], 0
    entries = [as_table(entry, f"{file}: {name}") for name, entry in header.items() if name != "__metadata__"]
    for entry in entries:
        if not all(_is_sizes(entry.get(name)) for name in ("shape", "data_offsets")) or len(entry["data_offsets"]) != 2:
            raise wrong
    for entry in sorted(entries, key=lambda one: tuple(one["data_offsets"])):
        (begin, end), shape, bits = entry["data_offsets"], entry["shape"], _BITS.get(str(entry.get("dtype")))
        if bits is None or begin != ends or end < begin or (end - begin) * 8 != math.prod(shape) * bits:
            raise wrong
        tensors.append(shape)
        ends = end
    if 8 + length + ends != size:
        raise wrong
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in _FLOATS:
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            if not is_finite(np.asarray(content[begin:end]), entry["dtype"]):
                raise damaged(file, f"the weights {shown(name)} are not all finite")
    return tensors


def _is_sizes(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) <= 16 and all(type(one) is int and 0 <= one < 1 << 48 for one in value)
    )


def is_finite(content: npt.NDArray[np.uint8], kind: str) -> bool:
    """Whether the floating-point numbers in some bytes are neither infinite nor NaN."""
    dtype, exponent = _FLOATS[kind]
    values = content.view(dtype) if content.ctypes.data % np.dtype(dtype).itemsize == 0 else content.copy().view(dtype)
    for begin in range(0, len(values), VALUES_PER_BLOCK):
        block = values[begin : begin + VALUES_PER_BLOCK]
        if exponent:
            if ((block & exponent) == exponent).any():
                return False
        elif not np.isfinite(block).all():
            return False
    return True


# ---------------------------------------------------------------------- config.json


def check_config(folder: Path, sizes: WeightSizes) -> None:
    """Refuse entries of config.json that would run code, and sizes that the weights of the folder cannot have."""
    file = folder / "config.json"
    config = read_table(file)
    if not isinstance(config.get("model_type"), str):
        raise damaged(file, "it names no model_type; give a folder written by save_pretrained")
    if (folder / "adapter_config.json").exists():
        raise StorageError(f"{folder} holds an adapter of another model; give the folder of the merged model")
    positions = _MOST_POSITIONS if any("sinusoidal" in name for _, name, on in _entries(config) if on is True) else None
    for path, name, value in _entries(config):
        _refuse_code(file, _CONFIG_ENTRIES, path, name, value)
        if isinstance(value, float) and not math.isfinite(value):
            raise damaged(file, f"{path} is {value}, which is no number that an encoder has")
        if _ATTENTION.fullmatch(name) and value is not None and value not in _PLAIN_ATTENTION:
            raise StorageError(
                f"{file}: {path} is {shown(value)}; only {' and '.join(_PLAIN_ATTENTION)} are read from a folder: "
                "remove the entry"
            )
        if type(value) is int:
            _check_size(file, path, name, abs(value), sizes, positions)


def _check_size(file: Path, path: str, name: str, value: int, sizes: WeightSizes, positions: int | None) -> None:
    most = max(_LARGEST_SIZE, sizes.longest)
    if _REPEATED.search(name):
        most = max(_MOST_REPEATED, sizes.tensors)
    elif name == "num_labels":
        most = max(_MOST_CLASSES, sizes.longest)
    elif "position" in name and positions is not None:
        most = positions
    elif _NO_SIZE.search(name):
        most = 1 << 53
    if value > most:
        raise damaged(file, f"{path} is {shown(value)}, which is more than the weights of the folder can have")


def _refuse_code(file: Path, known: tuple[str, ...], path: str, name: str, value: Any) -> None:
    """Refuse an entry that would have code imported or other files opened; an empty one does nothing."""
    if name in known and value not in (None, False, [], {}, ""):
        what = "names Python code of its own" if name in _CODE else "would have other code or files used"
        raise StorageError(
            f"{file}: the entry {path} {what}, and labelwise runs no code of a folder; use an encoder without it"
        )


# ---------------------------------------------------------------------- the tokenizer


def no_tokenizer(folder: Path) -> UsageError:
    """The error for a folder with a model and without its tokenizer, for which transformers makes an empty one."""
    return UsageError(
        f"{folder} holds no tokenizer, so every word would be unknown; save the encoder's own tokenizer into it too "
        "(tokenizer.save_pretrained)"
    )


def check_tokenizer(folder: Path) -> None:
    """Refuse a folder without a tokenizer, and entries of its files that would run code, open other files, or blow up
    texts."""
    if not any(True for pattern in _TOKENIZER_FILES for _ in folder.glob(pattern)):
        raise no_tokenizer(folder)
    for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "processor_config.json"):
        file = folder / name
        if not file.exists():
            continue
        for path, entry, value in _entries(read_table(file)):
            _refuse_code(file, _TOKENIZER_ENTRIES, path, entry, value)
            if isinstance(value, dict | list) and len(value) > _MOST_EXTRA_TOKENS:
                raise damaged(file, f"{path} has {len(value):,} entries, more than {_MOST_EXTRA_TOKENS:,}")
            if entry.endswith("_file") and entry not in _FILE_ENTRIES_UNUSED and isinstance(value, str):
                _check_named_file(file, path, value)
            if isinstance(value, float) and not math.isfinite(value):
                raise damaged(file, f"{path} is {value}, which is no number that a tokenizer has")
    if (folder / "preprocessor_config.json").exists():
        for path, entry, value in _entries(read_table(folder / "preprocessor_config.json")):
            _refuse_code(folder / "preprocessor_config.json", _CODE, path, entry, value)
    if (folder / "tokenizer.json").exists():
        check_tokenizer_file(folder / "tokenizer.json")


def _check_named_file(file: Path, path: str, value: str) -> None:
    """Refuse the path of a file outside of the folder; paths of another machine, which name nothing, do nothing."""
    if plain_name(value):
        return
    try:
        there = (file.parent / value).exists()
    except ValueError as err:
        raise damaged(file, f"{path} names no file") from err
    if there:
        raise StorageError(f"{file}: {path} names {shown(value)}, a file outside of the folder; remove the entry")


_MOST_GROWTH = 1000
"""How many times as long as a text its normalised form may become."""
_MOST_STEPS = 64
"""Steps of a normalizer and a pre-tokenizer, together; those of known encoders have fewer than ten."""
_MOST_LETTERS = 1000
"""Longest word that WordPiece cuts into pieces, as its time grows with the third power of the length."""
_MOST_ADDED_TOKENS = 64
"""Special tokens that a template adds to a text."""
_MOST_EXTRA_TOKENS, _LONGEST_EXTRA_TOKEN = 20_000, 10_000
"""Tokens beside the vocabulary, and their letters: transformers takes a second for 10,000 of them."""
_IDS_PER_TOKEN, _MOST_UNUSED_IDS = 4, 100_000
"""The numbers of tokens go up to so many times the number of tokens, and so many more, at most."""
_TEMPLATE_LISTS = ("single", "pair", "special_tokens", "processors", "ids", "tokens")


def check_tokenizer_file(file: Path) -> None:
    """Check the tokenizer.json of a folder."""
    document = read_table(file)
    _check_ids(file, document)
    _check_model(file, as_table(document.get("model") or {}, f"{file}: model"))
    growth, n_steps = 1.0, 0
    steps = {"normalizer": document.get("normalizer"), "pre": document.get("pre_tokenizer")}
    for path, name, value in _entries(steps):
        n_steps += name == "type"
        if name in ("content", "prepend") and isinstance(value, str):
            growth *= max(1, len(value.encode("utf-8", "replace")))
        elif path.startswith("normalizer") and (name == "Regex" or (name == "String" and not value)):
            growth *= 2  # it can match between all letters, so that these stay and the content comes on top
        elif name == "replacement" and isinstance(value, str) and len(value) > 1:
            raise damaged(file, f"{path} has more than one letter")
    if n_steps > _MOST_STEPS:
        raise damaged(file, f"its normalizer and its pre-tokenizer have {n_steps:,} steps")
    if growth > _MOST_GROWTH:
        raise damaged(file, f"its normalizer makes texts {growth:.1g} times as long")
    processor = as_table(document.get("post_processor") or {}, f"{file}: post_processor")
    for path, name, value in _entries(processor):
        listed = name in _TEMPLATE_LISTS and isinstance(value, list | dict)
        if listed and len(value) > _MOST_ADDED_TOKENS:
            raise damaged(file, f"post_processor.{path} has {len(value):,} entries")


def _check_model(file: Path, model: Mapping[str, Any]) -> None:
    """Refuse settings by which a text has other tokens each time, or by which a long word takes minutes."""
    if model.get("dropout"):
        raise damaged(file, f"model.dropout is {shown(model['dropout'])}, so that tokens are random; set it to null")
    letters = model.get("max_input_chars_per_word")
    if isinstance(letters, int | float) and letters > _MOST_LETTERS:
        raise damaged(file, f"model.max_input_chars_per_word is {shown(letters)}, more than {_MOST_LETTERS:,}")


def _check_ids(file: Path, document: Mapping[str, Any]) -> None:
    """Refuse numbers of tokens far above their count: tokenizers makes room for all numbers up to the largest."""
    model, added = document.get("model"), document.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    n_tokens = len(vocabulary) if isinstance(vocabulary, dict | list) else 0
    if isinstance(added, list) and len(added) > _MOST_EXTRA_TOKENS:
        raise damaged(file, f"added_tokens has {len(added):,} entries, more than {_MOST_EXTRA_TOKENS:,}")
    for token in added if isinstance(added, list) else []:
        if isinstance(token, dict):
            if len(str(token.get("content"))) > _LONGEST_EXTRA_TOKEN:
                raise damaged(file, f"added_tokens has a token with more than {_LONGEST_EXTRA_TOKEN:,} letters")
            ids.append(token.get("id"))
            n_tokens += 1
    largest = max((one for one in ids if isinstance(one, int | float)), default=0)
    if largest > _IDS_PER_TOKEN * n_tokens + _MOST_UNUSED_IDS:
        raise damaged(file, f"a token has the number {largest:g}, but there are {n_tokens:,} tokens")


# ---------------------------------------------------------------------- what libraries refuse


@contextmanager
def library_refusals(begin: str, end: str, kind: type[LabelwiseError] = UsageError) -> Iterator[None]:
    """Context in which errors of transformers, tokenizers, safetensors and torch become one sentence.

    These libraries have no error class of their own for input that they cannot use: each piece of their code raises
    what it meets. Errors of labelwise, a lack of memory and interruptions pass.
    """
    try:
        yield
    except LabelwiseError:
        raise
    except BaseException as err:
        if not _is_refusal(err):
            raise
        reason = str(err).strip().partition("\n")[0][:300] or type(err).__name__
        raise kind(f"{begin} ({reason}); {end}") from err


_REFUSALS = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, AssertionError),
    *(ImportError, UnboundLocalError),
)


def _is_refusal(err: BaseException) -> bool:
    """Whether an error says that a library cannot use its input.

    tokenizers raises the class Exception itself, and a PanicException, which is no Exception, where its Rust code
    fails. SafetensorError and the errors of strict dataclasses of huggingface_hub derive from Exception.
    """
    names = {one.__name__ for one in type(err).__mro__}
    special = {"PanicException", "SafetensorError", "StrictDataclassError"}
    return isinstance(err, _REFUSALS) or type(err) is Exception or bool(names & special)
