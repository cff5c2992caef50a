"""Downloads from a server on this machine, which breaks off, lies and changes the file."""

import json
import socket
import threading

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
    with pytest.raises(DownloadError, match=r"was not followed: .* begins with https|is not allowed"):
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


def test_addresses_with_a_password_are_refused_without_being_repeated():
    with pytest.raises(UsageError, match="holds a user name") as refusal:
        check_address("https://me:secret@example.org/a")
    assert "secret" not in str(refusal.value)


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """Fetch from a server that sends these bytes, whatever it is asked."""
    monkeypatch.setattr(download, "PAUSE", 0.0)
    listening = socket.create_server(("127.0.0.1", 0))

    def send(content):
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(content)

    def run(content, state=None):
        threading.Thread(target=send, args=[content], daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/a"
        one = Download(url, tmp_path / "parts", most=10**6)
        with one.locked():
            if state is not None:
                (tmp_path / "parts/archive").write_bytes(b"old")
                (tmp_path / "parts/download.json").write_text(state.replace("URL", url))
            return one.fetch(None, "fetching").read_bytes()

    yield run
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"


def test_an_answer_in_chunks_is_whole_with_its_last_chunk(answer):
    assert answer(CHUNKED + b"0\r\n\r\n") == b"abc"


def test_an_answer_in_chunks_that_breaks_off_is_not_whole(answer):
    with pytest.raises(DownloadError, match="IncompleteRead"):
        answer(CHUNKED)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", "more than the 1,000,000"),
        (b"HTTP/1.1 206 P\r\nContent-Range: bytes " + b"9" * 5000 + b"-1/2\r\n\r\n", "another part of the file"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "the server answers 204, no file"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n", "cannot be fetched"),
        (b"HTTP/1.1 302 Found\r\nLocation: https://\xff\xfe/\r\n\r\n", "cannot be fetched"),
        (b"HTTP/1.1 302 Found\r\nLocation: https://" + b"a" * 70 + b".org/\r\n\r\n", "cannot be fetched"),
        (b"x" * 60000, r"^.{,500}$"),
    ],
)
def test_odd_answers_are_one_sentence(answer, content, said):
    with pytest.raises(DownloadError, match=said):
        answer(content)


@pytest.mark.parametrize(
    "values", ['"total": "3"', '"total": 9, "tag": "a\\nb"', '"total": 9, "tag": "\u20ac"', '"total": -1']
)
def test_damaged_notes_of_a_download_begin_it_again(answer, values):
    assert answer(CHUNKED + b"0\r\n\r\n", f'{{"url": "URL", {values}}}') == b"abc"


@pytest.mark.parametrize("url", ["http://localhost:1/\xe4", "http://localhost:1/a b", f"https://{'a' * 70}.invalid/"])
def test_addresses_that_no_server_can_have_are_not_tried_again(fetch, url, monkeypatch):
    monkeypatch.setattr(download.time, "sleep", lambda seconds: pytest.fail("tried again"))
    with pytest.raises(DownloadError, match="cannot be fetched"):
        fetch(url)


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
