import json
import sys
import types
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelwise.data import FORMATS, convert, load_splits
from labelwise.data.formats import file_formats
from labelwise.errors import DataError, LabelwiseError, UsageError
from tests.data.examples import ROWS, assert_same, assert_same_matrix, write_jsonl, write_text, write_toy

NEED_TEXTS = [one.name for one in file_formats() if one.needs == "texts"]
NEED_FEATURES = [one.name for one in file_formats() if one.needs == "features"]
RECORDS = [one.name for one in file_formats() if one.records]
CHARACTERS = st.characters(codec="utf-8")
TEXTS = st.text(CHARACTERS, min_size=1, max_size=12).filter(lambda text: not text.isspace())
NAMES = st.text(CHARACTERS, min_size=1, max_size=8).filter(lambda name: not name.isspace())
ROW = st.fixed_dictionaries({"text": TEXTS, "labels": st.lists(NAMES, min_size=1, max_size=4)})
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Words:
    """Stands in for Tfidf: counts words of a fixed-size hash, so that these tests need no other part."""

    def __init__(self, config):
        self.fitted = 0

    def fit(self, texts):
        self.fitted = sum(1 for _ in texts)
        return self

    def transform(self, texts):
        rows = [[len(text) / 3, 0, text.count("a") / 7] for text in texts]
        return sp.csr_array(np.array(rows, dtype=np.float32).reshape(len(rows), 3))


@pytest.fixture
def words(monkeypatch):
    module = types.ModuleType("labelwise.features.tfidf")
    module.Tfidf = Words
    monkeypatch.setitem(sys.modules, "labelwise.features.tfidf", module)


def with_ids(rows, prefix):
    return [{"id": f"{prefix}{i}", **row} for i, row in enumerate(rows)]


@pytest.mark.parametrize("compression", [None, "gz", "xz", "zst"])
@pytest.mark.parametrize("to", NEED_TEXTS)
def test_toy_data_round_trip(tmp_path, to, compression):
    if to == "parquet" and compression == "xz":
        pytest.skip("parquet has no xz")
    write_jsonl(write_toy(tmp_path / "a") / "label_texts.jsonl", [{"label": "red", "text": "a colour"}])
    made = convert(tmp_path / "a", tmp_path / "b", to, compression=compression)
    assert made.documents == {"train": 3, "test": 1}
    assert (made.n_labels, made.bad_rows, made.n_features) == (4, 0, None)
    assert json.dumps(made.to_dict())
    wanted, found = load_splits(tmp_path / "a"), load_splits(tmp_path / "b")
    for split in wanted:
        assert_same(found[split], wanted[split], ids=to != "annif")


@pytest.mark.parametrize("to", RECORDS)
@SLOW
@given(rows=st.lists(ROW, min_size=1, max_size=5), test=st.lists(ROW, min_size=1, max_size=3))
def test_records_survive_exactly(tmp_path_factory, to, rows, test):
    folder = tmp_path_factory.mktemp("records")
    write_jsonl(folder / "a" / "train.jsonl", with_ids(rows, "é,"))
    write_jsonl(folder / "a" / "test.jsonl", with_ids(test, "t\n"))
    convert(folder / "a", folder / "b", to)
    convert(folder / "b", folder / "c", "jsonl")
    wanted = load_splits(folder / "a")
    for found in (load_splits(folder / "b"), load_splits(folder / "c")):
        for split in wanted:
            assert_same(found[split], wanted[split])


@SLOW
@given(rows=st.lists(ROW, min_size=1, max_size=5))
def test_annif_keeps_labels_and_texts_but_for_line_breaks(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("annif")
    rows = [row | {"text": f"x{row['text']}x"} for row in rows]
    write_jsonl(folder / "a" / "train.jsonl", rows)
    made = convert(folder / "a", folder / "b", "annif")
    wanted, found = load_splits(folder / "a")["train"], load_splits(folder / "b")["train"]
    assert_same(found, wanted, texts=False)
    changed = [text for text, other in zip(wanted.texts, found.texts, strict=True) if text != other]
    assert all(set(text) & set("\t\r\n") for text in changed)
    assert bool(changed) == any("texts became spaces" in note for note in made.notes)


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False).filter(bool)


