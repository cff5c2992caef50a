"""labelwise split"""

import json

from labelwise import load_splits


def write(path, n_docs=50):
    rows = [f"number {i}, with a text,c;{'abd'[i % 3]}\n" for i in range(n_docs)]
    path.write_text("text;tags\n" + "".join(row.replace(",c;", ";c|") for row in rows))


def test_split_train_and_evaluate(labelwise, tmp_path):
    write(tmp_path / "d.csv")
    how = ("--labels-column", "tags")
    result = labelwise("split", tmp_path / "d.csv", tmp_path / "out", "--test", 0.2, "--validation", 0.1, *how)
    out = tmp_path / "out"
    assert (result.code, result.out) == (0, f"{out}: csv, documents: 35 train, 10 test, 5 validation; 4 labels\n")
    assert f"{tmp_path / 'd.csv'}: fields are separated by ';'" in result.err
    splits = load_splits(out, labels_column="tags")
    assert {name: len(part) for name, part in splits.items()} == {"train": 35, "validation": 5, "test": 10}
    assert labelwise("train", out, tmp_path / "m", "--quiet", *how).code == 0
    assert labelwise("evaluate", tmp_path / "m", out, "--bootstrap", 0).code == 0


def test_split_again(labelwise, tmp_path):
    write(tmp_path / "d.csv")
    arguments = ("split", tmp_path / "d.csv", tmp_path / "out", "--labels-column", "tags")
    first = json.loads(labelwise(*arguments, "--json").out)
    assert first["documents"] == {"train": 45, "test": 5}
    before = (tmp_path / "out" / "test.csv").read_bytes()
    refused = labelwise(*arguments)
    assert (refused.code, "is not empty; choose another folder" in refused.err) == (2, True)
    assert labelwise(*arguments, "--overwrite").code == 0
    assert (tmp_path / "out" / "test.csv").read_bytes() == before
    assert labelwise(*arguments, "--overwrite", "--seed", 1).code == 0
    assert (tmp_path / "out" / "test.csv").read_bytes() != before


def test_rare_labels_make_a_part_small(labelwise, tmp_path):
    lines = "".join(f"text {i},{i if i > 1 else 'both'}\n" for i in range(20))
    (tmp_path / "d.csv").write_text("text,labels\n" + lines)
    result = labelwise("split", tmp_path / "d.csv", tmp_path / "out", "--test", 0.5)
    assert "1 test" in result.out
    assert "the test split has 5.0% of the documents: every label keeps a training document" in result.err
