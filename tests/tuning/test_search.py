"""TuningResult: what is tried, what is chosen and why."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import Dataset, generate_shop
from labelwise.config import LinearTreeConfig
from labelwise.config.presets import load_preset
from labelwise.data import split_validation
from labelwise.errors import DataError
from labelwise.tuning.search import METRIC, MIN_GAIN, Trial, TuningResult, show_setting, stepped, tune


@pytest.fixture(scope="module")
def parts():
    return split_validation(generate_shop(1000, 500)["train"], 0.15)


@pytest.fixture(scope="module")
def tuning(parts):
    heard = []
    config = load_preset("default", n_trees=2, ranker={"cost": 8}, matcher={"cost": 4}, threads=1)
    found = tune(config, *parts, on_event=lambda name, values: heard.append((name, values)))
    return found, config, heard


def test_what_is_tried(tuning):
    found, config, heard = tuning
    settings = [trial.setting for trial in found.trials]
    assert settings == ["", *["cost"] * 3, *["max_leaf"] * 2, *["threshold"] * 2]
    assert [trial.config.ranker.cost for trial in found.trials[:4]] == [8, 4, 16, 32]
    assert [trial.config.matcher.cost for trial in found.trials[:4]] == [4, 2, 8, 16]
    assert all(trial.config.n_trees == 1 for trial in found.trials)
    assert found.trials[0].config == replace(config, n_trees=1)
    trials = [values for name, values in heard if name == "trial"]
    assert [values["number"] for values in trials] == list(range(1, 9))
    assert trials[1]["settings"] == {"cost": "4", "max_leaf": "100", "threshold": "0.1"}
    assert trials[1]["score"] == found.trials[1].scores[METRIC]
    progress = [values for name, values in heard if name == "progress" and values["task"] == "tuning"]
    assert (progress[-1]["done"], progress[-1]["total"], progress[-1]["finished"]) == (8, 8, True)


def test_the_best_is_chosen(tuning):
    found, config, _ = tuning
    best = max(trial.scores[METRIC] for trial in found.trials)
    chosen = [trial for trial in found.trials if trial.config == replace(found.config, n_trees=1)]
    assert chosen[0].scores[METRIC] > best - MIN_GAIN
    assert found.config.n_trees == config.n_trees
    assert found.config.ranker.cost < 8  # short texts want a small cost


def test_the_same_again(tuning, parts):
    found, config, _ = tuning
    again = tune(config, *parts)
    assert [trial.scores for trial in again.trials] == [trial.scores for trial in found.trials]
    assert again.config == found.config


def made(scores):
    """A tuning with scores as given, and the settings that they lead to."""
    base = LinearTreeConfig()
    trials = [("", base), ("cost", stepped(base, "cost", 0.5)), ("cost", stepped(base, "cost", 2))]
    trials.append(("cost", stepped(base, "cost", 4)))
    return TuningResult(
        trials=[
            Trial(setting=setting, config=config, scores={METRIC: score, "P@1": 1, "P@5": 2}, seconds=0.5)
            for (setting, config), score in zip(trials, scores, strict=True)
        ],
        config=trials[2][1],
        n_docs=90,
    )


def test_explanations():
    assert made([50, 49, 51, 50.5]).explain() == ["cost 2 instead of 1: nDCG@5 51.00 rather than 50.00"]
    assert made([50, 49, 51, 52]).explain() == [
        "cost 4 instead of 1: nDCG@5 52.00 rather than 50.00; it is the smallest or the largest value tried"
    ]
    assert made([50, 49, 50.02, 50.01]).explain() == [
        "cost stays 1: the best other value, 2, gives nDCG@5 50.02 against 50.00, a gain below 0.05"
    ]


def test_the_table():
    table = made([50, 49, 51, 52]).table()
    assert table.title == "tuning, by nDCG@5 on 90 documents"
    assert [row.style for row in table.rows] == [None, None, "bold", None]
    assert list(table.columns[1].cells) == ["1", "0.5", "2", "4"]


def test_scaling_and_showing():
    config = LinearTreeConfig()
    assert stepped(config, "max_leaf", 2).index.max_leaf == 200
    assert stepped(config, "threshold", 0.5).ranker.threshold == 0.05
    assert stepped(config, "threshold", 0.5).matcher == config.matcher
    fixed = load_preset("default", index={"n_clusters": 10})
    assert stepped(fixed, "max_leaf", 2).index.n_clusters == 5
    assert show_setting(fixed, "max_leaf") == "10 clusters"
    assert show_setting(load_preset("dismec"), "max_leaf") == "–"


def test_what_makes_no_sense_is_not_tried(parts):
    found = tune(load_preset("dismec"), *parts)
    assert {trial.setting for trial in found.trials} == {"", "cost", "threshold"}
    found = tune(load_preset("default", index={"n_clusters": 300}, ranker={"threshold": 0.0}), *parts)
    assert [trial.setting for trial in found.trials] == ["", *["cost"] * 3, "max_leaf"]  # 600 clusters of 500 labels


def test_the_opening_of_long_texts_is_tried():
    """The first two words decide, the others are noise; 42 words are enough for an opening of 15, not of 40."""
    rng = np.random.default_rng(0)
    labels = [f"label {number}" for number in range(8)]
    truth = rng.integers(8, size=600)
    texts = [
        " ".join([*(f"w{(number + k) % 8}" for k in (0, 1)), *(f"w{word}" for word in rng.integers(8, size=40))])
        for number in truth
    ]
    Y = sp.csr_array((np.ones(600, np.float32), (np.arange(600), truth)), shape=(600, 8))
    train, validation = split_validation(Dataset(Y=Y, labels=labels, texts=texts), 0.2)
    heard = []
    found = tune(
        load_preset("default", tfidf={"opening_min_df": 1}),
        train,
        validation,
        on_event=lambda name, values: heard.append(values) if name == "trial" else None,
    )
    assert [trial.setting for trial in found.trials][:2] == ["", "opening"]
    assert [trial.config.tfidf.opening for trial in found.trials[:3]] == [0, 15, 15]
    assert found.config.tfidf.opening == 15
    assert heard[1]["settings"]["opening"] == "15"
    assert found.explain()[0].startswith("opening 15 instead of 0: nDCG@5")
    assert [column.header for column in found.table().columns][:3] == ["trial", "opening", "cost"]
    letters = tune(load_preset("default", tfidf={"analyzer": "char"}), train, validation)
    assert "opening" not in {trial.setting for trial in letters.trials}


def test_features_will_do(parts):
    train, validation = (
        replace(part, texts=None, features=sp.csr_array(np.eye(len(part), 40, dtype=np.float32))) for part in parts
    )
    assert len(tune(LinearTreeConfig(), train, validation).trials) == 8


def test_what_is_refused(parts):
    train, validation = parts
    with pytest.raises(DataError, match="there are 49 documents to tune on, and at least 50"):
        tune(LinearTreeConfig(), train, validation.take(range(49)))
    features = sp.csr_array(np.ones((len(validation), 2), dtype=np.float32))
    with pytest.raises(DataError, match="those to tune on have none"):
        tune(LinearTreeConfig(), train, replace(validation, texts=None, features=features))