@st.composite
def matrices(draw):
    n_docs, n_features, n_labels = draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    X, Y = np.zeros((n_docs, n_features), np.float32), np.zeros((n_docs, n_labels), np.float32)
    for row in range(n_docs):
        for column in draw(st.sets(st.integers(0, n_features - 1))):
            X[row, column] = draw(FLOATS)
        Y[row, list(draw(st.sets(st.integers(0, n_labels - 1))))] = 1
    X[0, -1] = Y[0, -1] = 1  # libsvm knows no shape but that of its largest numbers
    return sp.csr_array(X), sp.csr_array(Y)


@pytest.mark.parametrize("to", NEED_FEATURES)
@SLOW
@given(train=matrices())
def test_matrices_survive_exactly(tmp_path_factory, to, train):
    folder = tmp_path_factory.mktemp("matrices")
    X, Y = train
    (folder / "a").mkdir()
    sp.save_npz(folder / "a" / "X.trn.npz", sp.csr_matrix(X))
    sp.save_npz(folder / "a" / "Y.trn.npz", sp.csr_matrix(Y))
    made = convert(folder / "a", folder / "b", to)
    assert made.n_features == X.shape[1]
    convert(folder / "b", folder / "c", "pecos")
    for found in (load_splits(folder / "b")["train"], load_splits(folder / "c")["train"]):
        assert_same_matrix(found.features, X)
        assert_same_matrix(found.Y, Y)


@pytest.mark.parametrize("to", NEED_FEATURES)
def test_features_are_made_where_there_are_none(tmp_path, to, words):
    made = convert(write_toy(tmp_path / "a"), tmp_path / "b", to)
    assert made.n_features == 3
    wanted, found = load_splits(tmp_path / "a"), load_splits(tmp_path / "b")
    for split in wanted:
        assert_same(found[split], wanted[split], ids=False, texts=to == "pecos")
        assert_same_matrix(found[split].features, Words(None).transform(wanted[split].texts))
    assert "the ids of the documents are left out" in made.notes


@pytest.mark.parametrize("to", NEED_FEATURES)
def test_real_tfidf_features(tmp_path, to):
    tfidf = pytest.importorskip("labelwise.features.tfidf")
    convert(write_toy(tmp_path / "a"), tmp_path / "b", to)
    splits = load_splits(tmp_path / "b")
    expected = tfidf.Tfidf().fit([row["text"] for row in ROWS])
    assert_same_matrix(splits["train"].features, expected.transform([row["text"] for row in ROWS]))
    assert_same_matrix(splits["test"].features, expected.transform(["blue rose"]))


def test_line_breaks_in_texts_are_noted(tmp_path, words):
    write_jsonl(
        tmp_path / "a" / "train.jsonl", [{"text": "a\r\nb", "labels": ["x\ny"]}, {"text": "c", "labels": ["z"]}]
    )
    made = convert(tmp_path / "a", tmp_path / "b", "pecos")
    assert "line breaks in 1 texts became spaces" in made.notes
    assert any("labels.jsonl" in note for note in made.notes)
    found = load_splits(tmp_path / "b")["train"]
    assert found.texts == ["a b", "c"]
    assert found.labels == ["x\ny", "z"]


@pytest.mark.parametrize("to", NEED_TEXTS)
def test_texts_cannot_be_made(tmp_path, to):
    write_text(tmp_path / "a" / "train.txt", "1 2 2\n0 1:1\n")
    with pytest.raises(DataError, match=f"no texts here, and {to} holds texts; possible are: pecos, xc, libsvm"):
        convert(tmp_path / "a", tmp_path / "b", to)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_nothing_is_left_behind_on_error_or_interrupt(tmp_path):
    write_jsonl(write_toy(tmp_path / "a") / "test.jsonl", [{"text": 3, "labels": ["x"]}])
    with pytest.raises(DataError, match="the text is a number"):
        convert(tmp_path / "a", tmp_path / "b", "csv")

    def interrupt(name, values):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "a", tmp_path / "b", "csv", on_event=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failed_conversion_keeps_what_was_there(tmp_path):
    write_toy(tmp_path / "a")
    convert(tmp_path / "a", tmp_path / "b", "jsonl")
    before = (tmp_path / "b" / "train.jsonl").read_bytes()
    write_jsonl(tmp_path / "a" / "test.jsonl", [{"text": 3, "labels": ["x"]}])
    with pytest.raises(DataError):
        convert(tmp_path / "a", tmp_path / "b", "csv", overwrite=True)
    assert (tmp_path / "b" / "train.jsonl").read_bytes() == before


