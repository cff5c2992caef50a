"""Compressed files that are written."""

from pathlib import Path

import pytest

from labelwise.data.archive import append_file, open_writer
from labelwise.data.files import compression_of, read_lines
from labelwise.errors import UsageError


def lines_of(path: Path, **options) -> list[str | None]:
    found = []
    for first, lines in read_lines(path, **options):
        assert first == len(found) + 1
        found.extend(lines)
    return found


@pytest.mark.parametrize("kind", [None, "gz", "xz", "zst"])
def test_what_is_written_is_read(tmp_path, kind):
    with open_writer(tmp_path / "a", kind) as stream:
        stream.write("é\r\nb\n")
    with open_writer(tmp_path / "b", kind) as stream:
        stream.write("c\n")
    append_file(tmp_path / "a", tmp_path / "b")
    assert compression_of(tmp_path / "a") == kind
    assert lines_of(tmp_path / "a") == ["é", "b", "c"]
    assert not (tmp_path / "b").exists()


def test_an_unknown_compression(tmp_path):
    with pytest.raises(UsageError, match="'rar'; there are: gz, xz, zst"), open_writer(tmp_path / "a", "rar"):
        pass
