"""The process itself: it listens, reloads on SIGHUP, drains on SIGTERM, and needs no torch."""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from tests.serve.conftest import fit

pytest.importorskip("uvicorn")

from labelwise.serve.keys import make_key
from labelwise.serve.middleware import SECURITY_HEADERS

# Forbids torch and all that needs it, then runs the command line.
BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "accelerate", "sklearn", "pandas"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from labelwise.cli import main
main(sys.argv[1:])
"""

QUIET_EVENTS = ("request", "uvicorn", "preparing_kernels")
BODY = b'{"text": "a mirror"}'
REQUEST = (
    b"POST /v1/suggest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
)
REQUEST %= (len(BODY), BODY)
LOWER_HEADERS = [(name, value.lower()) for name, value in SECURITY_HEADERS]


@contextlib.contextmanager
def started(folder, tmp_path, *options):
    """A server process, and a function that gives the lines of its log."""
    command = [sys.executable, "-c", BLOCKED, "serve", str(folder), "--port", "0", *options]
    log = tmp_path / "log.jsonl"
    with log.open("w") as out:
        process = subprocess.Popen(command, stderr=out)
    try:
        yield process, lambda: [json.loads(line) for line in log.read_text().splitlines()]
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def process(folder, tmp_path):
    moving = shutil.copytree(folder, tmp_path / "moving")
    with started(moving, tmp_path, "--watch", "0", "--wait-ms", "300") as (process, lines):
        yield process, moving, lines


def wait_for(lines, event):
    for _ in range(300):
        found = [line for line in lines() if line["event"] == event]
        if found:
            return found[-1]
        time.sleep(0.1)
    raise AssertionError(f"{event} never came: {lines()}")


def ask(port, **fields):
    body = json.dumps(fields).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/suggest", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.status, json.loads(answer.read())


CHUNKED = b"POST /v1/suggest HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
CHUNKED += b"transfer-encoding: chunked\r\n\r\n"


def raw(port, sent):
    """What comes back for bytes, until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        received = b""
        with contextlib.suppress(ConnectionError):  # it need not read all before it closes
            connection.sendall(sent)
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                received += part
        return received


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP on this system")
def test_start_reload_drain_and_stop(process):
    server, moving, lines = process
    port = wait_for(lines, "listening")["port"]
    status, first = ask(port, text="a mirror for the bathroom")
    assert (status, len(first["results"])) == (200, 1)
    assert re.fullmatch("[0-9a-f]{12}", first["version"])

    for sent, status, code in (
        (b"BREW coffee\r\n\r\n", b"400", b"invalid_http"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 400_000, b"431", b"too_large"),
        (b"GET /" + b"y" * 400_000, b"431", b"too_large"),
        (CHUNKED + b"1\r\n{\r\n0\r\n" + b"x: y\r\n" * 100_000, b"431", b"too_large"),
        (CHUNKED + b"1\r\n{\r\n0\r\nx: " + b"y" * 400_000, b"431", b"too_large"),
        (CHUNKED + b"1;" + b"y" * 400_000, b"431", b"too_large"),
    ):
        told = raw(port, sent)
        assert told[9:12] == status
        head = told.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
        assert all(b"%s: %s" % header in [line.lower() for line in head] for header in LOWER_HEADERS)
        assert b'{"error": {"code": "' + code in told

    body = b"".join(b"1;x=y\r\n%c\r\n" % letter for letter in b'{"text":"a mirror"}')
    assert raw(port, CHUNKED + body + b"0\r\nx: y\r\nhost: other\r\n\r\n")[9:12] == b"200"

    fit(moving, 700)
    server.send_signal(signal.SIGHUP)
    assert wait_for(lines, "reloaded")["version"] != first["version"]
    assert ask(port, text="a mirror")[1]["version"] != first["version"]

    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(port, text="a mirror")))
    asking.start()
    time.sleep(0.1)  # it waits for others to join its batch
    server.send_signal(signal.SIGTERM)
    asking.join(20)
    assert [status for status, _ in answers] == [200]
    assert server.wait(20) == 0
    assert [line["event"] for line in lines() if line["event"] not in QUIET_EVENTS] == [
        "ready", "listening", "reloaded", "draining", "stopped",
    ]  # fmt: skip


