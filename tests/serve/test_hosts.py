"""The header Host: a page that reaches the server by a name of its own is refused."""

import pytest

from labelwise.errors import UsageError
from labelwise.serve.hosts import AllowedHosts
from labelwise.serve.request_error import RequestError


def accepts(hosts, *given):
    try:
        hosts.check([(b"accept", b"*/*"), *((b"host", one.encode("latin-1")) for one in given)])
    except RequestError as error:
        return error.status != 421
    return True


def test_a_server_on_this_machine_without_keys_answers_to_localhost():
    hosts = AllowedHosts.of("127.0.0.1", (), keys=False)
    for good in ("localhost", "LOCALHOST:8000", "localhost.", "127.0.0.1:80", "127.8.8.8", "[::1]:8000", "[::1]"):
        assert accepts(hosts, good), good
    for bad in (
        *("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1"),
        *("", "2130706433", "0x7f.1", "[::2]", "localhost@evil.example", "evil.example#localhost", "\xff"),
    ):
        assert not accepts(hosts, bad), bad
    assert accepts(hosts)  # a program that names no host is no browser
    assert not accepts(hosts, "localhost", "evil.example")


def test_the_name_that_the_server_was_started_with():
    assert accepts(AllowedHosts.of("127.0.1.1", (), name="myhost", keys=False), "myhost:8000")
    assert not accepts(AllowedHosts.of("::1", (), name="::1", keys=False), "")


def test_given_names():
    hosts = AllowedHosts.of("127.0.0.1", ("Labels.Example.org", "[fe80::1]"), keys=True)
    assert accepts(hosts, "labels.example.org:443")
    assert accepts(hosts, "[fe80::1]:8000")
    assert accepts(hosts, "localhost")
    assert not accepts(hosts, "example.org")
    assert accepts(AllowedHosts.of("127.0.0.1", ("*",), keys=False), "evil.example")
    for wrong in ("http://example.org", "example.org:8000", "a b", ""):
        with pytest.raises(UsageError, match=r"--allowed-hosts .*give names or addresses without a port"):
            AllowedHosts.of("127.0.0.1", (wrong,), keys=False)


@pytest.mark.parametrize(("address", "keys"), [("0.0.0.0", False), ("127.0.0.1", True), ("example.org", False)])
def test_every_name_is_accepted_where_keys_protect_or_the_names_are_not_known(address, keys):
    assert accepts(AllowedHosts.of(address, (), keys=keys), "any.example")


@pytest.mark.parametrize("path", ["/", "/v1/model", "/health", "/metrics", "/none"])
def test_every_path_is_refused(serve, folder, path):
    client = serve({"shop": folder}, hosts=AllowedHosts.of("localhost", (), keys=False))
    answer = client("GET", path, headers=[(b"host", b"evil.example")])
    assert (answer.status, answer.error[0]) == (421, "unknown_host")
    assert client("GET", path, headers=[(b"host", b"localhost:8000")]).status != 421
    assert "421" in client("GET", "/metrics").body.decode()
