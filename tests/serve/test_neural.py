"""A model with an encoder is served in the same way, and its labels are found by meaning."""

import asyncio
import json

import numpy as np
import pytest

pytest.importorskip("torch")

from labelwise import generate_shop, load_model, load_preset
from labelwise.models.xtransformer import XTransformer
from tests.features.tiny import write_model
from tests.serve.test_app import TEXTS, pairs


@pytest.fixture(scope="module")
def neural(tmp_path_factory):
    encoder = write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")
    train = generate_shop(300, 150)["train"]
    config = load_preset("hybrid", encoder={"name": str(encoder), "max_length": 16})
    folder = tmp_path_factory.mktemp("neural") / "model"
    XTransformer(config).fit(train.texts, train.Y, label_names=train.labels).save(folder)
    return folder


def test_suggestions_and_labels_by_meaning(serve, neural):
    client, model = serve({"neural": neural}, wait_ms=20), load_model(neural)
    number = "probability" if model.calibrator_ is not None else "score"

    async def together():
        bodies = [json.dumps({"text": text, "top_k": 3}).encode() for text in TEXTS]
        return await asyncio.gather(*(client.ask("POST", "/v1/suggest", body) for body in bodies))

    want = list(model.predict(TEXTS, top_k=3))
    for answer, row in zip(client.runner.run(together()), want, strict=True):
        told = pairs(answer.json()["results"][0], number)
        assert [label for label, _ in told] == [label for label, _ in row]
        np.testing.assert_allclose([value for _, value in told], [value for _, value in row], rtol=1e-5)

    label = model.labels_[7]
    found = client("GET", f"/v1/labels?match=meaning&limit=150&q={label.replace(' ', '%20')}").json()
    E = model.matcher_.encoder_.embed([label, *found["labels"]])
    cosines = E[1:] @ E[0] / np.linalg.norm(E[1:], axis=1) / np.linalg.norm(E[0])
    assert cosines[0] == pytest.approx(1, abs=1e-5)
    assert (np.diff(cosines) < 1e-5).all()
    assert found["total"] == len(model.labels_)
