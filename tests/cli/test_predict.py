"""labelwise predict: from every kind of input to every kind of output, and what it refuses."""

import gzip
import io
import json
import shutil

import pytest

from labelwise import load_dataset, read_predictions
from labelwise.cli import predict as module
from labelwise.cli.predict import readable
from labelwise.models.linear_tree import LinearTree

TEXTS = ["a mirror for the bathroom", "", "läufer schuhe size 9"]


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return file


@pytest.fixture
def features_model(labelwise, shop_features, tmp_path):
    labelwise("train", shop_features, tmp_path / "features-model", "--no-calibrate")
    return tmp_path / "features-model"


def test_a_line_for_each_text(labelwise, model, lines):
    result = labelwise("predict", model, lines, "--top-k", 2)
    assert (result.code, result.err) == (0, "")
    want = LinearTree.load(model).predict(TEXTS, top_k=2)
    assert result.out.splitlines() == [readable(row) for row in want]
    assert result.out.startswith("mirror (0.")


def test_json_lines(labelwise, model, lines):
    result = labelwise("predict", model, lines, "--json", "--top-k", 3)
    want = LinearTree.load(model).predict(TEXTS, top_k=3)
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    assert [[tuple(entry) for entry in row["labels"]] for row in rows] == list(want)


def test_standard_input_and_packed_files(labelwise, model, lines, tmp_path, monkeypatch):
    want = labelwise("predict", model, lines).out
    monkeypatch.setattr("sys.stdin", io.StringIO(lines.read_text(encoding="utf-8")))
    assert labelwise("predict", model, "-").out == want
    packed = tmp_path / "texts.txt.gz"
    packed.write_bytes(gzip.compress(lines.read_bytes()))
    assert labelwise("predict", model, packed).out == want


def test_batches_change_nothing(labelwise, model, shop, lines, monkeypatch):
    want = labelwise("predict", model, shop, "--json").out, labelwise("predict", model, lines).out
    monkeypatch.setattr(module, "BATCH", 2)
    assert (labelwise("predict", model, shop, "--json").out, labelwise("predict", model, lines).out) == want


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "csv.gz", "parquet"])
def test_files_that_evaluate_reads(labelwise, model, shop, tmp_path, suffix):
    output = tmp_path / f"out.{suffix}"
    result = labelwise("predict", model, shop, "--output", output, "--threads", 1)
    assert (result.code, result.out) == (0, "")
    assert "written: " in result.err
    test = load_dataset(shop, "test")
    found = read_predictions(output, test.labels, test.ids)
    want = LinearTree.load(model).predict(test.texts, top_k=5).with_labels(test.labels)
    assert list(found) == list(want)
    assert labelwise("evaluate", output, shop, "--bootstrap", 0).code == 0


def test_other_splits_and_unlabelled_records(labelwise, model, shop, tmp_path):
    assert len(labelwise("predict", model, shop, "--split", "train").out.splitlines()) == 900
    (tmp_path / "new.jsonl").write_text('{"id": "a", "text": "a mirror", "labels": []}\n')
    result = labelwise("predict", model, tmp_path / "new.jsonl", "--json")
    assert json.loads(result.out)["id"] == "a"


def test_no_label_is_an_answer(labelwise, model, lines):
    sure = labelwise("predict", model, lines, "--min-probability", 0.3).out.splitlines()
    assert len(sure) == 3
    assert sure[1] == "-"
    everything = labelwise("predict", model, lines, "--min-probability", 1).out.splitlines()
    assert everything == ["-", "-", "-"]


def test_scores_are_not_sold_as_probabilities(labelwise, plain_model, lines):
    result = labelwise("predict", plain_model, lines)
    assert result.code == 0
    assert result.err == "the model is not calibrated: the numbers are scores, not probabilities\n"
    assert labelwise("predict", plain_model, lines, "--quiet").err == ""
    result = labelwise("predict", plain_model, lines, "--min-probability", 0.5)
    assert (result.code, "is not calibrated, so its scores are not probabilities" in result.err) == (2, True)


def test_models_of_features(labelwise, features_model, shop_features, lines, monkeypatch):
    result = labelwise("predict", features_model, shop_features, "--top-k", 1)
    assert len(result.out.splitlines()) == 100
    file = next(shop_features.glob("test*"))  # alone, it does not tell how many features there are
    assert "columns but the model was fitted on" in labelwise("predict", features_model, file).err
    result = labelwise("predict", features_model, lines)
    assert result.code == 2
    assert "was trained on features and cannot read texts" in result.err
    monkeypatch.setattr("sys.stdin", io.StringIO("a text\n"))
    assert labelwise("predict", features_model, "-").code == 2


