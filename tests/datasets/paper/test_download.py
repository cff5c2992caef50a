"""Downloads from a server on this machine, which breaks off, lies and changes the file."""

import json
import socket

import pytest

from labelwise.datasets.paper import download
from labelwise.datasets.paper.download import Download, DownloadError, check_address
from labelwise.errors import StorageError, UsageError


@pytest.fixture
def fetch(server, tmp_path):
    def run(url=None, most=10**9):
        one = Download(url or server.url, tmp_path / "parts", most=most)
        with one.locked():
            return one.fetch(None, "fetching")

    return run


def test_the_whole_file(fetch, server, archive):
    assert fetch().read_bytes() == archive
    assert fetch().read_bytes() == archive
    assert server.asked == [None]  # what is complete is not fetched again


def test_a_broken_connection_goes_on_where_it_stopped(fetch, server, archive):
    server.cut_after = 100
    assert fetch().read_bytes() == archive
    assert server.asked == [None, "bytes=100-"]


def test_another_process_goes_on_with_what_was_kept(fetch, server, archive, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.cut_after = 64
    with pytest.raises(DownloadError, match=r"ended too early\); 64 bytes are kept in .*parts"):
        fetch()
    assert fetch().read_bytes() == archive
    assert server.asked[-1] == "bytes=64-"


@pytest.mark.parametrize("what", ["changed", "no ranges", "other address", "damaged notes"])
def test_pieces_of_another_file_are_not_joined(fetch, server, archive, monkeypatch, tmp_path, what):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.cut_after = 64
    with pytest.raises(DownloadError):
        fetch()
    url = None
    if what == "changed":
        server.content, server.tag = archive[::-1], '"two"'
    elif what == "no ranges":
        server.with_ranges = False
    elif what == "other address":
        url = f"{server.url}?again"
    else:
        (tmp_path / "parts/download.json").write_text("[]")
    assert fetch(url).read_bytes() == server.content


def test_a_file_without_a_length_is_fetched_and_bounded(fetch, server, archive):
    server.with_length = False
    with pytest.raises(DownloadError, match=r"sends more bytes than"):
        fetch(most=len(archive) // 2)
    assert fetch().read_bytes() == archive


def test_a_file_that_is_too_large_is_refused_before_it_is_fetched(fetch, server, archive, monkeypatch, tmp_path):
    with pytest.raises(DownloadError, match=rf"has {len(archive):,} bytes, more than the 99 that are expected"):
        fetch(most=99)
    usage = type("Usage", (), {"free": 7})
    monkeypatch.setattr(download.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(StorageError, match=r"has room for 7 bytes"):
        fetch()
    assert not (tmp_path / "parts/archive").exists()


@pytest.mark.parametrize(("status", "n_asked"), [(404, 1), (403, 1), (503, 5)])
def test_what_the_server_answers_is_said_and_only_its_own_trouble_is_tried_again(fetch, server, status, n_asked):
    server.status = status
    with pytest.raises(DownloadError, match=rf"cannot be fetched \(the server answers {status} "):
        fetch()
    assert len(server.asked) == n_asked


@pytest.mark.parametrize("target", ["http://example.org/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_redirects_to_what_is_not_encrypted_are_not_followed(fetch, server, target):
    server.redirect = target
    with pytest.raises(DownloadError, match=r"is not encrypted; it was not followed|is not allowed"):
        fetch()


def test_a_redirect_from_the_network_to_this_machine_is_not_followed():
    request = download.urllib.request.Request("https://example.org/a")
    with pytest.raises(DownloadError, match="which is this machine"):
        download._SafeRedirects().redirect_request(request, None, 302, "", {}, "http://127.0.0.1/b")


def test_redirects_to_an_encrypted_address_are_followed():
    request = download.urllib.request.Request("https://example.org/a")
    followed = download._SafeRedirects().redirect_request(request, None, 302, "", {}, "https://mirror.example.org/b")
    assert followed.full_url == "https://mirror.example.org/b"


@pytest.mark.parametrize(
    "url", ["http://example.org/a", "ftp://example.org/a", "file:///a", "a.tar.gz", "https://[", ""]
)
def test_addresses_that_are_refused(url):
    with pytest.raises(UsageError, match="begins with https://"):
        check_address(url)


def test_nobody_answers(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one = Download(f"http://127.0.0.1:{port}/a", tmp_path / "parts", most=10)
    download_pause, download.PAUSE = download.PAUSE, 0.0
    try:
        with one.locked(), pytest.raises(DownloadError, match=r"cannot be fetched \(.*refused"):
            one.fetch(None, "fetching")
    finally:
        download.PAUSE = download_pause


def test_one_process_at_a_time(server, tmp_path):
    first, second = (Download(server.url, tmp_path / "parts", most=10) for _ in range(2))
    with first.locked(), pytest.raises(UsageError, match="another process is fetching into"), second.locked():
        pass


def test_the_events_count_megabytes(server, tmp_path):
    heard = []
    one = Download(server.url, tmp_path / "parts", most=10**9)
    with one.locked():
        one.fetch(lambda name, values: heard.append((name, values["task"], values["unit"])), "fetching it")
    assert set(heard) == {("progress", "fetching it", "MB")}
    assert json.loads((tmp_path / "parts/download.json").read_text())["url"] == server.url
