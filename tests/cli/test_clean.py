"""labelwise clean: what killed processes left is listed and removed, what is in use stays."""

import json

from labelwise.storage import atomic_folder
from labelwise.storage.leftovers import beside


def leave(place):
    path = beside(place)
    path.mkdir(parents=True)
    (path / "arrays").write_bytes(bytes(2_000_000))
    return path


def test_leftovers_are_listed_and_removed(labelwise, tmp_path):
    left = [leave(tmp_path / "model"), leave(tmp_path / "models" / "deep" / "data")]
    other = tmp_path / ".model.0123456789abcdef.partial"
    other.mkdir()
    mine = tmp_path / "mine.partial"
    mine.touch()
    with atomic_folder(tmp_path / "busy") as busy:
        listed = labelwise("clean", tmp_path, "--dry-run")
        assert listed.code == 0, listed.err
        assert [line for line in listed.out.splitlines() if "would remove" in line] == [
            f"would remove {path} (2.0 MB)" for path in left
        ]
        assert "2 leftovers, 4.0 MB would be freed" in listed.out
        assert all(path.exists() for path in left)
        removed = labelwise("clean", tmp_path, "--json")
        assert json.loads(removed.out) == {
            "removed": True,
            "leftovers": [{"path": str(path), "bytes": 2_000_000} for path in left],
        }
        assert not any(path.exists() for path in left)
        assert busy.exists()
        assert other.exists()
        assert "1 leftover, " in labelwise("clean", tmp_path, "--min-age", "0").out
        assert busy.exists()
        assert not other.exists()
        assert mine.exists()


def test_wrong_use_is_told(labelwise, tmp_path):
    assert "is no folder" in labelwise("clean", tmp_path / "nothing").err
    assert "--min-age" in labelwise("clean", tmp_path, "--min-age", "-1").err