def test_what_is_refused(labelwise, model, shop, shop_features, lines, tmp_path, monkeypatch):
    result = labelwise("predict", tmp_path / "nothing", lines)
    assert (result.code, "config.json does not exist; give a folder that labelwise saved" in result.err) == (1, True)
    result = labelwise("predict", model / "tfidf", lines)
    assert (result.code, "is a saved tfidf, not a model; give a folder" in result.err) == (1, True)
    result = labelwise("predict", model, tmp_path / "none.txt")
    assert (result.code, "none.txt: there is no such file" in result.err) == (1, True)
    (tmp_path / "empty.txt").write_text("")
    result = labelwise("predict", model, tmp_path / "empty.txt", "--output", tmp_path / "out.jsonl")
    assert (result.code, "empty.txt: the file has no text" in result.err) == (1, True)
    assert not (tmp_path / "out.jsonl").exists()
    result = labelwise("predict", model, shop_features)
    assert (result.code, "the model was fitted on texts, but the data have only features" in result.err) == (1, True)
    for wrong in (("--top-k", 0), ("--min-probability", 2), ("--output", "out.doc")):
        assert labelwise("predict", model, lines, *wrong).code == 2
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9\n"), encoding="utf-8"))
    result = labelwise("predict", model, "-")
    assert (result.code, "standard input, line 1: not UTF-8 (byte 0xe9" in result.err) == (1, True)


def test_readable():
    assert readable([("a  b\nc", 0.934), ("d", 0.5)]) == "a b c (0.93), d (0.50)"
    assert readable([]) == "-"


