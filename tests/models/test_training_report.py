"""The training report: its entries in config.json, in their order, and those of other versions."""

import json

import pytest

from labelwise import LinearTree, load_model
from labelwise.errors import StorageError
from labelwise.models.training_report import (
    HOLDOUT_KINDS,
    AddedLabel,
    HoldoutResult,
    MemberResult,
    RecordedUpdate,
    TrainingReport,
    Tuning,
)
from labelwise.rank.ranker import RankerSettings, RankerTrial

ENTRIES = {
    "documents": 6,
    "pairs": 10,
    "recall": {"1": 50.0, "5": 75.0},
    "chosen": {"dense_weight": 0.5, "score_transform": "l3-hinge", "matcher_weight": 1.0},
    "trials": [{"dense_weight": 0.5, "score_transform": "l3-hinge", "matcher_weight": 1.0, "precisions": [1, 2, 3]}],
    "tuning": {"trials": 1, "metric": "the mean of P@1, P@3 and P@5"},
    "validation": {
        "kind": "share",
        "share": 0.05,
        "documents": 60,
        "scores": {"P@1": 80.0},
        "calibration_error": None,
    },
    "members": [{"name": "linear, one tree", "weight": None, "scores": {"P@1": 80.0}}],
    "data": "shop",
    "preset": "parabel",
    "seconds": 1.5,
    "cpu_seconds": 2.5,
    "trained": "2026-11-19",
    "analyzer": "snowball(english)",
    "added": [{"label": "cycling", "examples": 2}],
    "updates": [{"documents": 3, "pairs": 4, "labels": 2}],
}


def test_every_entry_is_typed_and_written_as_it_was_read():
    report = TrainingReport.from_dict(ENTRIES, "a model")
    assert json.dumps(report.to_dict()) == json.dumps(ENTRIES)
    assert report.recall == {1: 50.0, 5: 75.0}
    assert report.chosen == RankerSettings(dense_weight=0.5, score_transform="l3-hinge", matcher_weight=1.0)
    assert report.trials[0].precisions == [1, 2, 3]
    assert report.tuning == Tuning(trials=1, metric="the mean of P@1, P@3 and P@5")
    assert report.validation == HoldoutResult(kind="share", share=0.05, documents=60, scores={"P@1": 80.0})
    assert report.held_out_scores == {"P@1": 80.0}
    assert report.members == [MemberResult(name="linear, one tree", weight=None, scores={"P@1": 80.0})]
    assert report.added == [AddedLabel(label="cycling", examples=2)]
    assert report.updates == [RecordedUpdate(documents=3, pairs=4, labels=2)]


def test_entries_are_written_in_the_order_of_their_arrival():
    report = TrainingReport(documents=6, pairs=10)
    report.preset, report.data, report.documents = "parabel", "shop", 7
    assert list(report.to_dict().items()) == [("documents", 7), ("pairs", 10), ("preset", "parabel"), ("data", "shop")]
    report.preset = None
    report.preset = "plt"
    assert list(report.to_dict()) == ["documents", "pairs", "data", "preset"]
    assert TrainingReport().to_dict() == {}
    assert TrainingReport().held_out_scores is None


def test_entries_of_other_versions():
    chosen = {"dense_weight": 0.5, "combine": "sigmoid", "matcher_weight": 0.3}
    before = {"chosen": chosen, "trials": [{**chosen, "precisions": [3, 2, 1]}]}
    report = TrainingReport.from_dict(before, "a model")
    settings = {"dense_weight": 0.5, "score_transform": "sigmoid", "matcher_weight": 0.3}
    assert report.chosen == RankerSettings(**settings)
    assert report.trials == [RankerTrial(**settings, precisions=[3, 2, 1])]
    assert report.to_dict() == {"chosen": settings, "trials": [{**settings, "precisions": [3, 2, 1]}]}
    later = TrainingReport.from_dict({"documents": 6, "weather": "rain", "tuning": {**ENTRIES["tuning"], "x": 1}}, "m")
    assert later.to_dict() == {"documents": 6, "tuning": ENTRIES["tuning"], "weather": "rain"}


@pytest.mark.parametrize(
    "entries",
    [
        [],
        {"chosen": [1]},
        {"trials": [{"precisions": []}]},
        {"validation": {"kind": "split"}},
        {"recall": {"one": 1.0}},
        {"added": [1]},
    ],
)
def test_a_damaged_report_is_refused(entries):
    with pytest.raises(StorageError, match=r"my-model has a damaged training report .* copy or make it again"):
        TrainingReport.from_dict(entries, "my-model")


def test_a_model_folder_keeps_the_report(tmp_path):
    model = LinearTree().fit(["a cat", "a dog"], [["cat"], ["dog"]])
    model.report_ = TrainingReport.from_dict({**ENTRIES, "weather": "rain"}, "a model")
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.report_ == model.report_
    written = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))["config"]["report"]
    assert json.dumps(written) == json.dumps({**ENTRIES, "weather": "rain"})


@pytest.mark.parametrize("kind", [*HOLDOUT_KINDS, None])
def test_all_kinds_of_held_out_documents_are_described(kind):
    assert "documents" in HoldoutResult(kind=kind, documents=1, scores={}).description or kind in HOLDOUT_KINDS
