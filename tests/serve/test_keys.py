"""API keys: printed once, kept as hashes, asked for where they should be."""

import asyncio
import errno
import hashlib
import io
import os
import stat

import pytest

from labelwise.errors import DataError, StorageError, UsageError
from labelwise.serve.keys import KeyFile, Keyring, make_key
from labelwise.serve.logs import JsonLog
from tests.serve.conftest import JSON


def test_only_the_hash_is_kept(tmp_path):
    file = tmp_path / "keys.txt"
    key = make_key(file, name="anna")
    other = make_key(file, name="root", admin=True)
    text = file.read_text()
    assert key not in text
    assert f"sha256:{hashlib.sha256(key.encode()).hexdigest()} user anna\n" in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    ring = Keyring.read(file)
    assert (ring.find(key.encode()).name, ring.find(other.encode()).role) == ("anna", "admin")
    assert ring.find(b"") is None
    assert ring.find(key[:-1].encode()) is None
    assert key != other
    assert len(key) > 40


def test_files_that_are_not_key_files(tmp_path):
    file = tmp_path / "keys.txt"
    with pytest.raises(DataError, match="no such file"):
        Keyring.read(file)
    with pytest.raises(DataError, match="it is no regular file"):
        make_key(tmp_path, name="a")
    file.write_text("# nothing\n")
    with pytest.raises(DataError, match="the file has no key"):
        Keyring.read(file)
    file.write_text("# mine\nhunter2\n")
    with pytest.raises(DataError, match=r"line 2: this is not a line of a key file"):
        make_key(file, name="a")
    assert file.read_text() == "# mine\nhunter2\n"
    with pytest.raises(UsageError, match="--key-name 'a b'"):
        make_key(tmp_path / "new.txt", name="a b")
    assert not (tmp_path / "new.txt").exists()


def test_requests_need_a_key(serve, folder, tmp_path):
    file = tmp_path / "keys.txt"
    key, admin = make_key(file, name="anna"), make_key(file, name="root", admin=True)
    client = serve({"shop": folder}, keys=file)

    def bearer(value):
        return (*JSON, (b"authorization", f"Bearer {value}".encode()))

    answer = client.suggest(text="a")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.error[1].startswith("an API key is needed; send it as Authorization: Bearer KEY")
    assert client.suggest(text="a", headers=bearer("lw_wrong")).error[1].startswith("this API key is not known")
    assert client.suggest(text="a", headers=(*JSON, (b"authorization", b"Basic \xff\xfe"))).status == 401
    assert client.suggest(text="a", headers=bearer(key)).status == 200
    assert client.suggest(text="a", headers=(*JSON, (b"x-api-key", key.encode()))).status == 200
    for path, status in (("/health", 200), ("/ready", 200), ("/", 200), ("/metrics", 401), ("/v1/model", 401)):
        assert client("GET", path).status == status
    assert client("POST", "/v1/reload", headers=bearer(key)).error[0] == "no_admin"
    assert client("POST", "/v1/reload", headers=bearer(admin)).json()["changed"] is False
    client.app.log.flush()
    assert '"key": "anna"' in client.log.getvalue()
    assert key not in client.log.getvalue()


def allowed(client, key):
    return client.suggest(text="a", headers=(*JSON, (b"x-api-key", key.encode()))).status


def test_a_withdrawn_key_is_refused_by_the_next_request(serve, folder, tmp_path):
    file = tmp_path / "keys.txt"
    anna = make_key(file, name="anna")
    client = serve({"shop": folder}, keys=file)
    assert allowed(client, anna) == 200
    bert = make_key(file, name="bert")
    assert (allowed(client, anna), allowed(client, bert)) == (200, 200)
    file.write_text("".join(line for line in file.read_text().splitlines(True) if "anna" not in line))
    assert (allowed(client, anna), allowed(client, bert)) == (401, 200)
    answer = serve({"shop": folder})("POST", "/v1/reload")
    assert (answer.status, answer.error[0]) == (403, "no_admin")


