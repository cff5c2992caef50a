"""Text files, compressed or not: blocks of lines, encodings, damage."""

import bz2
import errno
import gzip
import io
import lzma
import os
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.data import files
from labelwise.data.files import compression_of, plain_name, read_blocks, read_lines
from labelwise.data.options import BadRows
from labelwise.errors import DataError

TEXT = "".join(f"line {i} with ünïcode\n" for i in range(1, 2001)).encode()


def zstd(data: bytes) -> bytes:
    return bytes(files.zstd_module().compress(data))


PACK = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": zstd}


def lines_of(path: Path, **options) -> list[str | None]:
    found = []
    for first, lines in read_lines(path, **options):
        assert first == len(found) + 1
        found.extend(lines)
    return found


def write(folder: Path, data: bytes, name: str = "x.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", [None, *PACK])
def test_the_first_bytes_tell_the_compression(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1000)
    path = write(tmp_path, TEXT if kind is None else PACK[kind](TEXT))
    assert compression_of(path) == kind
    assert lines_of(path) == TEXT.decode().splitlines()


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zst"])
def test_joined_archives_are_read_to_the_end(tmp_path, kind):
    path = write(tmp_path, PACK[kind](b"a\nb") + PACK[kind](b"c\n"))
    assert lines_of(path) == ["a", "bc"]


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zst"])
def test_padded_and_empty_members(tmp_path, kind, monkeypatch):
    path = tmp_path / f"a.{kind}"
    rest = b"".join(PACK[kind](TEXT[at : at + 7000]) + bytes(at % 1000) for at in range(0, len(TEXT), 7000))
    path.write_bytes(PACK[kind](b"") + rest + bytes(5000) + PACK[kind](b"end\n"))
    for size in (1000, 1 << 20):
        monkeypatch.setattr(files, "BLOCK_BYTES", size)
        assert b"".join(block.data for block in read_blocks(path, bad=BadRows())) == TEXT + b"end\n"


class FewBytes:
    """A decompressor whose copies of what follows a member are counted."""

    copied = 0

    def __init__(self):
        self._inner = bz2.BZ2Decompressor()

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        FewBytes.copied += len(found) if name == "unused_data" else 0
        return found


def test_many_small_members_take_a_time_that_grows_with_their_number(tmp_path):
    raw = io.BytesIO(bz2.compress(b"a\n") * 2000)
    assert b"".join(files._drain(raw, FewBytes, ())) == b"a\n" * 2000
    assert FewBytes.copied < 2 * 2000 * files.FIRST_PIECE_BYTES + files.BLOCK_BYTES


@pytest.mark.parametrize("kind", PACK)
def test_a_cut_archive_names_the_last_good_line(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 4096)
    rng = random.Random(0)
    noisy = "".join(f"{i} {rng.getrandbits(400):x}\n" for i in range(1, 20_001)).encode()
    packed = PACK[kind](noisy)
    path = write(tmp_path, packed[: len(packed) // 2], f"x.txt.{kind}")
    with pytest.raises(DataError, match=r"damaged after this line .* --skip-bad-rows") as caught:
        lines_of(path)
    bad = BadRows(skip=True)
    kept = lines_of(path, bad=bad)
    assert kept == noisy.decode().splitlines()[: len(kept)]
    assert caught.value.line == len(kept)
    assert bad.count == 1


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2"])
def test_a_changed_byte_is_noticed(tmp_path, kind):
    packed = bytearray(PACK[kind](TEXT))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(DataError, match=r"damaged|UTF-8"):
        lines_of(write(tmp_path, bytes(packed)))


def test_damage_in_the_first_line(tmp_path):
    with pytest.raises(DataError, match=r"x\.txt: the archive is damaged before the end of its first line"):
        lines_of(write(tmp_path, lzma.compress(b"one\n")[:20]))


def test_a_misnamed_archive_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not start like one"):
        lines_of(write(tmp_path, b"plain text\n", "x.txt.xz"))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        lines_of(tmp_path / "nowhere.txt")


def test_an_empty_file_has_no_lines(tmp_path):
    assert lines_of(write(tmp_path, b"")) == []
    assert lines_of(write(tmp_path, b"", "x.txt.gz")) == []


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("é\nb".encode(), {}),
        (b"\xef\xbb\xbf" + "é\nb".encode(), {}),
        ("é\nb".encode("utf-16"), {}),
        (b"\xfe\xff" + "é\nb".encode("utf-16-be"), {}),
        ("é\nb".encode("latin-1"), {"encoding": "latin-1"}),
        ("é\r\nb\r\n".encode(), {}),
    ],
)
def test_encodings(tmp_path, data, options):
    assert lines_of(write(tmp_path, data), **options) == ["é", "b"]


