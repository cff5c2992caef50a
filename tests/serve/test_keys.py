"""API keys: printed once, kept as hashes, asked for where they should be."""

import hashlib
import stat

import pytest

from labelwise.errors import DataError, UsageError
from labelwise.serve.keys import Keyring, make_key
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


def test_removed_keys_and_reload_without_keys(serve, folder, tmp_path):
    file = tmp_path / "keys.txt"
    key = make_key(file, name="anna")
    client = serve({"shop": folder}, keys=file)
    headers = (*JSON, (b"x-api-key", key.encode()))
    assert client.suggest(text="a", headers=headers).status == 200
    file.unlink()
    make_key(file, name="bert")
    client.runner.run(client.app.reload())
    assert client.suggest(text="a", headers=headers).status == 401
    file.write_text("garbage\n")
    client.runner.run(client.app.reload())  # the keys that were good stay
    assert client.suggest(text="a", headers=headers).status == 401
    assert "keys_failed" in client.log.getvalue()
    answer = serve({"shop": folder})("POST", "/v1/reload")
    assert (answer.status, answer.error[0]) == (403, "no_admin")