def read_answer(connection, received=b""):
    """The next answer of a connection: its head, its body, and what follows; None if the connection was closed."""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            assert not received
            return None
        received += part
    head, _, rest = received.partition(b"\r\n\r\n")
    size = int(re.search(rb"content-length: (\d+)", head)[1])
    while len(rest) < size:
        rest += connection.recv(65536)
    return head, rest[:size], rest[size:]


def test_what_was_accepted_is_answered_after_sigterm(folder, tmp_path):
    """Clients that keep their connections, with pauses or without: none finds its connection closed for an answer."""
    lost, answered = [], []

    def busy(connection, pause):
        while True:
            time.sleep(pause)
            connection.sendall(REQUEST)
            try:
                found = read_answer(connection)
            except ConnectionError:
                found = None
            if found is None:
                lost.append(connection)
                return
            answered.append(found[0][9:12])
            if b"connection: close" in found[0]:
                return

    def idle(connection):
        connection.sendall(REQUEST)
        read_answer(connection)
        assert read_answer(connection) is None  # an end, no reset

    with started(folder, tmp_path, "--watch", "0") as (server, lines):
        port = wait_for(lines, "listening")["port"]
        connections = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(16)]
        clients = [
            threading.Thread(target=busy, args=(connection, pause))
            for connection, pause in zip(connections, [0] * 7 + [0.2] * 7, strict=False)
        ]
        clients += [threading.Thread(target=idle, args=(connection,)) for connection in connections[14:]]
        for client in clients:
            client.start()
        time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(20)
        assert server.wait(20) == 0
        for connection in connections:
            connection.close()
    assert lost == []
    assert set(answered) == {b"200"}


def test_pipelined_requests(folder, tmp_path):
    with started(folder, tmp_path, "--watch", "0", "--wait-ms", "100") as (server, lines):
        port = wait_for(lines, "listening")["port"]
        for _ in range(5):  # the client leaves before the first answer
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(REQUEST * 6)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(REQUEST * 3 + b"BREW coffee\r\n\r\n")
            rest, statuses = b"", []
            while found := read_answer(connection, rest):
                statuses.append(found[0][9:12])
                rest = found[2]
        assert statuses == [b"200", b"200", b"200", b"400"]
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(REQUEST * 3)
            time.sleep(0.05)
            server.send_signal(signal.SIGTERM)
            rest, statuses = b"", []
            while found := read_answer(connection, rest):
                statuses.append((found[0][9:12], b"connection: close" in found[0]))
                rest = found[2]
        assert statuses == [(b"200", False), (b"200", False), (b"200", True)]
        assert server.wait(20) == 0
        told = lines()
    assert not [line for line in told if line["event"] == "error" or line.get("level") == "error"]
    assert not [line for line in told if line.get("status", 0) >= 500]


def test_keys_and_hosts_of_a_running_server(folder, tmp_path):
    file = tmp_path / "keys.txt"
    key = make_key(file, name="anna")
    with started(folder, tmp_path, "--keys", str(file)) as (_, lines):
        port = wait_for(lines, "listening")["port"]
        asked = REQUEST.replace(b"localhost", b"evil.example\r\nx-api-key: " + key.encode())
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(asked)
            assert read_answer(connection)[0][9:12] == b"200"  # a page has no key, so any name will do
            file.unlink()
            connection.sendall(asked)
            assert read_answer(connection)[0][9:12] == b"401"
    with started(folder, tmp_path) as (_, lines):
        port = wait_for(lines, "listening")["port"]
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(REQUEST.replace(b"localhost", b"evil.example"))
            head, body, _ = read_answer(connection)
        assert head[9:12] == b"421"
        assert b"unknown_host" in body
