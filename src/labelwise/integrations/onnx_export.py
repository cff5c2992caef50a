"""A copy of a model whose encoder is an ONNX file, which onnxruntime reads, and whose other weights have fewer bits."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelwise import storage
from labelwise.errors import UsageError, need
from labelwise.events import Task
from labelwise.features.encoder_folder import DESCRIPTION, checksum, is_exported
from labelwise.integrations.quantized_export import pack_ranker, ranker_folders
from labelwise.models.registry import known_kind
from labelwise.rank.quantized import Bits
from labelwise.storage.paths import checked_path
from labelwise.types import OnEvent

OPSET = 20
"""The first version of the operators that has GELU. They are standard operators, which other runtimes have too."""
TOLERANCE = 1e-4
"""Largest distance from torch's vectors, of length one, before the weights are rounded."""
_SAMPLE = ("", "one", "two words", "a text that is longer than the others by some words, so that those need padding")


def export_model(
    source: Path | str,
    destination: Path | str,
    *,
    int8: bool = False,
    ranker: Bits | None = None,
    overwrite: bool = False,
    on_event: OnEvent | None = None,
) -> None:
    """Write a copy of a saved model that `load_model` loads: encoders as ONNX files, which need no torch.

    Parameters
    ----------
    int8
        Round the encoder's weights to 8 bits: a quarter of the size, and about three times as fast on CPUs with VNNI.
    ranker
        ``"fp16"`` writes the weights of the linear models, those of embeddings too, as 16-bit floats. ``"int8"`` writes
        them in 8 bits with a scale for every label; they become 16-bit floats when they are loaded. If not given, the
        weights stay as they are.
    overwrite
        Replace a folder at the destination.
    """
    source, destination = checked_path(source), checked_path(destination)
    kind = known_kind(storage.read_description(source).get("kind"), source)
    places = [file.parent for file in storage.files_below(source, DESCRIPTION) if file.name == DESCRIPTION]
    linear = [] if ranker is None else ranker_folders(source)
    if not places and not linear:
        raise UsageError(
            f"{source} is a {kind} without an encoder, so there is nothing to export; use it as it is, or write its "
            "weights in fewer bits (--ranker int8)"
        )
    if any(is_exported(place) for place in places):
        raise UsageError(f"{source} was exported already; give the model that it was made of")
    if destination.resolve().is_relative_to(source.resolve()):
        raise UsageError(f"{destination} lies in the model itself; choose another place")
    for module in ("onnx", "onnxruntime", "onnxscript") if places else ():
        need(module, extra="onnx", purpose="exports")
    storage.check_writable(destination)
    weights = {file for place in places for file in storage.files_below(place) if ".safetensors" in file.name}
    with (
        storage.atomic_folder(destination, overwrite=overwrite) as folder,
        Task(on_event, "exporting", total=len(places) + len(linear), unit="parts") as task,
    ):
        skip = {str(file) for file in weights}
        shutil.copytree(
            source, folder, dirs_exist_ok=True, ignore=lambda at, names: [n for n in names if str(Path(at, n)) in skip]
        )
        for place in places:
            _export_encoder(place, folder / place.relative_to(source), int8)
            task.advance(1)
        for place in linear:
            assert ranker is not None
            pack_ranker(folder / place.relative_to(source), ranker)
            task.advance(1)
        with (folder / "README.md").open("a", encoding="utf-8", newline="\n") as card:
            card.write("\n" + " ".join(_told(bool(places), int8, ranker)) + "\n")


def _told(encoder: bool, int8: bool, ranker: Bits | None) -> Iterator[str]:
    """The sentence about the copy on its card."""
    if encoder:
        form = "an ONNX file with weights of 8 bits" if int8 else "an ONNX file"
        yield f"The encoder of this copy is {form}, made by `labelwise export`; onnxruntime reads it."
    if ranker is not None:
        bits = {"fp16": "16-bit floats", "int8": "8 bits with a scale for every label"}[ranker]
        yield f"The weights of its labels were rounded to {bits} by `labelwise export`."


