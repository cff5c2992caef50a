"""Exported models: the same answers by an ONNX file, in every form that a model has."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs the extra onnx")

import torch

from labelwise import Encoder, XTransformer, explain, load_model, load_preset
from labelwise.config import EncoderConfig
from labelwise.errors import MissingExtraError, StorageError, UsageError
from labelwise.features import onnx_encoder as onnx
from labelwise.features.onnx_encoder import OnnxEncoder
from labelwise.integrations.onnx_export import export_model
from labelwise.models.sharing import _weights
from tests.features.tiny import write_model

TEXTS = [
    "the law of fishing quotas in northern waters",
    "a cheap red shoe",
    "",
    "children in the waters of the law for a shoe running in cheap quotas of fishing",
]


def encoders_of(model):
    return [part.matcher_.encoder_ for part in getattr(model, "members_", [model])]


def test_the_answers_are_torchs(models, exported, shop):
    name = "ensemble"
    texts = [*shop["test"].texts, *TEXTS]
    before, after = load_model(models / name), load_model(exported / name)
    assert all(isinstance(encoder, OnnxEncoder) for encoder in encoders_of(after))
    assert not list((exported / name).rglob("model.safetensors"))
    for torchs, ours in zip(encoders_of(before), encoders_of(after), strict=True):
        np.testing.assert_allclose(ours.embed(texts), torchs.embed(texts), atol=1e-4)
    wanted, found = before.predict(texts, top_k=5).matrix, after.predict(texts, top_k=5).matrix
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), atol=1e-4)
    assert "made by `labelwise export`" in (exported / name / "README.md").read_text(encoding="utf-8")


WITHOUT_TORCH = """
import json, sys
for name in ("torch", "transformers"):
    sys.modules[name] = None
from labelwise import explain, load_model
model = load_model(sys.argv[1])
texts = json.load(sys.stdin)
rows = model.predict(texts, top_k=5)
assert explain(model, texts[0])
model.save(sys.argv[2])
print(json.dumps([rows[at] for at in range(len(texts))]))
"""


def test_neither_torch_nor_transformers_is_needed(exported, shop, tmp_path):
    texts = [*shop["test"].texts[:20], *TEXTS]
    command = [sys.executable, "-c", WITHOUT_TORCH, str(exported / "ensemble"), str(tmp_path / "again")]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    here = load_model(exported / "ensemble").predict(texts, top_k=5)
    for found, wanted in zip(json.loads(done.stdout), here, strict=True):
        assert [name for name, _ in found] == [name for name, _ in wanted]
        np.testing.assert_allclose([score for _, score in found], [score for _, score in wanted], atol=1e-6)
    again = load_model(tmp_path / "again").predict(texts, top_k=5)
    np.testing.assert_array_equal(again.matrix.toarray(), here.matrix.toarray())


def test_equal_files_are_shared_and_others_are_not(exported):
    first, again, other = (
        _weights(encoders_of(load_model(exported / name))[-1]) for name in ("ensemble", "ensemble", "int8")
    )
    assert first == again != other


def test_eight_bits(models, exported):
    before, after = (encoders_of(load_model(folder))[0] for folder in (models / "hybrid", exported / "int8"))
    E, F = before.embed(TEXTS), after.embed(TEXTS)
    cosines = (E * F).sum(axis=1) / np.linalg.norm(E, axis=1) / np.linalg.norm(F, axis=1)
    assert 0.97 < cosines.min() < 1 - 1e-7
    model = load_model(exported / "int8")
    assert ("form of the encoder", "ONNX, weights of 8 bits") in list(model.facts())


@pytest.mark.parametrize("kind", ["mpnet"])
def test_a_vector_does_not_depend_on_its_batch(tmp_path, kind, monkeypatch):
    from labelwise.integrations.onnx_export import _export_encoder

    config = EncoderConfig(name=str(write_model(tmp_path / "tiny", kind)), pooling="mean", max_length=16)
    torchs = Encoder.load(config)
    torchs.save(tmp_path / "saved")
    torchs.save(tmp_path / "onnx")
    _export_encoder(tmp_path / "saved", tmp_path / "onnx", int8=False)
    ours, E = Encoder.load(tmp_path / "onnx"), torchs.embed(TEXTS)
    for tokens, threads in ((1, 1), (20, 2), (512, 3)):
        monkeypatch.setattr(onnx, "TOKENS_PER_PIECE", tokens)
        monkeypatch.setattr(onnx, "available_cores", lambda threads=threads: threads)
        np.testing.assert_allclose(ours.embed(TEXTS), E, atol=1e-5)
    assert ours.embed([]).shape == (0, 32)


def test_saved_again(exported, tmp_path):
    model = load_model(exported / "int8")
    model.save(tmp_path / "again")
    found = load_model(tmp_path / "again").predict(TEXTS).matrix.toarray()
    np.testing.assert_array_equal(found, model.predict(TEXTS).matrix.toarray())


def test_an_explanation_leaves_the_embedding_whole(exported, shop):
    found = explain(load_model(exported / "int8"), shop["test"].texts[0])
    assert "the embedding" in str(found[0])


def test_what_an_exported_encoder_cannot(exported, shop, tmp_path):
    folder = exported / "int8" / "matcher" / "encoder"
    encoder = Encoder.load(folder)
    with pytest.raises(UsageError, match=f"an ONNX file with {encoder.pooling} pooling, not pooler"):
        encoder.embed(TEXTS, pooling="pooler")
    config = load_preset("x-transformer", encoder={"name": str(folder), "max_length": 16})
    config = replace(config, matcher=replace(config.matcher, device="cpu", steps=2))
    with pytest.raises(UsageError, match="cannot be trained; give the original"):
        XTransformer(config).fit(shop["train"].texts, shop["train"].Y)


def test_bad_input(models, exported, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="was exported already"):
        export_model(exported / "int8", tmp_path / "out")
    with pytest.raises(UsageError, match="lies in the model itself"):
        export_model(models / "hybrid", models / "hybrid" / "out")
    with pytest.raises(UsageError, match="exists already"):
        export_model(models / "hybrid", models / "tuned")
    with pytest.raises(StorageError, match="does not exist"):
        export_model(tmp_path / "nothing", tmp_path / "out")
    monkeypatch.setitem(__import__("sys").modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'labelwise\[onnx\]'"):
        export_model(models / "hybrid", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_damaged_file(exported, tmp_path):
    load_model(exported / "int8").save(tmp_path / "model")
    file = tmp_path / "model" / "matcher" / "encoder" / "model.onnx"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StorageError, match="damaged"):
        load_model(tmp_path / "model")


def test_an_encoder_that_cannot_be_traced(models, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("no such operator\nand a long story")

    monkeypatch.setattr(torch.onnx, "export", fail)
    with pytest.raises(UsageError, match=r"BertModel cannot be written as ONNX \(no such operator\)"):
        export_model(models / "hybrid", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_no_path_of_this_machine_gets_into_the_file(exported):
    for file in exported.rglob(onnx.MODEL):
        content = file.read_bytes()
        assert b"site-packages" not in content
        assert b".py" not in content
