"""A data set of the paper from a stand-in archive: fetched, checked, unpacked, converted."""

import hashlib
import json

import pytest

from labelwise import load_dataset, load_splits
from labelwise.datasets.paper import download, get_paper_set
from labelwise.datasets.paper.download import DownloadError
from labelwise.errors import DataError, UsageError
from tests.datasets.paper.served import NAMES, TRAIN, members, packed, serving


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_fetched_checked_and_converted(place, server, archive):
    made = get_paper_set("eurlex-4k", url=server.url)
    assert sorted(path.name for path in place.iterdir()) == ["eurlex-4k"]
    assert sorted(path.name for path in (place / "eurlex-4k").iterdir()) == [
        *("labels.txt", "source.json", "test.jsonl", "train.jsonl"),
    ]
    splits = load_splits("eurlex-4k")
    kept = [(text, labels) for text, labels in TRAIN if text and labels]
    assert splits["train"].texts == [text for text, _ in kept]
    assert splits["train"].labels == NAMES
    assert [row.indices.tolist() for row in splits["train"].Y] == [labels for _, labels in kept]
    assert len(splits["test"]) == made.documents["test"] == 2
    assert made.sha256 == hashlib.sha256(archive).hexdigest()
    assert made.n_bytes == len(archive)
    assert made.notes[0] == "2 train documents have no labels or no text, and were left out"
    assert "3 labels, where 3,956 are published" in made.notes
    source = json.loads((place / "eurlex-4k/source.json").read_text())
    assert (source["sha256"], source["source"]) == (made.sha256, server.url)
    assert source["licence"].startswith("no licence is stated")


def test_what_is_there_is_not_fetched_again(place, server):
    first = get_paper_set("eurlex-4k", url=server.url)
    assert get_paper_set("eurlex-4k") == first
    with pytest.raises(DataError, match=r"source\.json: the archive has the checksum .*, not 00"):
        get_paper_set("eurlex-4k", sha256="0" * 64)
    with pytest.raises(UsageError, match="holds eurlex-4k; choose another folder"):
        get_paper_set("wiki10-31k", "eurlex-4k")
    assert len(server.asked) == 1


def test_another_file_for_a_folder_that_is_there_is_refused(place, archive):
    (place / "first.tar.gz").write_bytes(archive)
    (place / "other.tar.gz").write_bytes(packed(members(names=["one", "two", "three"])))
    first = get_paper_set("eurlex-4k", file="first.tar.gz")
    assert get_paper_set("eurlex-4k", file="first.tar.gz") == first
    with pytest.raises(UsageError, match=r"holds eurlex-4k from another archive \(first\.tar\.gz\); choose another"):
        get_paper_set("eurlex-4k", file="other.tar.gz")
    with pytest.raises(DataError, match=r"there is no such file"):
        get_paper_set("eurlex-4k", file="none.tar.gz")
    assert load_dataset("eurlex-4k").labels == NAMES
    get_paper_set("eurlex-4k", file="other.tar.gz", overwrite=True)
    assert load_dataset("eurlex-4k").labels == ["one", "two", "three"]


def test_another_archive_than_before_is_noted(place, server):
    get_paper_set("eurlex-4k", url=server.url)
    server.content = packed(members(names=["one", "two", "three"]))
    made = get_paper_set("eurlex-4k", url=server.url, overwrite=True)
    assert "the archive is another one than before: its checksum is not the one that was recorded" in made.notes
    assert load_dataset("eurlex-4k").labels == ["one", "two", "three"]
    assert sorted(path.name for path in place.iterdir()) == ["eurlex-4k"]


def test_a_wrong_checksum_uses_and_keeps_nothing(place, server, archive):
    with pytest.raises(DataError, match=r"has the checksum [0-9a-f]{64}, not 1{64}; nothing of it was used"):
        get_paper_set("eurlex-4k", url=server.url, sha256="1" * 64)
    assert not list(place.iterdir())
    (place / "mine.tar.gz").write_bytes(archive)
    with pytest.raises(DataError, match=r"mine\.tar\.gz: the archive has the checksum"):
        get_paper_set("eurlex-4k", file="mine.tar.gz", sha256="1" * 64)
    assert [path.name for path in place.iterdir()] == ["mine.tar.gz"]  # a file of the user's stays
    assert get_paper_set("eurlex-4k", file="mine.tar.gz", sha256=hashlib.sha256(archive).hexdigest().upper())
    with pytest.raises(UsageError, match="must be 64 hexadecimal digits"):
        get_paper_set("eurlex-4k", file="mine.tar.gz", sha256="abc")


