"""OpenVINO reads the exported files too."""

import numpy as np
import pytest

from labelwise.features.onnx_encoder import MODEL, OnnxEncoder

openvino = pytest.importorskip("openvino", reason="needs openvino, which is no part of the extras")

TEXTS = ["the law of fishing quotas in northern waters", "a cheap red shoe", "children in the waters"]


class Reader:
    """OpenVINO in the place of onnxruntime's session."""

    def __init__(self, file):
        core = openvino.Core()
        self.model = core.compile_model(core.read_model(file), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def run(self, outputs, inputs):
        found = self.model.create_infer_request().infer(inputs)
        return [np.array(found[name]) for name in outputs]


@pytest.mark.parametrize("int8", [False, True])
def test_openvino_reads_the_files(exported, int8, monkeypatch):
    place = exported / ("int8/matcher/encoder" if int8 else "ensemble/members/01/matcher/encoder")
    encoder = OnnxEncoder.load(place)
    E = encoder.embed(TEXTS)
    monkeypatch.setattr(encoder, "_session", Reader(place / MODEL))
    F = encoder.embed(TEXTS)
    if not int8:
        np.testing.assert_allclose(F, E, atol=1e-4)
    cosines = (E * F).sum(axis=1) / np.linalg.norm(E, axis=1) / np.linalg.norm(F, axis=1)
    assert cosines.min() > 0.97
