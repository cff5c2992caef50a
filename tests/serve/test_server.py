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


@pytest.fixture
def process(folder, tmp_path):
    moving = shutil.copytree(folder, tmp_path / "moving")
    command = [sys.executable, "-c", BLOCKED, "serve", str(moving), "--port", "0", "--watch", "0", "--wait-ms", "300"]
    log = tmp_path / "log.jsonl"
    with log.open("w") as out:
        process = subprocess.Popen(command, stderr=out)
    try:
        yield process, moving, lambda: [json.loads(line) for line in log.read_text().splitlines()]
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


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
    ):
        told = raw(port, sent)
        assert told[9:12] == status
        assert b'{"error": {"code": "' + code in told

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
    assert [line["event"] for line in lines() if line["event"] not in ("request", "uvicorn")] == [
        "ready", "listening", "reloaded", "draining", "stopped",
    ]  # fmt: skip
