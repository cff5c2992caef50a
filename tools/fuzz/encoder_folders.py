"""Fuzz target: folders of encoders (torch and ONNX) with right checksums, read by `load_encoder` and asked for vectors.

A tiny model of each architecture is made on the spot, saved by labelwise, and exported to ONNX where that is possible.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2])]
from mutate import FLOATS, change_file, change_json, short, to_text  # noqa: E402
from runner import Case, Watch, command, in_child, scratch  # noqa: E402

ARCHITECTURES = ("bert", "roberta", "distilbert", "mpnet", "deberta-v3", "modernbert", "xlnet")
KEPT = os.environ.get("FUZZ_ENCODERS")
"""A folder in which the models stay, since exporting them takes a minute; without it they are made for each run."""
BASES = Path(KEPT or Path(tempfile.gettempdir()) / f"labelwise-fuzz-encoders-{os.getpid()}")
NAMES = (
    *("auto_map", "quantization_config", "attn_implementation", "_attn_implementation", "architectures", "model_type"),
    *(
        "transformers_weights",
        "configuration_files",
        "fusion_config",
        "num_labels",
        "id2label",
        "pruned_heads",
        "dtype",
    ),
    *(
        "tokenizer_class",
        "fast_tokenizer_files",
        "vocab_file",
        "tokenizer_file",
        "added_tokens_decoder",
        "chat_template",
    ),
    *("extra_special_tokens", "init_inputs", "model_max_length", "backend", "rope_scaling", "layer_types", "onnx"),
    *("num_hidden_layers", "is_decoder", "add_cross_attention", "output_attentions", "return_dict", "torchscript"),
)
CODE = """open({mark!r}, "w").write("code of the folder ran")
from transformers import BertConfig
class C(BertConfig): pass
"""
TEXTS = ["the law of fishing", "", "a cheap red shoe " * 30, "\u202e\x00é" * 5]


def make_bases() -> None:
    """The folders that cases are made of."""
    from labelwise import Encoder
    from labelwise.config import EncoderConfig
    from labelwise.integrations.onnx_export import _export_encoder
    from tests.features.tiny import write_model

    warnings.simplefilter("ignore")
    for kind in ARCHITECTURES:
        source = write_model(BASES / "first" / kind, kind)
        Encoder.load(EncoderConfig(name=str(source), max_length=32)).save(BASES / f"torch-{kind}")
        for int8 in (False, True) if kind != "xlnet" else ():
            place = BASES / f"onnx-{kind}-{'int8' if int8 else 'full'}"
            shutil.copytree(BASES / f"torch-{kind}", place, ignore=shutil.ignore_patterns("*.safetensors"))
            _export_encoder(BASES / f"torch-{kind}", place, int8)
    shutil.rmtree(BASES / "first")


def make_case(seed: int) -> Case:
    """A folder in which one to three things are changed."""
    draw = random.Random(seed)
    base = draw.choice(sorted(BASES.iterdir()))
    folder, notes = scratch() / "encoder", [base.name]
    shutil.copytree(base, folder)
    notes += [_change(folder, draw) for _ in range(draw.choice([1, 1, 2, 3]))]
    if draw.random() < 0.95:
        _right_checksums(folder)
    return Case(seed, folder, "; ".join(notes))


def _change(folder: Path, draw: random.Random) -> str:
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.is_symlink())
    if not files:
        return "nothing left"
    file, how = draw.choice(files), draw.random()
    if how < 0.04:
        file.unlink()
        return f"no {file.name}"
    if how < 0.08:
        return _special(file, draw)
    if how < 0.16:
        return _code(folder, draw)
    if how < 0.22:
        return change_file(file, draw)
    if file.suffix == ".json":
        try:
            value = json.loads(file.read_text())
        except (ValueError, RecursionError):
            return "nothing"
        note = change_json(value, draw, NAMES)
        file.write_text(to_text(value))
        return f"{file.name}: {note}"
    return f"{file.name}: {_change_weights(file, draw)}"


def _special(file: Path, draw: random.Random) -> str:
    """Put something else in the place of a file."""
    kind = draw.choice(["link", "pipe", "folder"])
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        other = draw.choice(sorted(BASES.iterdir())) / file.name
        file.symlink_to(draw.choice(["/dev/zero", "/etc/passwd", str(other), "../nowhere", file.name]))
    return f"{file.name} is a {kind}"


def _code(folder: Path, draw: random.Random) -> str:
    """Ask for code of the folder to be run."""
    (folder / "code.py").write_text(CODE.format(mark=str(scratch() / "ran")))
    name = draw.choice(["config.json", "tokenizer_config.json", "config.json", "processor_config.json"])
    if (folder / name).exists() and not (folder / name).is_file():  # a pipe would be waited for
        return "nothing"
    try:
        value = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
    except (ValueError, RecursionError, OSError):
        return "nothing"
    if not isinstance(value, dict):
        return "nothing"
    where = draw.choice(["code.C", "someone/repo--code.C", f"{folder}--code.C", ["code.C", None]])
    value["auto_map"] = dict.fromkeys(("AutoConfig", "AutoModel", "AutoTokenizer"), where)
    if draw.random() < 0.5:
        value["model_type"] = "other"
    if draw.random() < 0.3:
        value["auto_map"] = where
    (folder / name).write_text(json.dumps(value))
    return f"{name}: auto_map {where}"


def _change_weights(file: Path, draw: random.Random) -> str:
    """Change one number, or the header of a safetensors file."""
    content = bytearray(file.read_bytes())
    if file.suffix != ".safetensors" or draw.random() < 0.4 or len(content) < 9:
        at = draw.randrange(max(1, len(content) - 8))
        value = draw.choice(FLOATS)
        content[at : at + 4] = struct.pack("<f", value if abs(value) < 3e38 or value != value else float("inf"))
        file.write_bytes(content)
        return f"byte {at} became {value}"
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError):
        return "nothing"
    note = change_json(header, draw, ("__metadata__", "data_offsets", "shape", "dtype"))
    text = to_text(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    return note


def _right_checksums(folder: Path) -> None:
    """Compute the checksums of encoder.json anew, as an attacker would."""
    place = folder / "encoder.json"
    try:
        about = json.loads(place.read_text()) if place.is_file() and not place.is_symlink() else None
        for name in about["files"] if isinstance(about, dict) else ():
            file = folder / name
            if file.is_file() and not file.is_symlink():
                content = file.read_bytes()
                about["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    except (ValueError, RecursionError, KeyError, TypeError, OSError):
        return
    if isinstance(about, dict):
        place.write_text(json.dumps(about))


def check(case: Case) -> str:
    """Load the encoder and embed; what is accepted must give finite vectors and open nothing outside of its folder."""
    import numpy as np

    from labelwise.features.encoder_folder import load_encoder

    assert case.path is not None
    error, E = None, np.empty(0)
    with Watch(case.path, ignore=("ctypes.dlopen",)) as watch:
        try:
            E = load_encoder(case.path).embed(TEXTS)
        except BaseException as err:  # what it is, the runner says; what was opened on the way comes first
            error = err
    if (scratch() / "ran").exists():
        return "escape: code ran"
    if watch.found:
        return f"escape: {watch.found[0]}"
    if error is not None:
        raise error
    if len(E) != len(TEXTS) or not np.isfinite(E).all():
        return f"wrong: vectors {short(E.tolist())}"
    return "accepted"


def prepare() -> None:
    """Import what reads encoders; and one thread, so that the time of a case is that of its work."""
    import torch

    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    for base in sorted(BASES.iterdir()):
        check(Case(0, base))


def main() -> int:
    """Make the bases and run."""
    import onnxruntime  # noqa: F401  # before the workers are forked
    import torch  # noqa: F401
    import transformers  # noqa: F401

    if not BASES.is_dir():
        in_child(make_bases)
    try:
        return command(make_case, check, about=__doc__ or "", cases=500, memory_mb=4096, prepare=prepare)
    finally:
        if KEPT is None:
            shutil.rmtree(BASES, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