def test_a_destination_that_is_taken(tmp_path):
    write_toy(tmp_path / "a")
    (tmp_path / "b").mkdir()
    convert(tmp_path / "a", tmp_path / "b", "jsonl")  # empty: fine
    with pytest.raises(
        UsageError, match="exists and is not empty; choose another folder, or replace it with --overwrite"
    ):
        convert(tmp_path / "a", tmp_path / "b", "csv")
    convert(tmp_path / "a", tmp_path / "b", "csv", overwrite=True)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["labels.txt", "test.csv", "train.csv"]
    with pytest.raises(UsageError, match="holds the data that are to be read"):
        convert(tmp_path / "a", tmp_path / "a", "csv", overwrite=True)
    write_text(tmp_path / "b" / "thesis.docx", "years of work")
    with pytest.raises(UsageError, match=r"holds thesis.docx, which is not part of a data set"):
        convert(tmp_path / "a", tmp_path / "b", "csv", overwrite=True)
    with pytest.raises(UsageError, match="is a file; name a folder"):
        convert(tmp_path / "a", tmp_path / "b" / "train.csv", "csv")


def test_options_that_make_no_sense(tmp_path, words):
    write_toy(tmp_path / "a")
    with pytest.raises(UsageError, match="unknown format 'xml'; there are: jsonl"):
        convert(tmp_path / "a", tmp_path / "b", "xml")
    with pytest.raises(UsageError, match="unknown compression 'zip'; there are: gz, xz, zst"):
        convert(tmp_path / "a", tmp_path / "b", "csv", compression="zip")
    with pytest.raises(UsageError, match="parquet files cannot be compressed with xz"):
        convert(tmp_path / "a", tmp_path / "b", "parquet", compression="xz")
    with pytest.raises(UsageError, match="leave out the compression"):
        convert(tmp_path / "a", tmp_path / "b", "pecos", compression="gz")
    assert not (tmp_path / "b").exists()


def test_bad_rows_are_counted(tmp_path):
    write_jsonl(tmp_path / "a" / "train.jsonl", [*ROWS, {"id": "x", "text": "t", "labels": []}])
    heard = []
    made = convert(
        tmp_path / "a", tmp_path / "b", "csv", skip_bad_rows=True, on_event=lambda *event: heard.append(event)
    )
    assert (made.documents, made.bad_rows) == ({"train": 3}, 1)
    assert [values["count"] for name, values in heard if name == "bad_rows"] == [1]


@pytest.fixture(scope="module")
def every_format(tmp_path_factory):
    folder = tmp_path_factory.mktemp("every")
    write_toy(folder / "source")
    return {to: convert(folder / "source", folder / to, to) and folder / to for to in FORMATS}


@pytest.mark.parametrize("to", FORMATS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_refused_in_our_words(every_format, tmp_path_factory, to, data):
    folder = tmp_path_factory.mktemp("damaged")
    names = sorted(path.name for path in every_format[to].iterdir())
    victim = data.draw(st.sampled_from(names))
    for name in names:
        content = bytearray((every_format[to] / name).read_bytes())
        if name == victim:
            at = data.draw(st.integers(0, len(content) - 1))
            if data.draw(st.booleans()):
                del content[at:]
            else:
                content[at] = data.draw(st.integers(0, 255))
        (folder / name).write_bytes(content)
    for skip in (False, True):
        with suppress(LabelwiseError):
            load_splits(folder, skip_bad_rows=skip)
