"""One small table in every library's form; answers known by eye."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import Dataset, LinearTree, LinearTreeConfig, Predictions
from labelwise.data.targets import targets
from labelwise.errors import DataError, MissingExtraError, UsageError
from labelwise.features.tfidf import Tfidf
from labelwise.models.training_data import check_texts

COLUMNS = {
    "title": ["red apple", "red rose", "green apple"],
    "body": ["sweet", None, "sour"],
    "tags": [["fruit", "red"], ["flower", "red"], ["fruit"]],
    "joined": ["fruit; red", "flower;red", "fruit"],
    "key": ["a", "b", "c"],
    "fruit": [1, 0, 1],
    "red": [1, 1, 0],
}
Y = [[1, 1, 0], [0, 1, 1], [1, 0, 0]]  # fruit, red, flower


class Column(list):
    """What datasets.Dataset gives for a column: a sequence, no more."""


class ClassLabel:
    names = ("fruit", "red", "flower")


class Many:
    feature = ClassLabel()


class HubDataset:
    """The parts of datasets.Dataset that are used."""

    def __init__(self, columns, features=None):
        self._columns, self.features = columns, features or dict.fromkeys(columns)

    column_names = property(lambda self: list(self._columns))

    def __getitem__(self, name):
        return Column(self._columns[name])

    def __len__(self):
        return len(next(iter(self._columns.values())))


def table(kind, columns=COLUMNS):
    if kind == "dict":
        return dict(columns)
    if kind == "datasets":
        return HubDataset(columns)
    module = pytest.importorskip(kind.partition("-")[0], reason="not installed")
    if kind == "polars-lazy":
        return module.DataFrame(columns).lazy()
    return module.table(columns) if kind == "pyarrow" else module.DataFrame(columns)


KINDS = ["dict", "datasets", "pandas", "polars", "polars-lazy", "pyarrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_lists_strings_and_columns_of_labels(kind):
    frame = table(kind)
    lists = Dataset.from_frame(frame, text="title", labels="tags", ids="key")
    assert lists.texts == COLUMNS["title"]
    assert lists.labels == ["fruit", "red", "flower"]
    assert lists.Y.toarray().tolist() == Y
    assert lists.ids == ["a", "b", "c"]
    strings = Dataset.from_frame(frame, text=["title", "body"], labels="joined", label_separator=";")
    assert strings.texts == ["red apple sweet", "red rose", "green apple sour"]
    assert strings.labels == lists.labels
    assert strings.Y.toarray().tolist() == Y
    guessed = Dataset.from_frame(frame, text="title", labels="joined")
    assert guessed.Y.toarray().tolist() == Y
    columns = Dataset.from_frame(frame, text="title", labels=["fruit", "red"])
    assert (columns.labels, columns.Y.toarray().tolist()) == (["fruit", "red"], [[1, 1], [0, 1], [1, 0]])
    assert columns.ids is None


def test_arrays_in_cells_as_parquet_gives_them_to_pandas():
    pandas = pytest.importorskip("pandas")
    cells = pandas.Series([np.array(["fruit", "red"], object), np.array(["red"]), None], dtype=object)
    frame = pandas.DataFrame({"text": ["a b", "c", "d"], "labels": cells})
    found = Dataset.from_frame(frame, allow_unlabelled=True)
    assert found.Y.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]


def test_class_numbers_become_names():
    frame = HubDataset({"text": ["a", "b"], "labels": [[0, 2], [1]]}, {"text": None, "labels": Many()})
    assert Dataset.from_frame(frame).labels == ["fruit", "flower", "red"]
    single = HubDataset({"text": ["a", "b"], "labels": [2, 0]}, {"text": None, "labels": ClassLabel()})
    assert Dataset.from_frame(single).labels == ["flower", "fruit"]


def test_what_is_wrong_is_named_by_its_row():
    with pytest.raises(DataError, match=r"there is no column 'text' in the frame; there are: 'title', 'body'"):
        Dataset.from_frame(COLUMNS)
    rows = {"text": ["a", float("nan"), "c"], "labels": [["x"], ["y"], []]}
    with pytest.raises(DataError, match="row 1 of the frame: the row has no text; mend it"):
        Dataset.from_frame(rows)
    heard = []
    kept = Dataset.from_frame(rows, skip_bad_rows=True, on_event=lambda name, values: heard.append((name, values)))
    assert (kept.texts, kept.names) == (["a"], ["0"])
    assert heard[0][0] == "bad_rows"
    assert heard[0][1]["count"] == 2
    assert "row 2 of the frame: the row has no labels; pass allow_unlabelled" in heard[0][1]["reasons"][1]
    with pytest.raises(DataError, match="no row of the frame is left"):
        Dataset.from_frame({"text": [None], "labels": [["x"]]}, skip_bad_rows=True)
    with pytest.raises(DataError, match="each holds 0 or 1"):
        Dataset.from_frame({"text": ["a"], "x": [3], "y": [0]}, labels=["x", "y"])
    with pytest.raises(DataError, match="stands in row 0 already"):
        Dataset.from_frame(
            {"text": ["a", "b"], "labels": [["x"], ["x"]], "key": ["1", "1"]}, ids="key", unique_ids=True
        )
    with pytest.raises(UsageError, match="an object of class list has no columns"):
        Dataset.from_frame([1, 2])
    with pytest.raises(UsageError, match="unknown reading option 'separator'"):
        Dataset.from_frame(COLUMNS, text="title", separator=";")


@pytest.mark.parametrize("kind", ["numpy", "object", "pandas", "polars", "pyarrow"])
def test_models_take_columns(kind):
    texts, labels = COLUMNS["title"], COLUMNS["tags"]
    if kind in ("numpy", "object"):
        column, tags = np.array(texts, object if kind == "object" else None), labels
    else:
        frame = table(kind)
        column, tags = frame["title"], frame["tags"]
    expected = LinearTree().fit(texts, labels)
    model = LinearTree().fit(column, tags)
    assert model.labels_ == expected.labels_
    assert list(model.predict(column)) == list(expected.predict(texts))
    assert check_texts(column) == texts
    assert all(type(text) is str for text in check_texts(column))


def test_models_take_dense_matrices_and_frames_of_them():
    pandas = pytest.importorskip("pandas")
    X = Tfidf().fit_transform(COLUMNS["title"])
    expected = LinearTree(LinearTreeConfig()).fit(X, sp.csr_array(np.array(Y, np.float32)), label_names=["a", "b", "c"])
    frame = pandas.DataFrame(X.toarray())
    model = LinearTree().fit(frame, pandas.DataFrame(Y, columns=["a", "b", "c"]))
    assert model.labels_ == ["a", "b", "c"]
    pyarrow = pytest.importorskip("pyarrow")
    assert targets(pyarrow.table({"a": [0, 1], "b": [1, 1]}), None)[0].toarray().tolist() == [[0, 1], [1, 1]]
    assert list(model.predict(X.toarray())) == list(expected.predict(X))
    with pytest.raises(
        DataError, match=r"of class DataFrame, with the columns title, body, tags, joined, key, …; give the col"
    ):
        model.fit(pandas.DataFrame(COLUMNS), COLUMNS["tags"])
    with pytest.raises(DataError, match=r"array of shape \(1, 2\)"):
        model.fit(np.array([["a", "b"]]), [["x"]])
    for wrong in ([["a", "b"]], [[3, 7]]):
        with pytest.raises(DataError, match="not of 0 and 1"):
            targets(np.array(wrong), None)


def test_labels_that_are_strings_say_what_to_do():
    with pytest.raises(DataError, match=r"labels of document 0 are one string.*label_separator"):
        LinearTree().fit(COLUMNS["title"], COLUMNS["joined"])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_predictions_as_a_table(library):
    pytest.importorskip(library)
    matrix = sp.csr_array(np.array([[0.25, 0, 0.5], [0, 0, 0], [0, 0.75, 0]], np.float32))
    frame = Predictions(matrix, ["x", "y", "z"], ["d0", "d1", "d2"]).to_frame(library)
    rows = frame.to_pylist() if library == "pyarrow" else frame.to_dicts() if library == "polars" else None
    rows = frame.to_dict("records") if rows is None else rows
    assert rows == [
        {"id": "d0", "rank": 1, "label": "z", "score": 0.5},
        {"id": "d0", "rank": 2, "label": "x", "score": 0.25},
        {"id": "d2", "rank": 1, "label": "y", "score": 0.75},
    ]


def test_a_table_of_what_is_not_there(monkeypatch):
    answer = Predictions(sp.csr_array((1, 1), dtype=np.float32), ["x"])
    with pytest.raises(UsageError, match="there are: pandas, polars, pyarrow"):
        answer.to_frame("excel")

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("labelwise.predictions.result.import_module", missing)
    with pytest.raises(MissingExtraError, match="pip install polars"):
        answer.to_frame("polars")
    assert importlib.import_module("labelwise.predictions.result") is not None


def test_masked_arrays_are_refused():
    table = np.ma.masked_array(np.eye(3), mask=np.eye(3))
    for texts_or_X, labels in ((table, [["a"]] * 3), (["x", "y", "z"], table)):
        with pytest.raises(DataError, match="an array has masked values; fill them, or leave these rows out"):
            LinearTree().fit(texts_or_X, labels)
