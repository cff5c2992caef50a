"""Runs the command line in this process, as a user would type it."""

import json

import pytest

from labelwise.cli import main


class Result:
    """What a command printed and how it ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def labelwise(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return Result(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def data(tmp_path):
    """Two topics, four labels, ten documents: known by eye."""
    rows = [
        ("the cat sat on the mat", ["animal", "cat"]),
        ("a cat and a dog", ["animal", "cat", "dog"]),
        ("dogs bark", ["animal", "dog"]),
        ("my dog", ["animal", "dog"]),
        ("an oak is a tree", ["plant"]),
        ("oak and elm", ["plant"]),
        ("cat nap", ["animal", "cat"]),
        ("elm street", ["plant"]),
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    for split, part in (("train", rows), ("test", [("the dog sat", ["animal", "dog"]), ("an elm", ["plant", "tree"])])):
        lines = [
            json.dumps({"id": f"{split}{i}", "text": text, "labels": labels}) for i, (text, labels) in enumerate(part)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder
