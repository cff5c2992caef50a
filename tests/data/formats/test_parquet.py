import pytest

from labelwise.data import load_dataset
from labelwise.errors import DataError
from tests.data.examples import LABELS, ROWS, Y_TRAIN, dense

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path, rows, **options):
    parquet.write_table(arrow.Table.from_pylist(rows), path, **options)
    return path


def test_a_file_by_eye(tmp_path):
    dataset = load_dataset(write(tmp_path / "d.parquet", ROWS, row_group_size=2))
    assert dataset.labels == LABELS
    assert dense(dataset.Y) == Y_TRAIN
    assert dataset.texts == ["red apple", "red rose", "green apple"]
    assert dataset.ids == ["a", "b", "c"]


def test_other_types(tmp_path):
    table = arrow.table(
        {
            "title": arrow.array(["a", "b"], arrow.large_string()),
            "body": arrow.array(["c", None]),
            "nr": arrow.array([1, 2]),
            "tags": arrow.array(["x;y", "y"]),
        }
    )
    parquet.write_table(table, tmp_path / "d.parquet")
    options = {"text_column": "title,body", "labels_column": "tags", "id_column": "nr"}
    dataset = load_dataset(tmp_path / "d.parquet", **options)
    assert dataset.texts == ["a c", "b"]
    assert dataset.ids == ["1", "2"]
    assert dense(dataset.Y) == [[1, 1], [0, 1]]


GOOD = {"id": "z", "text": "fine", "labels": ["x"]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "1", "text": None, "labels": ["x"]}, "the row has no text"),
        ({"id": "1", "text": "  ", "labels": ["x"]}, "the row has no text"),
        ({"id": "1", "text": "t", "labels": []}, "the row has no labels"),
        ({"id": "1", "text": "t", "labels": None}, "the row has no labels"),
        ({"id": "1", "text": "t", "labels": ["new", None]}, "a label is missing"),
        ({"id": "1", "text": "t", "labels": ["new", ""]}, "a label is empty"),
        ({"id": "1", "text": "t" * 99, "labels": ["x"]}, "the text has 99 characters, more than 50"),
        ({"id": "z", "text": "t", "labels": ["x"]}, "the id 'z' stands on line 1 already"),
        ({"id": None, "text": "t", "labels": ["x"]}, "the row has no id"),
    ],
)
def test_a_bad_row_is_named_or_skipped(tmp_path, row, message):
    path = write(tmp_path / "d.parquet", [GOOD, row, {**GOOD, "id": "y"}])
    with pytest.raises(DataError, match=f"line 2: {message}"):
        load_dataset(path, max_text_chars=50, unique_ids=True)
    dataset = load_dataset(path, max_text_chars=50, unique_ids=True, skip_bad_rows=True)
    assert (dataset.texts, dataset.labels) == (["fine", "fine"], ["x"])
    assert dataset.positions.tolist() == [0, 2]


def test_text_of_another_type(tmp_path):
    with pytest.raises(DataError, match="the text is a number"):
        load_dataset(write(tmp_path / "d.parquet", [{"text": 3, "labels": ["x"]}]))


def test_missing_columns_and_damage(tmp_path):
    path = write(tmp_path / "d.parquet", [{"body": "t"}])
    with pytest.raises(DataError, match="no column 'text'; there are: 'body'"):
        load_dataset(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match="not a whole parquet file"):
        load_dataset(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="the file is empty"):
        load_dataset(path)
    with pytest.raises(DataError, match="the file is empty"):
        load_dataset(write(path, [{**GOOD}]) and _without_rows(path))


def _without_rows(path):
    parquet.write_table(parquet.read_table(path).slice(0, 0), path)
    return path
