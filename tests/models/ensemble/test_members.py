"""The members of an ensemble are trained on one cache of stages, also by several processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from labelwise.features.tfidf import Tfidf
from labelwise.models import stages
from labelwise.models.linear_tree import LinearTree
from labelwise.models.pipeline import Pipeline
from labelwise.models.stages import StageCache
from labelwise.models.training_data import TrainingData
from tests.features.tiny import write_model
from tests.match.training.test_distributed import free_port
from tests.models.ensemble import fit_together

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "bert", "bert")


@pytest.mark.slow
def test_helper_processes_train_the_same_matchers_in_the_same_order(bert, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port"]
    command += [str(free_port()), "-m", "tests.models.ensemble.fit_together", str(bert), str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    environment |= {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    main, helper = (json.loads((tmp_path / f"trained-{rank}.json").read_text()) for rank in range(2))
    assert (main["role"], helper["role"]) == ("main", "helper")
    assert main["trained"] == helper["trained"]
    assert [fold for fold, _ in main["trained"]] == [None, 0, 1]  # the run directory has the folds of the second beam


def matchers_in(cache):
    return sum(name == stages.FINE_TUNED_MATCHER.name for name, _ in cache._results)


def test_matchers_of_folds_and_embeddings_of_label_texts_are_not_kept(bert, monkeypatch):
    counts, original = [], Pipeline._fine_tune

    def counted(self, *args, **options):
        counts.append(matchers_in(self.cache))
        return original(self, *args, **options)

    monkeypatch.setattr(Pipeline, "_fine_tune", counted)
    seen = []
    original_ranker = Pipeline.ranker

    def ranker(self, depth):
        seen.append({name for name, _ in self.cache._results})
        return original_ranker(self, depth)

    monkeypatch.setattr(Pipeline, "ranker", ranker)
    fit_together.fit(bert, None)
    assert counts == [0, 1, 1, 1, 1]  # the shared matcher, and those of two folds for each of two beams
    assert seen
    assert all(stages.LABEL_TEXT_EMBEDDINGS.name not in names for names in seen)


def test_a_linear_model_reads_its_texts_once(monkeypatch):
    read = []
    for name in ("fit", "transform", "fit_transform"):
        original = getattr(Tfidf, name)

        def counted(self, texts, *args, _name=name, _original=original, **options):
            read.append(_name)
            return _original(self, texts, *args, **options)

        monkeypatch.setattr(Tfidf, name, counted)
    model = LinearTree()
    texts, labels = ["a shoe", "a mug"] * 5, [["shoe"], ["mug"]] * 5
    data = TrainingData.of(texts, labels, model.config.holdout, seed=0)
    model.fit_stages(Pipeline(model.config, StageCache(data)))
    assert read == ["fit_transform"]
