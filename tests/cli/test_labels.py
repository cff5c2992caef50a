"""labelwise add-labels, remove-labels and update, as a user types them."""

import json
import shutil

import pytest

from labelwise import load_model
from labelwise.incremental import AddedLabel, added_labels


@pytest.fixture
def mine(model, tmp_path):
    """A copy of the shop's model that may be changed."""
    shutil.copytree(model, tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def new(tmp_path):
    def write(*objects):
        file = tmp_path / "new.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in objects))
        return file

    return write


def files(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


CYCLING = {"label": "cycling", "text": "mirror", "examples": ["a mirror for a bicycle", "cycling mirror, black"]}


def test_a_misspelt_label_to_remove_gets_a_proposal(labelwise, mine):
    name = load_model(mine).labels_[0]
    result = labelwise("remove-labels", mine, f"{name}x")
    assert result.code == 2
    assert f"the model has no label '{name}x'; did you mean " in result.err


def test_add_list_and_remove_in_place(labelwise, mine, model, shop, new):
    result = labelwise("add-labels", mine, new(CYCLING, {"label": "red mirror"}), "--data", shop)
    assert result.code == 0, result.err
    assert f"the model: {mine}" in result.out
    assert "added: 2 labels, 1 of them by their text alone" in result.out
    grown = load_model(mine)
    assert grown.labels_[-2:] == ["cycling", "red mirror"]
    assert "| labels added since | 2, of which 1 by their text alone |" in (mine / "README.md").read_text()
    listed = labelwise("remove-labels", mine, "--list")
    assert listed.code == 0
    assert "cycling" in listed.out
    assert "2" in listed.out
    found = labelwise("remove-labels", mine, "cycling", "red mirror")
    assert found.code == 0, found.err
    assert "removed: 2 labels" in found.out
    assert files(mine) == files(model)  # to the last byte
    assert "no label was added" in labelwise("remove-labels", mine, "--list").out


def test_a_new_folder_leaves_the_old_one_alone(labelwise, mine, new, shop, tmp_path):
    before = files(mine)
    out = tmp_path / "grown"
    assert labelwise("add-labels", mine, new(CYCLING), "--data", shop, "--output", out).code == 0
    assert files(mine) == before
    refused = labelwise("add-labels", mine, new(CYCLING), "--data", shop, "--output", out)
    assert refused.code == 2
    assert "exists already; choose another place, or pass --overwrite" in refused.err
    assert labelwise("add-labels", mine, new(CYCLING), "--data", shop, "--output", out, "--overwrite").code == 0
    back = tmp_path / "back"
    assert labelwise("remove-labels", out, "--added", "--output", back).code == 0
    assert files(back) == before
    assert added_labels(load_model(out)) == [AddedLabel(label="cycling", examples=2)]


def test_training_for_labels_to_come(labelwise, shop, new, tmp_path):
    folder = tmp_path / "model"
    assert labelwise("train", shop, folder, "--growing", "--no-calibrate").code == 0
    assert (folder / "memory").is_dir()
    result = labelwise("add-labels", folder, new(CYCLING))
    assert result.code == 0, result.err
    found = labelwise("predict", folder, _text(tmp_path, "a black mirror for my bicycle"), "--top-k", 3)
    assert "cycling" in found.out
    told = labelwise("explain", folder, "a black mirror for my bicycle", "--label", "cycling")
    assert told.code == 0
    assert "mirror" in told.out


def test_update(labelwise, mine, model, new, tmp_path):
    name = load_model(mine).labels_[0]
    data = tmp_path / "more.jsonl"
    rows = [{"text": "entirely rapid thing", "labels": [name]}, {"text": "nothing known", "labels": ["unheard of"]}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = labelwise("update", mine, data)
    assert result.code == 0, result.err
    assert "trained on: 1 document with 1 label\n" in result.out
    assert "1 label ignored that the model does not have" in result.err
    assert "| documents learnt from since | 1 |" in (mine / "README.md").read_text()
    assert files(mine) != files(model)
    data.write_text(json.dumps(rows[1]) + "\n")
    refused = labelwise("update", mine, data)
    assert refused.code == 1
    assert "none of the documents has a label of the model" in refused.err


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ('{"label": "a"', 1, "new.jsonl, line 1: this is not JSON"),
        ('{"label": "xyzzy"}', 1, "the model knows no word of the text of 'xyzzy'"),
        (
            '{"label": "my mirror", "examples": ["a mirror"]}',
            2,
            "has examples, but there are no documents without the label",
        ),
        ("", 1, "the file has no labels"),
    ],
)
def test_wrong_labels_change_nothing(labelwise, mine, content, code, said, tmp_path):
    before = files(mine)
    (tmp_path / "new.jsonl").write_text(content)
    result = labelwise("add-labels", mine, tmp_path / "new.jsonl")
    assert result.code == code
    assert said in result.err
    assert result.err.count("\n") == 1
    assert files(mine) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"mine", "new.jsonl"}


def test_wrong_usage(labelwise, mine, tmp_path):
    for arguments in ([], ["a", "--list"], ["--added", "--list"]):
        result = labelwise("remove-labels", mine, *arguments)
        assert result.code == 2
        assert "give the names of labels to remove" in result.err
    assert "has no label 'nobody'" in labelwise("remove-labels", mine, "nobody").err
    assert "no label was added to" in labelwise("remove-labels", mine, "--added").err
    assert labelwise("add-labels", tmp_path / "nowhere", tmp_path / "new.jsonl").code == 1
    missing = labelwise("add-labels", mine, tmp_path / "nowhere.jsonl")
    assert missing.code == 1
    assert "nowhere.jsonl" in missing.err


def _text(folder, text):
    (folder / "texts.txt").write_text(text + "\n")
    return folder / "texts.txt"


def test_repeated_commands_change_nothing(labelwise, mine, new, shop, tmp_path):
    labels = new(CYCLING, {"label": "red mirror"})
    more = tmp_path / "more.jsonl"
    more.write_text("".join((shop / "test.jsonl").read_text().splitlines(keepends=True)[:20]))
    for command in (("add-labels", mine, labels, "--data", shop), ("update", mine, more)):
        assert labelwise(*command).code == 0
        before = files(mine)
        again = labelwise(*command)  # as after a kill between the save and the end
        assert again.code == 0, again.err
        assert "in the model already" in again.out
        assert files(mine) == before
    assert len(load_model(mine).report_.updates) == 1
    other = labelwise("add-labels", mine, new(CYCLING), "--data", shop)  # not the same command
    assert other.code == 2
    assert "has the label" in other.err
    once_more = labelwise("update", mine, more, "--again")
    assert once_more.code == 0, once_more.err
    assert len(load_model(mine).report_.updates) == 2
    copied = labelwise("update", mine, more, "--output", tmp_path / "copy")
    assert copied.code == 0, copied.err
    assert len(load_model(tmp_path / "copy").report_.updates) == 3


def test_a_place_that_cannot_be_written_is_told_before_the_model_is_read(labelwise, mine, new, tmp_path):
    (tmp_path / "file").touch()
    for command in (("add-labels", mine, new(CYCLING)), ("update", mine, "nothing.jsonl")):
        refused = labelwise(*command, "--output", tmp_path / "file" / "x")
        assert refused.code == 1
        assert "is a file; choose another place" in refused.err
