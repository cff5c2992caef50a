"""The examples do what they say."""

import ast
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelwise import LinearTree, LinearTreeConfig, generate_shop, load_dataset, load_splits, precision_at_k
from tests.programs import loaded

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are not beside the tests")


@pytest.fixture(scope="module")
def example():
    with loaded(EXAMPLES / "keyword_recommendation.py") as module:
        yield module


@pytest.fixture(scope="module")
def made_up():
    with loaded(EXAMPLES / "made_up.py") as module:
        yield module


def test_all_examples_are_tested():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {"keyword_recommendation", "made_up"}


def test_the_notebook_runs(tmp_path, monkeypatch):
    """Cells are run in order; the value of a last expression is what a notebook shows."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((EXAMPLES / "first_hour.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell.get("outputs", []) == [] for cell in notebook["cells"])
    names, shown = {}, []
    for cell in cells:
        *before, last = ast.parse(cell).body
        exec(compile(ast.Module(before, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
    names["progress"].stop()
    table, predictions, wide, evaluation = (one for one in shown if one is not None and not isinstance(one, list))
    assert list(table.columns) == ["title", "queries"]
    assert predictions.calibrated
    assert len(wide) == 5
    assert "P@1" in repr(evaluation)
    assert "mirror" in [label for label, _ in shown[-1]]


@pytest.fixture(scope="module")
def shop():
    return generate_shop(2000, 300)


def test_reasons_add_up_to_the_score(example, shop):
    config = replace(LinearTreeConfig(), score_transform="ranker-only")
    recommender = example.KeywordRecommender.learn(shop["train"], config)
    recommender.model.calibrator_ = None  # the model's own scores
    for title in shop["test"].texts[:20]:
        scores = recommender.model.predict([title], top_k=5)[0]
        for suggestion, (query, score) in zip(recommender.suggest(title, top_k=5), scores, strict=True):
            assert suggestion.query == query
            assert sum(value for _, value in suggestion.words) + suggestion.bias == pytest.approx(score, abs=1e-5)


def test_suggestions_have_true_reasons(example, shop):
    train, test = shop["train"], shop["test"]
    recommender = example.KeywordRecommender.learn(train)
    title = test.texts[0]
    suggestions = recommender.suggest(title, top_k=5)
    assert [s.query for s in suggestions] == [query for query, _ in recommender.model.predict([title], 5)[0]]
    by_text = {text: {train.labels[j] for j in train.Y[[row]].indices} for row, text in enumerate(train.texts)}
    said = set(title.lower().replace(",", " ").split())
    for suggestion in suggestions:
        assert 0 <= suggestion.probability <= 1
        assert all(suggestion.query in by_text[product] for product, _ in suggestion.similar)
        likeness = [value for _, value in suggestion.similar]
        assert likeness == sorted(likeness, reverse=True)
        assert all(-1e-6 <= value <= 1 + 1e-6 for value in likeness)
        assert suggestion.query not in suggestion.cluster
        tree = recommender.model.trees_[0].tree
        places = {tree.clusters[recommender.column[name]] for name in (suggestion.query, *suggestion.cluster)}
        assert len(places) == 1
    assert any(word in said for suggestion in suggestions for word, value in suggestion.words if value > 0)
    # A hundred titles: the first suggestion is mostly right, or the reasons would be for nothing.
    found = recommender.model.predict(test.texts[:100], top_k=1).matrix
    assert np.mean([test.Y[[row]].toarray()[0, found[[row]].indices[0]] for row in range(100)]) > 0.5


def test_it_runs_as_a_command(example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["keyword", "Red Cotton Play Mat", "--products", "1000", "--queries", "200"])
    example.main()
    out = capsys.readouterr().out
    for words in ("queries; training", "Red Cotton Play Mat", "words:", "same cluster:", "led to:", "(similarity "):
        assert words in out


# ---------------------------------------------------------------------- the made-up data of the tutorials


def run(made_up, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["made_up", *map(str, arguments)])
    made_up.main()


def test_tickets_can_be_learnt(made_up, monkeypatch, tmp_path, capsys):
    run(made_up, monkeypatch, "tickets", tmp_path / "a.csv", "--documents", 800)
    run(made_up, monkeypatch, "tickets", tmp_path / "b.csv", "--documents", 800)
    assert "800 documents, all generated" in capsys.readouterr().out
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    data = load_dataset(tmp_path / "a.csv", text_column="subject,body", labels_column="tags")
    assert set(data.labels) == {*made_up.PROBLEMS, *made_up.PLACES}
    train, test = data.take(range(700)), data.take(range(700, 800))
    model = LinearTree().fit(train.texts, train.Y, label_names=train.labels)
    assert 80 < precision_at_k(test.Y, model.predict(test.texts, top_k=1), k=1) < 100  # some texts say nothing


def test_the_library_is_one_of_annif(made_up, monkeypatch, tmp_path):
    run(made_up, monkeypatch, "library", tmp_path / "library", "--documents", 800)
    splits = load_splits(tmp_path / "library")
    assert {name: len(split) for name, split in splits.items()} == {"train": 720, "test": 80}
    lines = (tmp_path / "library/subjects.tsv").read_text().splitlines()
    uris = {line.split("\t")[0].strip("<>"): line.split("\t")[1] for line in lines}
    assert list(uris.values()) == list(made_up.SUBJECTS)
    train, test = splits["train"], splits["test"]
    assert set(train.labels) <= set(uris)
    model = LinearTree().fit(train.texts, train.Y, label_names=train.labels)
    assert 80 < precision_at_k(test.Y, model.predict(test.texts, top_k=1), k=1) < 100


@pytest.mark.parametrize(
    ("documents", "place", "told"), [(9, "new", "give at least 10"), (20, "there", "exists already; choose another")]
)
def test_what_is_wrong_is_told_in_a_sentence(made_up, monkeypatch, tmp_path, capsys, documents, place, told):
    (tmp_path / "there").mkdir()
    with pytest.raises(SystemExit) as ended:
        run(made_up, monkeypatch, "library", tmp_path / place, "--documents", documents)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
    assert not any((tmp_path / "there").iterdir())
