"""Archives that nobody vouches for."""

import gzip
import io
import tarfile

import pytest

from labelwise.datasets.paper import unpack as module
from labelwise.datasets.paper.unpack import sha256_of, unpack
from labelwise.errors import DataError
from tests.datasets.paper.served import members, packed


def unpacked(tmp_path, content, most=10**9):
    archive, folder = tmp_path / "a.tar.gz", tmp_path / "folder"
    archive.write_bytes(content)
    folder.mkdir()
    return unpack(archive, folder, most=most, on_event=None), folder


def test_only_what_is_needed_is_written_with_plain_rights(tmp_path):
    files = {**members(), "xmc-base/eurlex-4k/model.pkl": b"x", "xmc-base/eurlex-4k/other/X.trn.txt.bak": b"x"}
    found, folder = unpacked(tmp_path, packed(files))
    wanted = {f"{kind}.{tag}.{end}" for kind, end in (("X", "txt"), ("Y", "npz")) for tag in ("trn", "tst")}
    assert found == {*wanted, "tfidf.X.trn.npz", "tfidf.X.tst.npz", "output-items.txt"}
    assert {path.name for path in folder.iterdir()} == found
    assert not any(path.stat().st_mode & 0o111 for path in folder.iterdir())


def member(name, **values):
    one = tarfile.TarInfo(name)
    for key, value in values.items():
        setattr(one, key, value)
    return one


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (member("../../Y.trn.npz"), "would be written outside"),
        (member("/etc/Y.trn.npz"), "would be written outside"),
        (member("..\\Y.trn.npz"), "would be written outside"),
        (member("C:\\Y.trn.npz"), "would be written outside"),
        (member("a/../Y.trn.npz"), "would be written outside"),
        (member("Y.trn.npz", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link or a device"),
        (member("unused", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link or a device"),
        (member("Y.trn.npz", type=tarfile.LNKTYPE, linkname="x"), "is a link or a device"),
        (member("Y.trn.npz", type=tarfile.FIFOTYPE), "is a link or a device"),
        (member("Y.trn.npz", type=tarfile.CHRTYPE), "is a link or a device"),
        (member("n" * 2000), "a name or a size that no file has"),
    ],
)
def test_a_hostile_member_refuses_the_archive(tmp_path, bad, said):
    with pytest.raises(DataError, match=rf"a\.tar\.gz: .*{said}"):
        unpacked(tmp_path, packed({}, bad))
    assert not list((tmp_path / "folder").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "folder"]


def test_the_sizes_together_are_bounded(tmp_path):
    with pytest.raises(DataError, match="holds more than 1,000,000 bytes"):
        unpacked(tmp_path, packed({}, member("unused", size=1_500_000)), most=10**6)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_that_would_fill_the_memory_is_not_read(tmp_path, kind):
    content = gzip.compress(member("x", type=kind, size=10**9).tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(DataError, match=r"a\.tar\.gz: has a header that no such data set has"):
        unpacked(tmp_path, content)


def test_a_file_with_holes_does_not_get_past_the_bound(tmp_path):
    keys = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n26 GNU.sparse.realsize=10\n"
    holes = b"1\n0\n3000000\n".ljust(512, b"\0") + bytes(3_000_320)
    header = member("x", type=tarfile.XHDTYPE, size=len(keys)).tobuf(tarfile.GNU_FORMAT)
    data = member("Y.trn.npz", size=512 + 3_000_000).tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(DataError, match=r"'Y\.trn\.npz' is a file with holes"):
        unpacked(tmp_path, gzip.compress(header + keys.ljust(512, b"\0") + data + holes), most=10**6)
    assert not list((tmp_path / "folder").iterdir())


def test_the_number_of_members_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_MEMBERS", 3)
    with pytest.raises(DataError, match="holds more than 3 files"):
        unpacked(tmp_path, packed({f"f{i}": b"" for i in range(4)}))


def test_two_files_of_one_name_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds two files Y\.trn\.npz"):
        unpacked(tmp_path, packed({"a/Y.trn.npz": b"1", "b/Y.trn.npz": b"2"}))


@pytest.mark.parametrize(
    "content", [b"", b"no archive", packed(members())[:-200], packed(members())[:40]], ids=["", "text", "cut", "begun"]
)
def test_what_is_no_whole_archive_is_said(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.tar\.gz: is no whole tar archive"):
        unpacked(tmp_path, content)


def test_an_archive_without_compression_is_read_too(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(member("x/Y.trn.npz", size=3), io.BytesIO(b"abc"))
    assert unpacked(tmp_path, out.getvalue())[0] == {"Y.trn.npz"}


def test_the_checksum(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    assert sha256_of(tmp_path / "f", None) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
