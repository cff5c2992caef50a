"""labelwise get"""

import json
import re

import pytest

from tests.datasets.paper.served import members, packed


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "eurlex-4k.tar.gz").write_bytes(packed(members()))
    return tmp_path


def test_get_then_train(labelwise, place):
    done = labelwise("get", "eurlex-4k", "--from", "eurlex-4k.tar.gz")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "eurlex-4k: jsonl, documents: 124 train, 2 test; 3 labels"
    assert any(line.startswith("licence: no licence is stated") for line in lines)
    assert "next: labelwise train eurlex-4k my-model" in lines
    assert any("--preset eurlex-4k --encoder" in line for line in lines)
    assert "was there already" not in done.out
    assert "the folder was there already; it was left as it is" in labelwise("get", "eurlex-4k").out
    assert "was there already" not in labelwise("get", "eurlex-4k", "--from", "eurlex-4k.tar.gz", "--overwrite").out
    assert labelwise("train", "eurlex-4k", "my-model", "--quiet").code == 0
    assert labelwise("evaluate", "my-model", "eurlex-4k", "--bootstrap", 0).code == 0
    again = labelwise("get", "eurlex-4k", "--json")
    assert json.loads(again.out)["documents"] == {"train": 124, "test": 2}


def test_the_list_fetches_nothing(labelwise, place):
    told = labelwise("get", "--list").out
    assert re.search(r"eurlex-4k +15,449 +3,865 +3,956", told)
    assert "amazon-3m" in told
    assert "no licence is stated" in told
    assert len(json.loads(labelwise("get", "--list", "--json").out)) == 6
    assert [path.name for path in place.iterdir()] == ["eurlex-4k.tar.gz"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((), "give the name of a data set"),
        (("eurlex",), "did you mean 'eurlex-4k'?"),
        (("eurlex-4k", "--url", "http://example.org/a"), "is not encrypted"),
        (("eurlex-4k", "--sha256", "1"), "64 hexadecimal digits"),
    ],
)
def test_wrong_options_are_one_sentence(labelwise, place, command, said):
    done = labelwise("get", *command)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in place.iterdir()] == ["eurlex-4k.tar.gz"]
