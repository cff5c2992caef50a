"""Files of new labels: what is read, and the errors for everything else."""

import gzip

import pytest

from labelwise import NewLabel
from labelwise.errors import DataError
from labelwise.incremental import read_new_labels


def test_labels_with_texts_and_examples_are_read(tmp_path):
    file = tmp_path / "new.jsonl"
    file.write_text(
        '{"label": "cycling", "text": "bicycles", "examples": ["a bell", "a wheel"]}\n\n{"label": "naïve"}\n'
        '{"label": "x", "text": null, "examples": null}\n',
        encoding="utf-8",
    )
    wanted = [NewLabel("cycling", "bicycles", ("a bell", "a wheel")), NewLabel("naïve"), NewLabel("x")]
    assert read_new_labels(file) == wanted
    packed = tmp_path / "new.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert read_new_labels(packed) == wanted


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "line 2: this is not JSON"),
        ("[1]", "line 2: this is list, not an object"),
        ('{"text": "a"}', "line 2: the label has no name"),
        ('{"label": ""}', "line 2: a label name is empty"),
        ('{"label": 3}', "line 2: the label 3 is int, not a string"),
        ('{"label": "a", "example": []}', "line 2: there is no field 'example' of a label; there are: label, text, ex"),
        ('{"label": "a", "text": 3}', "line 2: the text of 'a' is int"),
        ('{"label": "a", "examples": "one"}', "line 2: the examples of 'a' are str; give a list of texts"),
        ('{"label": "a", "examples": 3}', "line 2: the examples of 'a' are int"),
        ('{"label": "a", "examples": [3]}', "line 2: an example of 'a' is int; give texts"),
        ('{"label": "first"}', "line 2: the label 'first' is on line 1 already"),
    ],
)
def test_an_error_names_the_line(line, said, tmp_path):
    file = tmp_path / "new.jsonl"
    file.write_text('{"label": "first"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_new_labels(file)
    assert f"{file}, {said}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "new.jsonl").write_text("\n")
    with pytest.raises(DataError, match="the file has no labels"):
        read_new_labels(tmp_path / "new.jsonl")