@pytest.mark.parametrize("withdraw", ["last line", "file", "empty", "garbage", "folder"])
def test_without_a_key_nobody_passes(serve, folder, tmp_path, withdraw):
    file = tmp_path / "keys.txt"
    key = make_key(file, name="anna")
    client = serve({"shop": folder}, keys=file)
    assert allowed(client, key) == 200
    if withdraw in ("file", "folder"):
        file.unlink()
        if withdraw == "folder":
            file.mkdir()
    else:
        file.write_text({"last line": "# none\n", "empty": "", "garbage": "hunter2\n"}[withdraw])
    assert allowed(client, key) == 401
    client.runner.run(client.app.reload())
    assert (allowed(client, key), client("GET", "/v1/model").status, client("GET", "/health").status) == (401, 401, 200)
    assert client.log.getvalue().count("keys_failed") == 1
    if withdraw == "folder":
        file.rmdir()
    file.unlink(missing_ok=True)
    assert allowed(client, make_key(file, name="new")) == 200
    assert allowed(client, key) == 401
    assert "keys_changed" in client.log.getvalue()


def test_a_wrong_line_gives_no_key_and_the_others_count(serve, folder, tmp_path):
    file = tmp_path / "keys.txt"
    key = make_key(file, name="anna")
    client = serve({"shop": folder}, keys=file)
    file.write_text(file.read_text() + "sha256:12")
    assert allowed(client, key) == 200
    assert "line 3: this is not a line of a key file" in client.log.getvalue()


def test_a_file_that_changes_within_one_time_stamp_is_read_again(tmp_path):
    file = tmp_path / "keys.txt"
    key, other = make_key(file, name="anna"), make_key(tmp_path / "other", name="bert")
    keys = KeyFile(file, JsonLog(io.StringIO()))
    before = file.stat()
    file.write_text((tmp_path / "other").read_text())  # as long as the other, and of the same time
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert keys.current().find(key.encode()) is None
    assert keys.current().find(other.encode()).name == "bert"


def test_the_log_says_it_while_no_request_comes(serve, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("labelwise.serve.app.KEY_SECONDS", 0.01)
    file = tmp_path / "keys.txt"
    make_key(file, name="anna")
    client = serve({"shop": folder}, keys=file)

    async def live():
        async with client.app._lifespan(client.app.api):
            file.unlink()
            await asyncio.sleep(0.1)

    client.runner.run(live())
    assert client.log.getvalue().count("keys_failed") == 1


@pytest.mark.parametrize("rest", ["", "# API keys of label", "sha2", "sha256:12ab", f"sha256:{'0' * 64} us", "old"])
def test_a_key_is_added_to_an_empty_or_cut_off_file(tmp_path, rest):
    file = tmp_path / "keys.txt"
    if rest == "old":
        old = make_key(file, name="old")
        file.write_text(file.read_text()[:-1])  # without the line end
    else:
        file.write_text(rest)
    file.chmod(0o640)
    key = make_key(file, name="anna")
    ring = Keyring.read(file)
    assert ring.find(key.encode()).name == "anna"
    assert len(ring.keys) == 1 + (rest == "old")
    if rest == "old":
        assert ring.find(old.encode()).name == "old"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["keys.txt"]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "keys.txt"
    make_key(file, name="anna")
    before = file.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for target in (file, tmp_path / "new.txt"):
        with pytest.raises(StorageError, match=r"the key cannot be stored \(No space left on device\)"):
            make_key(target, name="bert")
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["keys.txt"]


def test_a_link_to_a_key_file_stays_a_link(tmp_path):
    file, link = tmp_path / "keys.txt", tmp_path / "link"
    make_key(file, name="anna")
    link.symlink_to(file)
    make_key(link, name="bert")
    assert link.is_symlink()
    assert [key.name for key in Keyring.read(file).keys] == ["anna", "bert"]
