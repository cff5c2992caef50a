"""Models, and the same models exported."""

import pytest

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs the extra onnx")

from labelwise import Ensemble, XTransformer, generate_shop, load_model, load_preset
from labelwise.config import EnsembleConfig
from labelwise.integrations.onnx_export import export_model
from tests.features.tiny import write_model


@pytest.fixture(scope="package")
def shop():
    return generate_shop(300, 100)


@pytest.fixture(scope="package")
def models(shop, tmp_path_factory):
    """A fine-tuned model, a hybrid, and an ensemble of both, saved."""
    folder = tmp_path_factory.mktemp("models")
    settings = {
        "encoder": {"name": str(write_model(folder / "tiny", "bert")), "max_length": 16},
        "dense_weight": 1.0,
        "matcher_weight": 1.0,
        "threads": 1,
    }
    train = shop["train"]
    tuned = {"matcher": {"steps": 3, "batch_size": 32, "device": "cpu"}}
    made = [
        XTransformer(load_preset(preset, **settings, **more)).fit(train.texts, train.Y, label_names=train.labels)
        for preset, more in (("x-transformer", tuned), ("hybrid", {}))
    ]
    for name, model in zip(("tuned", "hybrid"), made, strict=True):
        model.save(folder / name)
    Ensemble.of([load_model(folder / name) for name in ("tuned", "hybrid")], EnsembleConfig()).save(folder / "ensemble")
    return folder


@pytest.fixture(scope="package")
def exported(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export_model(models / "ensemble", folder / "ensemble")
    export_model(models / "hybrid", folder / "int8", int8=True)
    return folder