def test_a_place_that_cannot_be_written_is_told_before_the_model_is_read(labelwise, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.csv").mkdir()
    for place in (tmp_path / "file" / "p.csv", tmp_path / "folder.csv"):
        refused = labelwise("predict", tmp_path / "no-model", "-", "--output", place)
        assert refused.code in (1, 2)
        assert str(place) in refused.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.csv"]


def test_the_documents_are_not_written_over(labelwise, shop, model, tmp_path):
    data = tmp_path / "data"
    shutil.copytree(shop, data)
    (tmp_path / "link.jsonl").symlink_to(data / "test.jsonl")
    before = (data / "test.jsonl").read_bytes()
    for source, output in (
        (data / "test.jsonl", data / "test.jsonl"),
        (data / "test.jsonl", tmp_path / "link.jsonl"),
        (data, data / "test.jsonl"),
    ):
        result = labelwise("predict", model, source, "--output", output)
        assert result.code == 2
        assert f"{output} is read by this command; choose another file to write" in result.err
    assert (data / "test.jsonl").read_bytes() == before
    for _ in range(2):  # predictions beside the documents may be written again
        assert labelwise("predict", model, data, "--output", data / "predictions.jsonl").code == 0


WORDS = ["a mirror for the bathroom", "a lamp", "läufer schuhe size 9"]


def write_lines(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return path


def test_skipped_rows_do_not_shift_the_others(labelwise, model, tmp_path):
    lines, rows = write_lines(tmp_path), (WORDS[0], "", *WORDS[1:])
    table = tmp_path / "d.csv"
    table.write_text("text,labels\n" + "".join(f'"{text}",x\n' for text in rows))
    (tmp_path / "d.jsonl").write_text("".join(f"{json.dumps({'text': text})}\n" for text in rows))
    want = [row["labels"] for row in map(json.loads, labelwise("predict", model, lines, "--json").out.splitlines())]
    assert labelwise("predict", model, table).code == 1
    for path in (table, tmp_path / "d.jsonl"):
        result = labelwise("predict", model, path, "--skip-bad-rows", "--json")
        found = [json.loads(line) for line in result.out.splitlines()]
        assert [row["id"] for row in found] == ["0", "2", "3"]
        assert [row["labels"] for row in found] == want
        assert result.err.count("dropped 1 bad row; the first:\n  line ") == 1
    out = tmp_path / "p.jsonl"
    assert labelwise("predict", model, table, "--skip-bad-rows", "--output", out).code == 0
    assert labelwise("evaluate", out, table, "--skip-bad-rows", "--bootstrap", 0).code == 0


def test_lines_that_are_not_utf8_keep_their_place(labelwise, model, tmp_path):
    (tmp_path / "t.txt").write_bytes(b"a mirror\ncaf\xe9\na lamp\n")
    assert "line 2: not UTF-8" in labelwise("predict", model, tmp_path / "t.txt").err
    result = labelwise("predict", model, tmp_path / "t.txt", "--skip-bad-rows", "--json")
    assert [json.loads(line)["id"] for line in result.out.splitlines()] == ["0", "2"]
    assert labelwise("predict", model, tmp_path / "t.txt", "--encoding", "latin-1").code == 0


def test_texts_as_options(labelwise, model, tmp_path):
    lines = write_lines(tmp_path)
    result = labelwise("predict", model, "--text", WORDS[0], "--text", WORDS[1], "--json")
    assert result.out.splitlines() == labelwise("predict", model, lines, "--json").out.splitlines()[:2]
    for wrong in ((), (lines, "--text", "a"), ("--text", " ")):
        assert labelwise("predict", model, *wrong).code == 2
    result = labelwise("predict", model, "a mirror for the bath")
    assert (result.code, 'pass --text "a mirror for the bath"' in result.err) == (1, True)
    assert 'pass --text "a mirror.txt"' in labelwise("predict", model, "a mirror.txt").err


def test_records_of_standard_input(labelwise, model, monkeypatch):
    def predict(content, *options):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
        return labelwise("predict", model, "-", "--json", "--top-k", 1, *options)

    record = json.dumps({"id": "z", "body": "caf\u00e9 mirror"}, ensure_ascii=False)
    result = predict(record.encode("latin-1"), "--format", "jsonl", "--text-column", "body", "--encoding", "latin-1")
    assert (json.loads(result.out)["id"], result.err) == ("z", "")
    assert "if these are records, pass --format jsonl" in predict(b'{"text": "a"}').err
    result = predict(b"id;text\na;mirror\na;lamp\n", "--format", "csv")
    assert [json.loads(line)["id"] for line in result.out.splitlines()] == ["a", "a"]
    assert "standard input: fields are separated by ';'" in result.err
    result = predict(b"text\n", "--format", "csv")
    assert (result.code, "standard input: the file is empty" in result.err) == (1, True)
    result = predict(b"", "--format", "parquet")
    assert (result.code, "standard input is read as jsonl, csv, tsv" in result.err) == (2, True)
    result = predict(b'{"text": ""}\n{"text": "lamp"}\n', "--format", "jsonl", "--skip-bad-rows")
    assert (json.loads(result.out)["id"], "line 1: the row has no text" in result.err) == ("1", True)


def test_ids_may_repeat_in_predictions(labelwise, model, tmp_path):
    """Predictions in the order of the documents need no ids; predictions in another order do."""
    data, out = tmp_path / "d.jsonl", tmp_path / "p.jsonl"
    data.write_text("".join(json.dumps({"id": "a", "text": text, "labels": ["mirror"]}) + "\n" for text in WORDS))
    assert labelwise("predict", model, data, "--output", out).code == 0
    assert labelwise("evaluate", out, data, "--bootstrap", 0).code == 0
    out.write_text('{"id": "a", "labels": []}\n')
    result = labelwise("evaluate", out, data, "--bootstrap", 0)
    assert (result.code, "several documents have the id 'a'" in result.err) == (1, True)


def test_names_of_uris_are_shown_and_files_keep_the_uris(labelwise, tmp_path):
    data, model, out = tmp_path / "data", tmp_path / "model", tmp_path / "p.jsonl"
    data.mkdir()
    (data / "train.tsv").write_text("a red cat\t<http://x.org/1>\na big dog\t<http://x.org/2>\n" * 40)
    (data / "subjects.tsv").write_text("<http://x.org/1>\tcats\n<http://x.org/2>\tdogs\n")
    assert labelwise("train", data, model, "--growing", "--quiet").code == 0
    assert labelwise("predict", model, "--text", "cat", "--top-k", 1).out.startswith("cats <http://x.org/1> (")
    assert "cats:\n" in labelwise("explain", model, "cat", "--top-k", 1).out
    assert labelwise("predict", model, "--text", "cat", "--top-k", 1, "--output", out).code == 0
    assert json.loads(out.read_text())["labels"][0][0] == "http://x.org/1"
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"label": "http://x.org/3", "examples": ["a fast horse", "one horse"]}) + "\n")
    assert labelwise("add-labels", model, more).code == 0
    assert labelwise("predict", model, "--text", "cat", "--top-k", 1).out.startswith("cats <http://x.org/1> (")
