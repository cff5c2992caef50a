"""labelwise export"""

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
        "holds a linear-tree without an encoder, so there is nothing to export; use it as it is\n"
    )
    assert not (tmp_path / "out").exists()
