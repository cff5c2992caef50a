"""labelwise export"""

import numpy as np
import pytest

from labelwise import XTransformer, generate_shop, load_model, load_preset

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs the extra onnx")


@pytest.fixture(scope="module")
def hybrid(encoder, tmp_path_factory):
    train = generate_shop(200, 100)["train"]
    settings = {"encoder": {"name": str(encoder), "max_length": 16}, "dense_weight": 1.0, "matcher_weight": 1.0}
    folder = tmp_path_factory.mktemp("hybrid") / "hybrid"
    XTransformer(load_preset("hybrid", **settings)).fit(train.texts, train.Y, label_names=train.labels).save(folder)
    return folder


def test_export(labelwise, hybrid, tmp_path):
    result = labelwise("export", hybrid, tmp_path / "small", "--to", "onnx", "--int8")
    assert result.code == 0, result.err
    assert result.out.startswith(f"{tmp_path / 'small'}: ")
    assert "torchvision" not in result.err
    assert "pre-processing" not in result.err
    assert load_model(tmp_path / "small").matcher_.encoder_.form == "ONNX, weights of 8 bits"
    again = labelwise("export", hybrid, tmp_path / "small")
    assert (again.code, again.out) == (2, "")
    assert again.err == f"labelwise: {tmp_path / 'small'} exists already; choose another place, or pass --overwrite\n"


def test_a_linear_model(labelwise, model, tmp_path):
    result = labelwise("export", model, tmp_path / "out")
    assert result.code == 2
    assert result.err.endswith(
        "is a linear-tree without an encoder, so there is nothing to export; use it as it is, or write its weights in "
        "fewer bits (--ranker int8)\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("bits", ["fp16", "int8"])
def test_fewer_bits_for_the_labels(labelwise, model, tmp_path, bits):
    result = labelwise("export", model, tmp_path / "small", "--ranker", bits)
    assert result.code == 0, result.err
    before, after = load_model(model), load_model(tmp_path / "small")
    texts = generate_shop(200, 100)["test"].texts
    wanted, found = (one.predict(texts, top_k=3).matrix.toarray() for one in (before, after))
    np.testing.assert_allclose(found, wanted, atol=0.05)
    assert "were rounded to" in (tmp_path / "small" / "README.md").read_text(encoding="utf-8")
    if bits == "int8":
        sizes = [sum(f.stat().st_size for f in one.rglob("arrays.safetensors")) for one in (model, tmp_path / "small")]
        assert sizes[1] < sizes[0]
        after.save(tmp_path / "again")
        again = load_model(tmp_path / "again").predict(texts, top_k=3).matrix.toarray()
        np.testing.assert_array_equal(again, found)
    wrong = labelwise("export", model, tmp_path / "other", "--ranker", "int4")
    assert wrong.code == 2
    assert not (tmp_path / "other").exists()
