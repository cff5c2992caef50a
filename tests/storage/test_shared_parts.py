"""Parts of several models in one folder: each is written once and read once, and links lead nowhere else."""

import json
from pathlib import Path

import pytest

from labelwise.errors import StorageError
from labelwise.storage.shared_parts import SHARED, SharedParts


class Part:
    """Counts how often it was saved."""

    def __init__(self, text):
        self.text, self.saved = text, []

    def save(self, path):
        self.saved.append(path)
        path.mkdir(parents=True)
        (path / "text").write_text(self.text)


def read(place):
    return [(place / "text").read_text()]


@pytest.fixture
def ensemble(tmp_path):
    """Three members: two share their words, the third has others; the matcher of one has the shared words too."""
    folder, one, other = tmp_path / "ensemble", Part("one"), Part("other")
    parts = SharedParts(folder)
    for member, part in (("00", one), ("01", one), ("02", other), ("00/matcher", one)):
        place = folder / "members" / member
        place.mkdir(parents=True)
        parts.save(part, place / "tfidf")
    return folder, one, other


def target(link):
    return json.loads(link.read_text())


def test_each_part_is_written_once_and_named_by_its_number(ensemble):
    folder, one, other = ensemble
    assert one.saved == [folder / SHARED / "tfidf-1"]
    assert other.saved == [folder / SHARED / "tfidf-2"]
    members = folder / "members"
    assert target(members / "00" / "tfidf.link.json") == {"folder": "../../shared/tfidf-1"}
    assert target(members / "01" / "tfidf.link.json") == {"folder": "../../shared/tfidf-1"}
    assert target(members / "02" / "tfidf.link.json") == {"folder": "../../shared/tfidf-2"}
    assert target(members / "00" / "matcher" / "tfidf.link.json") == {"folder": "../../../shared/tfidf-1"}


def test_parts_of_other_names_are_counted_apart(tmp_path):
    parts = SharedParts(tmp_path)
    (tmp_path / "members" / "00").mkdir(parents=True)
    for name in ("tfidf", "index", "tfidf"):
        parts.save(Part(name), tmp_path / "members" / "00" / name)
    assert sorted(path.name for path in (tmp_path / SHARED).iterdir()) == ["index-1", "tfidf-1", "tfidf-2"]


def test_each_part_is_read_once(ensemble):
    folder, *_ = ensemble
    members = folder / "members"
    parts = SharedParts.of_folder(folder)
    places = [members / name / "tfidf" for name in ("00", "01", "02", "00/matcher")]
    assert all(parts.has(place) for place in places)
    assert not parts.has(members / "01" / "index")
    found = [parts.load(place, read) for place in places]
    assert found == [["one"], ["one"], ["other"], ["one"]]
    assert found[0] is found[1] is found[3]


def test_a_model_of_its_own_keeps_its_parts(tmp_path):
    part, parts = Part("mine"), SharedParts()
    for name in ("a", "b"):
        parts.save(part, tmp_path / name)
    assert part.saved == [tmp_path / "a", tmp_path / "b"]
    assert not list(tmp_path.rglob("*.json"))
    assert parts.has(tmp_path / "a")
    assert not parts.has(tmp_path / "c")
    first = parts.load(tmp_path / "a", read)
    assert parts.load(tmp_path / "a", read) is first
    assert parts.load(tmp_path / "b", read) == first
    with pytest.raises(FileNotFoundError):
        parts.load(tmp_path / "c", read)


@pytest.mark.parametrize(
    "content",
    [
        *("[]", "null", "5", "{}", '{"folder": null}', '{"folder": 5}', '{"folder": ["../../shared/tfidf-1"]}'),
        *(
            json.dumps({"folder": text})
            for text in (
                "../shared/tfidf-1",
                "../../../shared/tfidf-1",
                "../../shared/index-1",
                "../../shared/tfidf-1/",
                "../../shared/tfidf-",
                "../../shared/tfidf-1/../tfidf-1",
                "shared/tfidf-1",
                "/shared/tfidf-1",
            )
        ),
    ],
)
def test_links_that_are_none_are_refused(ensemble, content):
    folder, *_ = ensemble
    link = folder / "members" / "01" / "tfidf.link.json"
    link.write_text(content)
    for place in (folder.parent, folder / "members"):  # so that only the text of the link tells that it is wrong
        Part("outside").save(place / SHARED / "tfidf-1")
    with pytest.raises(StorageError, match=r"tfidf.link.json names no shared part of its ensemble; copy or make it"):
        SharedParts().load(link.with_name("tfidf"), read)


@pytest.mark.parametrize("member", ["0", "members/0", "other/00", "members/00/a/b", "members/00/B"])
def test_links_lie_in_members_only(tmp_path, member):
    Part("one").save(tmp_path / SHARED / "tfidf-1")
    place = tmp_path / member
    place.mkdir(parents=True)
    up = "../" * len(Path(member).parts)
    (place / "tfidf.link.json").write_text(json.dumps({"folder": f"{up}{SHARED}/tfidf-1"}))
    with pytest.raises(StorageError, match="names no shared part"):
        SharedParts().load(place / "tfidf", read)


def test_shared_parts_that_are_links_are_refused(ensemble):
    folder, *_ = ensemble
    link = folder / "members" / "02" / "tfidf"
    (folder / SHARED / "tfidf-2").rename(folder / SHARED / "mine")
    (folder / SHARED / "tfidf-2").symlink_to(folder / SHARED / "mine")
    with pytest.raises(StorageError, match="names no shared part"):
        SharedParts().load(link, read)
    (folder / SHARED / "tfidf-1" / "way-out").symlink_to(folder.parent)
    for check in (
        lambda: SharedParts.of_folder(folder),
        lambda: SharedParts().load(link.parents[1] / "01/tfidf", read),
    ):
        with pytest.raises(StorageError, match="is a link"):
            check()
