"""Predictions in memory: order, rows, the best labels, other columns."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import Dataset, LinearTree, compare, evaluate, generate_shop
from labelwise.errors import DataError, UsageError
from labelwise.predictions import Predictions, read_predictions
from labelwise.predictions.spreadsheets import safe_for_spreadsheets
from labelwise.types import Csr
from tests.predictions.examples import toy


def test_iterates_best_first_and_breaks_ties_by_column():
    assert list(toy()) == [
        [("corn", 0.93), ("apple", 0.25)],
        [],
        [("apple", 0.0), ("date", 0.0), ("bean", -1.5)],
    ]


def test_length_and_rows():
    predictions = toy()
    assert len(predictions) == 3
    assert predictions[0] == predictions[np.int64(-3)] == [("corn", 0.93), ("apple", 0.25)]
    assert predictions[1:].ids == ["y", "z"]
    assert list(predictions[1:]) == list(predictions)[1:]
    with pytest.raises(IndexError):
        predictions[3]


def test_top_k_keeps_the_best_and_the_input():
    predictions = toy()
    before = predictions.matrix.copy()
    assert list(predictions.top_k(1)) == [[("corn", 0.93)], [], [("apple", 0.0)]]
    assert list(predictions.top_k(100)) == list(predictions)
    assert predictions.matrix.has_sorted_indices == before.has_sorted_indices
    np.testing.assert_array_equal(predictions.matrix.indices, before.indices)
    with pytest.raises(UsageError, match="at least 1"):
        predictions.top_k(0)


def test_with_labels_moves_columns_and_keeps_the_unknown_at_the_end():
    moved = toy().with_labels(["date", "elder", "apple"])
    assert moved.labels == ["date", "elder", "apple", "bean", "corn"]
    assert moved.n_known == 3
    # The tie between apple and date is broken by the new columns.
    assert list(moved) == [
        [("corn", 0.93), ("apple", 0.25)],
        [],
        [("date", 0.0), ("apple", 0.0), ("bean", -1.5)],
    ]
    with pytest.raises(DataError, match="not distinct"):
        toy().with_labels(["date", "date"])


def test_names_must_fit():
    with pytest.raises(DataError, match="4 columns but there are 3 label names"):
        Predictions(toy().matrix, ["a", "b", "c"])
    with pytest.raises(DataError, match="1 ids but 3 rows"):
        Predictions(toy().matrix, toy().labels, ["x"])


def test_one_long_label_name_does_not_count_for_all():
    names = ["a" * 10_000_000, *map(str, range(1, 2000))]  # an array of such names would have 80 GB
    assert list(Predictions(sp.csr_array(([1.0], ([0], [7])), shape=(1, 2000)), names)) == [[("7", 1.0)]]


@pytest.mark.parametrize(
    ("part", "at", "value"),
    [("indices", 0, 10**6), ("indices", 0, -1), ("indptr", 1, 10**6), ("indptr", -1, 3), ("indptr", 0, -1)],
)
def test_a_matrix_with_indices_out_of_range(part, at, value):
    matrix = toy().matrix.copy()
    getattr(matrix, part)[at] = value
    with pytest.raises(DataError, match="the matrix of the predictions is damaged: an index lies outside its shape"):
        Predictions(matrix, toy().labels)


def fitted(**settings):
    shop = generate_shop(500, 100)
    train = shop["train"]
    model = LinearTree(threads=1, **settings).fit(train.texts, train.Y, label_names=train.labels)
    return model, shop["test"]


@pytest.mark.parametrize(("calibrate", "numbers"), [(True, "probability"), (False, "score")])
def test_probabilities_and_scores_are_never_mixed_up(calibrate, numbers, tmp_path):
    model, test = fitted(calibrate=calibrate, hold_out=0.2 if calibrate else None)
    found = model.predict(test.texts, top_k=2)
    assert (found.calibrated, found.numbers) == (calibrate, numbers)
    assert found[3:5].calibrated is found.top_k(1).calibrated is calibrate
    plural = {"probability": "probabilities", "score": "scores"}[numbers]
    assert repr(found).endswith(f"{plural})")
    assert list(found.to_frame().columns) == ["id", "rank", "label", numbers]
    for suffix in ("csv", "jsonl", "parquet"):
        found.write(tmp_path / f"p.{suffix}")
        again = read_predictions(tmp_path / f"p.{suffix}", found.labels)
        assert list(again) == list(found)
        # A column of scores may come from any system, which may mean probabilities.
        assert again.calibrated == (calibrate if calibrate or suffix == "jsonl" else None)
    assert (tmp_path / "p.csv").read_text(encoding="utf-8").startswith(f"id,rank,label,{numbers}\n")
    assert f'"numbers": "{plural}"' in (tmp_path / "p.jsonl").read_text(encoding="utf-8")
    assert safe_for_spreadsheets(found).calibrated is calibrate


def test_a_probability_is_not_asked_of_scores():
    model, test = fitted(calibrate=False)
    with pytest.raises(UsageError, match="this LinearTree is not calibrated, so its scores are not probabilities"):
        model.predict(test.texts, min_probability=0.5)
    assert len(model.predict(test.texts, min_probability=0)) == len(test)


def test_files_of_earlier_versions_are_read(tmp_path):
    (tmp_path / "p.csv").write_text("id,rank,label,score\na,1,shoe,0.5\n")
    (tmp_path / "p.jsonl").write_text('{"id": "a", "labels": [{"label": "shoe", "probability": 0.5}]}\n')
    for name in ("p.csv", "p.jsonl"):
        found = read_predictions(tmp_path / name)
        assert (found.calibrated, found[0]) == (None, [("shoe", 0.5)])


def test_a_wide_table_has_a_row_for_each_document():
    pandas = pytest.importorskip("pandas")
    frame = toy().to_frame(form="wide")
    assert list(frame.columns) == ["id", "label_1", "score_1", "label_2", "score_2", "label_3", "score_3"]
    assert frame["id"].tolist() == ["x", "y", "z"]
    assert frame["label_1"].fillna("-").tolist() == ["corn", "-", "apple"]
    assert frame.loc[2, "score_3"] == -1.5
    assert pandas.isna(frame.loc[1, "score_1"])
    with pytest.raises(UsageError, match="there is no form 'tall' of a table; there are: long, wide"):
        toy().to_frame(form="tall")


def test_a_column_of_pandas_keeps_its_index():
    pandas = pytest.importorskip("pandas")
    model, test = fitted()
    texts = pandas.Series(test.texts[:4], index=[7, 5, 3, 1])
    found = model.predict(texts, top_k=1)
    assert found.to_frame()["id"].tolist() == [7, 5, 3, 1]
    wide = found.to_frame(form="wide")
    assert wide.index.tolist() == [7, 5, 3, 1]
    joined = pandas.DataFrame({"text": texts}).join(wide)
    assert joined.loc[3, "label_1"] == found[2][0][0]
    assert found[1:3].to_frame()["id"].tolist() == [5, 3]
    assert model.predict(texts, ids=["a", "b", "c", "d"]).to_frame()["id"].tolist()[0] == "a"


def test_representations_are_short_whatever_the_data_hold():
    """A notebook that shows a value must not print 100,000 texts."""
    n = 100_000
    texts = ["<b>long</b> text & " * 60] * n
    labels = [f"<script>label</script> {number} " + "x" * 300 for number in range(50)]
    rows = np.arange(n)
    Y = Csr((np.full(n, 0.5, np.float32), (rows, rows % 50)), shape=(n, 50))
    data = Dataset(Y=Csr(Y != 0), labels=labels, texts=texts)
    found = Predictions(Y, labels, calibrated=True)
    evaluation = evaluate(data.Y, found, bootstrap=0)
    comparison = compare(evaluation, evaluation, resamples=2, metrics=["P@1"])
    model = LinearTree(threads=1).fit(["a", "b"] * 30, [[labels[0]], [labels[1]]] * 30)
    for value in (data, found, evaluation, comparison, model):
        assert len(repr(value)) < 200
        assert "\n" not in repr(value)
    figures = "P@1 100.00, P@3 33.33, P@5 20.00, nDCG@5 100.00"
    assert repr(evaluation) == f"Evaluation(100,000 documents, 50 labels: {figures})"
    for value in (found, evaluation):
        shown = value._repr_html_()
        assert len(shown) < 8_000
        assert "<script>" not in shown
        assert shown.startswith("<table><caption>100,000 documents, 50 labels; ")
    assert "numbers are probabilities; the first 10 with at most 5 labels each" in found._repr_html_()
    assert found._repr_html_().count("<tr>") == 11
    assert "<td>P</td><td>100.00</td>" in evaluation._repr_html_()
    lines = str(model).splitlines()
    assert lines[0] == repr(model)
    assert len(str(model)) < 1000
    assert any(line.split() == ["answers", "scores,", "not", "calibrated"] for line in lines[1:])
    assert str(LinearTree()) == "LinearTree(not fitted)"
