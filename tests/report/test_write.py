"""The page: its metrics are those of `labelwise.metrics`, nothing is fetched, user data cannot break it."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import LinearTree, UsageError, generate_shop
from labelwise.config import HoldoutConfig, IndexConfig, LinearTreeConfig
from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.metrics import calibration_error, evaluate, macro_f1
from labelwise.models.training_report import HoldoutResult
from labelwise.report import write_report
from labelwise.report.split_evaluation import evaluate_split
from labelwise.storage.run_directory import RunDirectory
from tests.report.reading import read

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"
PARTS = [
    "summary",
    "model",
    "metrics",
    "frequency",
    "calibration",
    "labels",
    "examples",
    "tree",
    "training",
    "data",
    "time",
]


@pytest.fixture(scope="module")
def shop():
    return generate_shop(700, 300)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("run") / "run"


@pytest.fixture(scope="module")
def model(shop, run_dir):
    config = LinearTreeConfig(index=IndexConfig(max_leaf=10, branching=4))
    train = shop["train"]
    return LinearTree(config).fit(
        train.texts, train.Y, label_names=train.labels, validation=shop["test"], run_dir=run_dir
    )


@pytest.fixture(scope="module")
def page(shop, model, run_dir):
    return read(write_report(run_dir, run_dir / "report.html", model=model, data=shop, bootstrap=200))


def test_metrics_on_the_page_are_those_of_evaluate(page, model, shop):
    test, train = shop["test"], shop["train"]
    found = model.predict(test.texts, top_k=20).with_labels(test.labels)
    wanted = evaluate(test.Y, found, Y_train=train.Y, bootstrap=200)
    figures = page.figures()
    for name, score in wanted.scores.items():
        assert figures.pop(name) == pytest.approx(score.value, abs=0.0051)
    for bucket, part in wanted.buckets.items():
        for name in ("P@5", "R@5", "nDCG@5", "PSP@5", "macro-F1@5", "coverage@5"):
            if not np.isnan(part.scores[name].value):
                assert figures.pop(f"{bucket}:{name}") == pytest.approx(part.scores[name].value, abs=0.0051)
    assert figures.pop("calibration error") == pytest.approx(calibration_error(test.Y, found), abs=0.0051)
    assert figures == {}
    low, high = wanted.scores["P@1"].low, wanted.scores["P@1"].high
    assert f"{low:.1f} – {high:.1f}" in page.text("metrics")


def test_every_part_is_there_and_linked(page):
    assert [attributes["id"] for attributes, _ in page.all("section")] == PARTS
    assert [attributes["href"] for attributes, _ in page.all("a")] == [f"#{part}" for part in PARTS]
    assert "A linear model is solved, not trained step by step" in page.text("training")
    assert "630" in page.text("data")
    assert "tfidf" in page.text("time")
    assert "computed" in page.text("time")


def test_the_head_of_the_page_says_how_good_the_model_is(page, model, shop):
    summary, figures = page.text("summary"), page.figures()
    assert f"The first label is right for {figures['P@1']:.0f} of 100 documents of the split test." in summary
    assert f"P@1{figures['P@1']:.1f} %" in summary
    assert f"PSP@5{figures['PSP@5']:.1f} %" in summary
    assert f"A probability is off by {figures['calibration error']:.1f} points on average." in summary


def test_measures_are_explained(page):
    names = {text: attributes["title"] for attributes, text in page.all("abbr")}
    assert {"P", "RP", "PSP", "PSnDCG", "macro-F1", "P@1", "R@5", "ECE"} <= set(names)
    assert names["PSP"].startswith("propensity-scored precision")
    assert "What the measures mean" in page.text("metrics")


def test_nothing_is_fetched(run_dir, page):
    text = (run_dir / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"https?:|//[a-z]|@import|url\(", text) == []
    for _, attributes, _ in page.elements:
        assert not {"src", "srcset", "poster", "action"} & attributes.keys()
    assert page.all("link") == []
    (policy,) = [a["content"] for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


def test_labels_by_f1(page, model, shop):
    test = shop["test"]
    evaluation = evaluate_split(model, test, shop["train"], split="test", bootstrap=0)
    found = model.predict(test.texts, top_k=20).with_labels(test.labels)
    # The mean F1 of all labels that occur is macro-F1 at this cut-off.
    assert np.mean([label.f1 for label in evaluation.labels]) == pytest.approx(
        macro_f1(test.Y, found, k=evaluation.cut)
    )
    best = evaluation.ranked_labels()[0]
    truth = test.Y.toarray()[:, test.labels.index(best.name)].astype(bool)
    mine = np.array([best.name in [label for label, _ in row[: evaluation.cut]] for row in found])
    assert best.support == truth.sum()
    assert best.recall == pytest.approx(100 * (mine & truth).sum() / truth.sum())
    assert best.precision == pytest.approx(100 * (mine & truth).sum() / mine.sum())
    assert best.name in page.text("labels")


def test_examples_show_correct_wrong_and_missed_labels(page, model, shop):
    test = shop["test"]
    evaluation = evaluate_split(model, test, shop["train"], split="test", bootstrap=0)
    assert len({example.name for example in evaluation.examples}) == len(evaluation.examples)
    for example in evaluation.examples:
        row = test.ids.index(example.name)
        true = {test.labels[j] for j in test.Y[[row]].indices}
        assert [label in true for label, _, _ in example.predicted] == [right for _, _, right in example.predicted]
        assert set(example.missed) == true - {label for label, _, _ in example.predicted}
        if example.kind == "wrong with high confidence":
            assert not example.predicted[0][2]
        if example.kind == "all labels found":
            assert example.missed == []
    lines = [(attributes["class"], text) for attributes, text in page.all("li") if "class" in attributes]
    signs = {"right": "✓", "wrong": "✗", "missed": "○"}
    assert {kind for kind, _ in lines} == set(signs)
    assert all(text.startswith(signs[kind]) for kind, text in lines)  # told by shape, not by colour alone


def test_the_same_run_gives_the_same_page(shop, model, run_dir, page, tmp_path):
    write_report(run_dir, tmp_path / "again.html", model=model, data=shop, bootstrap=200)
    assert (tmp_path / "again.html").read_bytes() == (run_dir / "report.html").read_bytes()


def test_user_data_never_becomes_markup(shop, tmp_path):
    labels = [f"{EVIL}{i}" for i in range(shop["train"].n_labels)]
    splits = {
        name: replace(part, labels=labels, texts=[EVIL + text for text in part.texts], label_texts=None)
        for name, part in shop.items()
    }
    train = splits["train"]
    model = LinearTree().fit(train.texts, train.Y, label_names=labels, run_dir=tmp_path / "run")
    model.report_.preset = model.report_.data = EVIL
    with RunDirectory(tmp_path / "run") as run:
        run.on_event("remark", {"text": EVIL})
    path = write_report(tmp_path / "run", tmp_path / "a.html", model=model, data=splits, bootstrap=0, title=EVIL)
    page = read(path)
    assert len(page.all("script")) == 2  # the tree and our program
    assert page.all("img") == []
    assert not any(key.startswith("on") for _, attributes, _ in page.elements for key in attributes)
    assert page.all("title")[0][1] == EVIL
    assert page.all("h1")[0][1] == EVIL
    assert any(EVIL[:40] in name for node in page.tree() for name in node["t"])
    assert "alert(1)" in page.text("examples")


def test_lone_surrogates_in_texts(shop, model, run_dir, tmp_path):
    test = replace(shop["test"], texts=["\ud800 broken \x00" + text for text in shop["test"].texts])
    path = write_report(run_dir, tmp_path / "a.html", model=model, data={**shop, "test": test}, bootstrap=0)
    assert "broken" in read(path).text("examples")


def test_missing_arguments_are_named_on_the_page(shop, model, run_dir, tmp_path):
    alone = read(write_report(run_dir, tmp_path / "a.html"))
    assert "The model is not known" in alone.text("model")
    for part in ("metrics", "frequency", "calibration", "labels", "examples"):
        assert "nothing was predicted: pass --model" in alone.text(part)
    assert "The data are not known" in alone.text("data")
    assert "tfidf" in alone.text("time")
    assert alone.all("script", id="tree-data") == []

    model.report_.validation = HoldoutResult(kind="split", documents=70, scores={"P@1": 51.25})
    try:
        no_data = read(write_report(run_dir, tmp_path / "b.html", model=model))
    finally:
        model.report_.validation = None
    assert "There are no data to evaluate on" in no_data.text("metrics")
    assert no_data.figures() == {"P@1": 51.25}
    assert no_data.tree()[0]["n"] == 300
    assert no_data.tree()[0]["d"] is None
    assert "need the training split" in no_data.text("tree")

    no_test = read(write_report(run_dir, tmp_path / "c.html", model=model, data={"train": shop["train"]}))
    assert "no split test, so nothing was evaluated; there are: train" in no_test.text("metrics")
    assert any(node["w"] for node in no_test.tree())

    no_train = read(write_report(run_dir, tmp_path / "d.html", model=model, data={"test": shop["test"]}, bootstrap=0))
    assert "need the training split" in no_train.text("metrics")
    assert "The training split is missing" in no_train.text("frequency")
    assert "P@1" in no_train.figures()


def test_a_model_of_features_without_calibration(shop, tmp_path):
    rng = np.random.default_rng(0)
    splits = {
        name: Dataset(Y=part.Y, labels=part.labels, features=sp.csr_array(sp.random(len(part), 50, 0.2, rng=rng)))
        for name, part in shop.items()
    }
    train = splits["train"]
    config = LinearTreeConfig(index=IndexConfig(method="none"), holdout=HoldoutConfig(share=0))
    model = LinearTree(config).fit(train.features, train.Y, label_names=train.labels, run_dir=tmp_path / "run")
    page = read(write_report(tmp_path / "run", tmp_path / "a.html", model=model, data=splits, bootstrap=0))
    assert "not calibrated" in page.text("calibration")
    assert "features without names" in page.text("tree")
    assert "These data have no texts" in page.text("examples")


def test_wrong_arguments(shop, model, run_dir, tmp_path):
    with pytest.raises(UsageError, match="is not a run directory"):
        write_report(tmp_path, tmp_path / "a.html")
    with pytest.raises(UsageError, match="is a folder; give a file"):
        write_report(run_dir, tmp_path)
    with pytest.raises(DataError, match="there is no split 'dev'; there are: train, test"):
        write_report(run_dir, tmp_path / "a.html", model=model, data=shop, split="dev")
    assert list(tmp_path.iterdir()) == []


def test_ten_thousand_labels_stay_below_two_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    n_docs, n_labels = 3000, 10_000
    X = sp.csr_array(sp.random(n_docs, 120, 0.1, rng=rng, dtype=np.float32))
    Y = sp.csr_array(sp.random(n_docs, n_labels, 5 / n_labels, rng=rng, dtype=np.float32))
    Y.data[:] = 1
    labels = [
        f"label number {i} with a name that goes on and on for quite a while, {'x' * 60}" for i in range(n_labels)
    ]
    config = LinearTreeConfig(index=IndexConfig(max_leaf=8))
    model = LinearTree(config).fit(X, Y, label_names=labels, run_dir=tmp_path / "run")
    data = Dataset(Y=Y, labels=labels, features=X)
    page = write_report(
        tmp_path / "run",
        tmp_path / "a.html",
        model=model,
        data={"train": data, "test": data.take(range(300))},
        bootstrap=0,
    )
    assert page.stat().st_size < 2_000_000
    tree = read(page).tree()
    assert tree[0]["n"] == n_labels
    assert 100 < len(tree) <= 1200


def test_an_ensemble_shows_its_first_member(shop, model, run_dir, tmp_path):
    ensemble = pytest.importorskip("labelwise.models.ensemble")
    both = ensemble.Ensemble.of([model, model], validation=shop["test"])
    page = read(write_report(run_dir, tmp_path / "a.html", model=both, data=shop, bootstrap=0))
    assert "The tree of the first of 2 models." in page.text("tree")
    assert page.tree()[0]["n"] == 300
    assert "P@1" in page.figures()