def _export_encoder(source: Path, folder: Path, int8: bool) -> None:
    """Write the ONNX file of an encoder, and the description that `Encoder.load` reads."""
    from labelwise.features.encoder import Encoder
    from labelwise.features.onnx_encoder import MODEL, TOKENIZER, OnnxEncoder

    encoder, file = Encoder.load(source), folder / MODEL
    about = storage.read_json(source / DESCRIPTION)
    if not (folder / TOKENIZER).is_file():
        raise UsageError(
            f"{source} has no {TOKENIZER}, so that its tokenizer could not be used without transformers; use the model "
            "as it is"
        )
    with _quiet():
        _write(encoder, file)
    facts = {
        "opset": OPSET,
        "hidden_size": encoder.hidden_size,
        "pad_id": encoder.pad_id,
        "left": encoder.pads_left,
        "token_types": encoder.token_types,
        "truncation_side": encoder.tokenizer.truncation_side,
    }
    _describe(folder, about, facts, int8=False)
    _compare(encoder, OnnxEncoder.load(folder))
    if int8:
        tools = need("onnxruntime.quantization", extra="onnx", purpose="exports")
        # 7 of the 8 bits: CPUs without VNNI would overflow otherwise, and vectors hardly move (cosine .9915 for .9923).
        full, options = file.with_suffix(".full"), {"weight_type": tools.QuantType.QInt8, "reduce_range": True}
        file.rename(full)
        with _quiet():
            tools.quantize_dynamic(full, file, per_channel=True, **options)
        full.unlink()
        _describe(folder, about, facts, int8=True)


def _describe(folder: Path, about: dict[str, Any], facts: dict[str, Any], *, int8: bool) -> None:
    from labelwise.features.onnx_encoder import MODEL, TOKENIZER

    files = {
        file.name: checksum(file)
        for file in storage.files_below(folder)
        if file.name.startswith(MODEL) or file.name == TOKENIZER
    }
    storage.write_json(folder / DESCRIPTION, {**about, "files": files, "onnx": {**facts, "int8": int8}})


def _write(encoder: Any, file: Path) -> None:
    """Trace the model with its pooling, for any number of texts of any length."""
    import torch

    from labelwise.features.onnx_encoder import OUTPUT

    names = ["input_ids", "attention_mask", *(["token_type_ids"] if encoder.token_types is not None else [])]

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = encoder.model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            vectors: torch.Tensor = encoder.forward(dict(zip(names, inputs, strict=True)))
            return vectors

    mask = torch.ones((3, 7), dtype=torch.long)
    mask[1, slice(2) if encoder.pads_left else slice(5, None)] = 0
    ids = torch.where(mask.bool(), len(encoder.tokenizer) - 1, encoder.pad_id)
    inputs = (ids, mask, torch.zeros_like(ids))[: len(names)]
    dynamic = dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
    try:
        # Plain attention has the fewest operators, which onnxruntime then joins.
        encoder.model.set_attn_implementation("eager")
        with torch.no_grad():
            program = torch.onnx.export(
                Pooled().eval(),
                inputs,
                dynamo=True,
                opset_version=OPSET,
                input_names=names,
                output_names=[OUTPUT],
                dynamic_shapes=((dynamic,) * len(names),),
                verbose=False,
            )
    except Exception as err:  # whatever the tracer meets in a model's code
        reason = str(err.__cause__ or err).strip().partition("\n")[0]
        raise UsageError(
            f"{type(encoder.model).__name__} cannot be written as ONNX ({reason}); use the model as it is"
        ) from err
    assert program is not None
    for node in program.model.graph.all_nodes():  # the tracer notes where each line of code lies on this machine
        node.metadata_props.clear()
    program.save(file)


def _compare(encoder: Any, exported: Any) -> None:
    """Refuse an ONNX file that computes something else."""
    ours, theirs = encoder.embed(_SAMPLE), exported.embed(_SAMPLE)
    off = float((np.abs(ours - theirs).max(axis=1) / np.linalg.norm(ours, axis=1)).max())
    if not off <= TOLERANCE:
        raise UsageError(
            f"the ONNX file of {type(encoder.model).__name__} gives other vectors than torch (off by {off:.1g}); use "
            "the model as it is"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Context that silences the exporters' remarks, which address the authors of exporters."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
