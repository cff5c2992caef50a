import pytest

from labelwise.data import load_dataset
from labelwise.errors import DataError
from tests.data.examples import LABELS, Y_TRAIN, dense, write_text


def test_a_table_by_eye(tmp_path):
    table = 'id,text,labels\r\na,red apple,fruit;red\r\nb,"red\nrose, wild",red;flower\r\nc,"green ""apple""",fruit\r\n'
    dataset = load_dataset(write_text(tmp_path / "d.csv", table))
    assert dataset.labels == LABELS
    assert dense(dataset.Y) == Y_TRAIN
    assert dataset.texts == ["red apple", "red\nrose, wild", 'green "apple"']
    assert dataset.ids == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,b,c", "the row has 3 fields where the header has 2"),
        ("a", "the row has 1 fields where the header has 2"),
        ('"a"b,c', "not well-formed"),
        (",x", "the row has no text"),
        ("t,", "the row has no labels"),
    ],
)
def test_a_bad_row_is_named_or_skipped(tmp_path, row, message):
    path = write_text(tmp_path / "d.csv", f'text,labels\n"fine\nindeed",x\n{row}\ngood,y\n')
    with pytest.raises(DataError, match=f"line 4: {message}"):
        load_dataset(path)
    kept = load_dataset(path, skip_bad_rows=True)
    assert (kept.texts, kept.names) == (["fine\nindeed", "good"], ["0", "2"])


def test_an_unclosed_quote(tmp_path):
    with pytest.raises(DataError, match="line 3: not well-formed"):
        load_dataset(write_text(tmp_path / "d.csv", 'text,labels\na,x\n"b,x\nc,x\n'))


def test_missing_columns_and_empty_files(tmp_path):
    with pytest.raises(DataError, match=r"no column 'text'; there are: 'a', 'b'"):
        load_dataset(write_text(tmp_path / "a.csv", "a,b\n1,2\n"))
    with pytest.raises(DataError, match="not even a header row"):
        load_dataset(write_text(tmp_path / "b.csv", ""))
    with pytest.raises(DataError, match="the file is empty"):
        load_dataset(write_text(tmp_path / "c.csv", "text,labels\n"))


def test_a_long_field(tmp_path):
    path = write_text(tmp_path / "d.csv", f"text,labels\n{'x' * 200_000},y\n")
    assert len(load_dataset(path).texts[0]) == 200_000
    with pytest.raises(DataError, match="200,000 characters, more than 150,000"):
        load_dataset(path, max_text_chars=150_000)


def test_a_line_that_is_not_utf8(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes("text,labels\nfine,x\ncafé,x\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 3: not UTF-8"):
        load_dataset(path)
    assert load_dataset(path, skip_bad_rows=True).texts == ["fine"]
    assert load_dataset(path, encoding="latin-1").texts == ["fine", "café"]
