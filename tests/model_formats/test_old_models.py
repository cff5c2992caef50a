"""Models of every format version that was ever written load and say what they said then."""

import json
from pathlib import Path

import pytest

from labelwise import load_model
from tests.model_formats.make import TEXTS

HERE = Path(__file__).parent
CASES = [
    pytest.param(folder, name, id=f"{folder.name}-{name}")
    for folder in sorted(HERE.glob("v[0-9]*"))
    for name in json.loads((folder / "answers.json").read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("folder", "name"), CASES)
def test_says_what_it_said(folder, name):
    model = load_model(folder / name)
    answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))[name]
    for document, then in zip(model.predict(TEXTS, top_k=3), answers, strict=True):
        # Another processor may add in another order, so that labels whose scores are equal change places.
        assert sorted(score for _, score in document) == pytest.approx(sorted(score for _, score in then), abs=1e-3)
        now = dict(document)
        assert all(now.get(label, score) == pytest.approx(score, abs=1e-3) for label, score in then)


def test_can_be_saved_in_the_present_format(tmp_path):
    for folder in sorted(HERE.glob("v[0-9]*")):
        model = load_model(folder / "ensemble")
        model.save(tmp_path / folder.name)
        again = load_model(tmp_path / folder.name)
        assert list(again.predict(TEXTS, top_k=3)) == list(model.predict(TEXTS, top_k=3))


def test_an_exported_model_loads():
    pytest.importorskip("onnxruntime")
    for folder in sorted(HERE.glob("v[0-9]*")):
        model = load_model(folder / "exported")
        assert len(model.predict(TEXTS, top_k=3)) == len(TEXTS)