def test_a_broken_download_goes_on_with_the_next_call(place, server, archive, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.cut_after = 80
    with pytest.raises(DownloadError, match=r"80 bytes are kept in eurlex-4k\.download; run the command again"):
        get_paper_set("eurlex-4k", url=server.url)
    assert [path.name for path in place.iterdir()] == ["eurlex-4k.download"]
    get_paper_set("eurlex-4k", url=server.url)
    assert server.asked == [None, "bytes=80-"]
    assert [path.name for path in place.iterdir()] == ["eurlex-4k"]


def test_without_the_server_the_address_and_the_other_way_are_said(place, server):
    server.status = 404
    with pytest.raises(DownloadError) as found:
        get_paper_set("eurlex-4k", "data/laws", url=server.url)
    assert str(found.value) == (
        f"{server.url} cannot be fetched (the server answers 404 Not Found); run the command again later, name a "
        "mirror with --url, or fetch the file by other means and run: labelwise get eurlex-4k data/laws --from "
        "eurlex-4k.tar.gz"
    )
    assert not (place / "data/laws").exists()
    assert not (place / "data/laws.download").exists()


@pytest.mark.parametrize("damage", ["cut", "other", "hostile", "too few texts", "bad npz"])
def test_a_bad_archive_leaves_nothing(place, archive, damage):
    content, said = {
        "cut": (archive[:-300], "is no whole tar archive"),
        "other": (packed({"readme.txt": b"hello"}), r"holds no Y\.trn\.npz"),
        "hostile": (packed({**members(), "../../evil": b"x"}), "would be written outside"),
        "too few texts": (
            packed({**members(), "xmc-base/eurlex-4k/X.trn.txt": b"one\n"}),
            "has 1 texts, but the label",
        ),
        "bad npz": (packed({**members(), "xmc-base/eurlex-4k/Y.trn.npz": b"PK"}), r"Y\.trn\.npz: "),
    }[damage]
    (place / "a.tar.gz").write_bytes(content)
    with pytest.raises(DataError, match=rf"^a\.tar\.gz: .*{said}"):
        get_paper_set("eurlex-4k", file="a.tar.gz")
    assert [path.name for path in place.iterdir()] == ["a.tar.gz"]
    with serving(content) as server, pytest.raises(DataError, match=said):
        get_paper_set("eurlex-4k", url=server.url)
    assert [path.name for path in place.iterdir()] == ["a.tar.gz"]  # the next call fetches anew


def test_features_where_there_are_no_texts(place):
    (place / "a.tar.gz").write_bytes(packed(members(texts=False)))
    made = get_paper_set("eurlex-4k", file="a.tar.gz")
    assert made.format == "pecos"
    train = load_dataset("eurlex-4k")
    assert train.texts is None
    assert train.features.shape == (len(TRAIN) - 1, 3)
    assert train.labels == NAMES


@pytest.mark.parametrize("names", [None, ["cats", "dogs"], ["cats", "cats", ""]])
def test_labels_without_good_names_are_called_by_number(place, names):
    files = members(names=names or ())
    if names is None:
        files = {path: content for path, content in files.items() if "output-items" not in path}
    (place / "a.tar.gz").write_bytes(packed(files))
    made = get_paper_set("eurlex-4k", file="a.tar.gz")
    wanted = ["cats", "cats (2)", "2"] if names and len(names) == 3 else ["0", "1", "2"]
    assert load_dataset("eurlex-4k").labels == wanted
    assert any("called by number" in note for note in made.notes) == (wanted[0] == "0")


def test_files_and_folders_that_cannot_be_used(place, archive):
    (place / "folder").mkdir()
    (place / "folder/mine.txt").write_text("x")
    with pytest.raises(UsageError, match="folder exists and holds something else"):
        get_paper_set("eurlex-4k", "folder", overwrite=True)
    with pytest.raises(UsageError, match="is a folder; if the archive is unpacked there, labelwise train folder reads"):
        get_paper_set("eurlex-4k", file="folder")
    with pytest.raises(DataError, match=r"no\.tar\.gz: there is no such file"):
        get_paper_set("eurlex-4k", file="no.tar.gz")
    with pytest.raises(UsageError, match="a file or an address, not both"):
        get_paper_set("eurlex-4k", file="a", url="https://example.org/a")
