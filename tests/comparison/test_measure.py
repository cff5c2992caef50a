"""One system, measured: predictions, seconds, sizes."""

import json

import numpy as np
import pytest

from labelwise import LinearTree, generate_shop, load_model
from labelwise.comparison.measure import Outcome, TrainingTimer, measure_system
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System
from labelwise.config.presets import load_linear_preset
from labelwise.errors import StorageError


@pytest.fixture(scope="module")
def splits():
    train, test = generate_shop(400, 100).values()
    return Splits(name="shop", train=train, validation=None, test=test, generated=True)


def test_training_seconds_include_those_of_found_stages(tmp_path):
    for name, seconds in (("a", 100.0), ("b", 1000.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stage.json").write_text(json.dumps({"seconds": seconds, "cpu_seconds": 2 * seconds}))
    heard = []
    clock = TrainingTimer(lambda name, values: heard.append(name))
    clock.on_event("stage", {"found": True, "folder": str(tmp_path / "a")})
    clock.on_event("stage", {"found": True, "folder": str(tmp_path / "a")})  # once is enough
    clock.on_event("stage", {"found": False, "folder": str(tmp_path / "b")})
    clock.on_event("stage", {"found": True, "folder": str(tmp_path / "b")})  # made just now
    costs = clock.costs()
    assert 100 <= costs.train_s < 105
    assert 200 <= costs.train_cpu_s < 205
    assert costs.found_s == 100
    assert heard == ["stage"] * 4


def test_measured_predictions_are_those_of_the_model(splits, tmp_path):
    system = System(name="default", preset="default")
    costs = measure_system(system, splits, tmp_path / "out", top_k=5, run_dir=None, keep_model=True)
    outcome = Outcome.load(tmp_path / "out", splits)
    own = LinearTree(load_linear_preset("default")).fit(splits.train.texts, splits.train.Y)
    wanted = own.predict(splits.test.texts, top_k=5)
    assert np.array_equal(outcome.predictions.matrix.toarray(), wanted.matrix.toarray())
    assert outcome.costs == costs
    assert load_model(outcome.model).labels_ == splits.train.labels
    assert costs.train_s > 0
    assert costs.train_cpu_s > 0
    assert costs.predict_ms > 0
    size = sum(file.stat().st_size for file in (tmp_path / "out" / "model").rglob("*") if file.is_file())
    assert costs.model_mb == pytest.approx(size / 1e6)
    assert costs.peak_mib is None
    fewer = Splits(name="x", train=splits.train, validation=None, test=splits.test.take([0, 1]))
    with pytest.raises(StorageError, match="predictions of other documents"):
        Outcome.load(tmp_path / "out", fewer)
