"""The columns that a model remembers."""

import json

import pytest

from labelwise import load_model, train

HEADER = "Book Title ;Signature;Subject(s), all\n"
ROWS = [
    (f"{['cats', 'dogs', 'oaks', 'elms'][i % 4]} and number {i}", f"s{i}", "animal|pet" if i % 4 < 2 else "plant")
    for i in range(24)
]


@pytest.fixture
def books(tmp_path):
    """A table in the dialect of a spreadsheet, and a model that was trained on it."""
    path = tmp_path / "books.csv"
    path.write_text(HEADER + "".join(";".join(row) + "\n" for row in ROWS))
    return path


@pytest.fixture
def tagger(labelwise, books, tmp_path):
    folder = tmp_path / "tagger"
    named = ("--text-column", "Book Title ", "--labels-column", "Subject(s), all", "--id-column", "Signature")
    result = labelwise("train", books, folder, *named)
    assert result.code == 0
    assert result.err.count("fields are separated by ';'") == 1
    assert "labels are separated by '|': 'animal|pet' is 2 labels" in result.err
    return folder


REMARK = "columns are read as in the training of the model: "


def test_commands_read_the_columns_of_the_training(labelwise, tagger, books, tmp_path):
    predicted = labelwise("predict", tagger, books, "--json", "--top-k", 1)
    assert json.loads(predicted.out.splitlines()[1])["id"] == "s1"
    assert REMARK + "--text-column 'Book Title ' --id-column 'Signature'" in predicted.err
    evaluated = labelwise("evaluate", tagger, books, "--bootstrap", 0)
    assert (evaluated.code, REMARK in evaluated.err, "labels are separated" in evaluated.err) == (0, True, False)
    assert labelwise("explain", tagger, "cats", "--data", books, "--top-k", 1).code == 0
    assert labelwise("update", tagger, books, "--output", tmp_path / "updated").code == 0
    assert load_model(tmp_path / "updated").report_.columns == load_model(tagger).report_.columns
    (tmp_path / "new.jsonl").write_text('{"label": "tree", "examples": ["oaks and elms"]}\n')
    added = labelwise("add-labels", tagger, tmp_path / "new.jsonl", "--data", books)
    assert (added.code, REMARK in added.err) == (0, True), added.err


def test_a_report_reads_the_columns_of_the_training(labelwise, books, tmp_path):
    named = ("--text-column", "Book Title ", "--labels-column", "Subject(s), all", "--run-dir", tmp_path / "runs")
    assert labelwise("train", books, tmp_path / "m", *named).code == 0
    reported = labelwise("report", tmp_path / "runs", "--data", books, "--model", tmp_path / "m", "--bootstrap", 0)
    assert (reported.code, REMARK in reported.err) == (0, True), reported.err


def test_an_option_wins_and_other_files_are_read_as_usual(labelwise, tagger, books, tmp_path):
    wrong = labelwise("predict", tagger, books, "--text-column", "text")
    assert (wrong.code, "there is no column 'text'" in wrong.err) == (1, True)
    plain = tmp_path / "plain.csv"
    plain.write_text("id,text,labels\nx,cats,animal\n")
    result = labelwise("predict", tagger, plain, "--json")
    assert (json.loads(result.out)["id"], REMARK in result.err) == ("x", False)
    assert labelwise("evaluate", tagger, plain, "--bootstrap", 0).code == 0
    plain.write_text("body,labels\ncats,animal\n")
    missing = labelwise("predict", tagger, plain)
    assert (missing.code, "there is no column 'Book Title'; there are: 'body'" in missing.err) == (1, True)
    (tmp_path / "texts.txt").write_text("cats\n")
    assert labelwise("predict", tagger, tmp_path / "texts.txt", "--quiet").code == 0


def test_the_card_names_the_columns(tagger):
    card = (tagger / "README.md").read_text()
    assert "| columns | text: Book Title; labels: Subject(s), all, separated by '\\|' |" in card


def test_a_folder_is_data(labelwise, tagger, books):
    path = tagger / "config.json"
    about = json.loads(path.read_text())
    about["config"]["report"]["columns"]["text_column"] = ["Book Title "]
    path.write_text(json.dumps(about))
    refused = labelwise("predict", tagger, books)
    assert (refused.code, "columns: text_column: there is" in refused.err) == (1, True)
    del about["config"]["report"]["columns"]  # a folder of an earlier version
    path.write_text(json.dumps(about))
    assert labelwise("predict", tagger, books, "--text-column", "Book Title").code == 0


def test_python_remembers_too(labelwise, books, tmp_path):
    how = {"text_column": "Book Title ", "labels_column": "Subject(s), all"}
    train(books, preset="parabel", out=tmp_path / "m", **how)
    assert labelwise("predict", tmp_path / "m", books, "--quiet").code == 0
    (tmp_path / "plain.csv").write_text("text,labels\n" + "".join(f"{a},{c}\n" for a, _, c in ROWS[:1] + ROWS[2:3]))
    assert train(tmp_path / "plain.csv", preset="parabel", label_separator=None).report_.columns.label_separator == "|"