def test_a_line_that_is_not_utf8_is_named(tmp_path):
    path = write(tmp_path, b"good\ncaf\xe9\nagain\n")
    with pytest.raises(DataError, match=r"line 2: not UTF-8 \(byte 0xe9 at position 4\).*--encoding latin-1"):
        lines_of(path)
    bad = BadRows(skip=True)
    assert lines_of(path, bad=bad) == ["good", None, "again"]
    assert bad.count == 1


def test_a_wrong_encoding_is_named(tmp_path):
    with pytest.raises(DataError, match="not utf-16"):
        lines_of(write(tmp_path, b"\xff\xfea\x00\n\x00b"))


def test_an_abandoned_file_ends_its_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 100)
    before = threading.active_count()
    blocks = read_blocks(write(tmp_path, TEXT), bad=BadRows())
    next(blocks)
    blocks.close()
    assert threading.active_count() == before


@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=20)),
    size=st.integers(1, 40),
)
def test_lines_do_not_depend_on_block_size(tmp_path_factory, lines, size):
    path = write(tmp_path_factory.mktemp("lines"), "\ufeff".encode() + "".join(f"{line}\n" for line in lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", size)
        assert lines_of(path) == lines


def test_plain_names():
    assert plain_name(Path("a/train.jsonl.xz")) == "train.jsonl"
    assert plain_name(Path("train.jsonl")) == "train.jsonl"


# ---------------------------------------------------------------------- bounds


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zst"])
def test_what_unpacks_to_too_much_is_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(files, "ALWAYS_UNPACKED", 100_000)
    path = write(tmp_path, PACK[kind](b"line\n" * 2_000_000), f"x.{kind}")
    with pytest.raises(DataError, match=r"unpacks to more than .* bytes, from .*--max-unpacked"):
        lines_of(path)
    assert len(lines_of(path, max_unpacked=10_000_000)) == 2_000_000
    with pytest.raises(DataError, match="unpacks to more than 9,999,999 bytes"):
        lines_of(path, max_unpacked=9_999_999)


def test_a_long_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 1000)
    path = write(tmp_path, b"short\n" + b"x" * 10_000)
    assert len(lines_of(path)[1]) == 10_000
    with pytest.raises(DataError, match="line 2: the line has more than 5,000 bytes"):
        lines_of(path, longest_line=5000)


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in (
        (tmp_path / "pipe", "a pipe or a device"),
        (Path("/dev/zero"), "a pipe"),
        (tmp_path, "a folder"),
    ):
        with pytest.raises(DataError, match=f"is {what}.*; give a file"):
            lines_of(path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(DataError, match=r"loop: cannot be read: .*symbolic links"):
        lines_of(tmp_path / "loop")


def test_errors_of_the_system_are_data_errors(tmp_path, monkeypatch):
    path = write(tmp_path, TEXT)

    def refuse(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"x\.txt: cannot be read: Too many open files"):
        lines_of(path)


def test_what_files_of_a_size_can_tell_of(tmp_path):
    plain, packed = write(tmp_path, b"x" * 100), write(tmp_path, b"x" * 100, "x.gz")
    assert files.most_numbers([plain, packed]) == files.NUMBERS_WITHOUT_PROOF
    os.truncate(plain, 10_000_000)
    os.truncate(packed, 1_000_000)
    assert files.most_numbers([plain, packed]) == 20_000_000
    os.truncate(plain, 1 << 33)
    assert files.most_numbers([plain]) == 2**31 - 2
