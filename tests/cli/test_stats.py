"""labelwise stats"""

import json


def test_stats(labelwise, data, tmp_path):
    result = labelwise("stats", data, "--plot", tmp_path / "tail.png", "--output", tmp_path / "stats.json")
    assert result.code == 0
    assert "training documents" in result.out
    assert (tmp_path / "tail.png").read_bytes().startswith(b"\x89PNG")
    printed = json.loads(labelwise("stats", data, "--json").out)
    assert printed == json.loads((tmp_path / "stats.json").read_text())
    assert printed["n_train"] == 8
    assert printed["n_test"] == 2
    assert printed["n_unseen_labels"] == 1


def test_stats_refuses_other_pictures_before_it_reads(labelwise, tmp_path):
    result = labelwise("stats", tmp_path / "nothing", "--plot", "tail.gif")
    assert (result.code, result.err) == (2, "labelwise: --plot tail.gif: give a .png or an .svg file\n")
