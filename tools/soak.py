#!/usr/bin/env python3
"""Puts a mixed load on a server for some minutes, and checks that memory and descriptors stay flat.

    python tools/soak.py --minutes 60

Clients with kept connections ask for suggestions, labels, the model, metrics and the page; some texts are long, some
requests are wrong, some explain. Meanwhile slow clients send heads and bodies byte by byte, others leave without
reading; keys are withdrawn and made; the model is loaded again; and every few minutes ten times as many clients come
for some seconds. Failures are answers other than 200, 4xx that were asked for, and 503 with Retry-After; requests
without an answer; errors in the log; a withdrawn key that is accepted for longer than a second; a server that does
not end well on SIGTERM; and memory or descriptors that grow.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from served import ROOT, ServerProcess, finish

sys.path.insert(0, str(ROOT / "src"))

from labelwise.serve.keys import make_key

CLIENTS, OVERLOAD, OVERLOAD_SECONDS = 16, 160, 10.0
"""Busy clients, and those that come together for some seconds."""
THINK_SECONDS = 0.05
MORE_MB, MORE_DESCRIPTORS = 30, 8
"""What the server may hold at the end more than after the first overload."""
TEXT = "a mirror for the bathroom cheap red shoe oak picture frame 40 cm cotton pillow läufer"
WORDS = TEXT.split()


@dataclass
class Load:
    """What all clients share."""

    port: int
    key: str
    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    overload: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str, failure: str = "") -> None:
        """Note the outcome of a request."""
        with self.lock:
            self.statuses[what] += 1
            if failure and len(self.failures) < 100:
                self.failures.append(failure)


def wanted(random_: random.Random) -> tuple[str, str, bytes, tuple[int, ...]]:
    """Method, path, body and the statuses that are right."""

    def text(n_words: int) -> str:
        return " ".join(random_.choice(WORDS) for _ in range(n_words))

    kind = random_.randrange(40)
    if kind < 26:
        fields = {"texts": [text(random_.randrange(1, 30)) for _ in range(random_.choice((1, 1, 1, 5)))], "top_k": 5}
        return "POST", "/v1/suggest", json.dumps(fields).encode(), (200,)
    if kind == 26:
        return "POST", "/v1/suggest", json.dumps({"text": text(8000)}).encode(), (200,)
    if kind == 27:
        return "POST", "/v1/suggest", json.dumps({"text": text(5), "explain": True, "top_k": 1}).encode(), (200,)
    if kind == 28:
        return "POST", "/v1/suggest", b"{" * random_.randrange(1, 2000), (400,)
    if kind == 29:
        return "POST", "/v1/suggest", json.dumps({"text": "x" * 200_000}).encode(), (422,)
    if kind == 30:
        return "GET", "/none", b"", (404,)
    paths = ("/v1/labels?q=a&limit=20", "/v1/model", "/metrics", "/", "/page.js", "/health", "/openapi.json")
    return "GET", random_.choice(paths), b"", (200,)


def busy(load: Load, seed: int, *, only_overload: bool = False) -> None:
    """A client that keeps its connection and asks again and again."""
    random_, connection = random.Random(seed), None
    while not load.stop.is_set():
        if only_overload and not load.overload.is_set():
            if connection is not None:  # the server would close it after 30 idle seconds
                connection.close()
                connection = None
            load.overload.wait(0.5)
            continue
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", load.port, timeout=60)
        method, path, body, right = wanted(random_)
        try:
            connection.request(method, path, body, {"X-API-Key": load.key, "Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            connection = None
            load.count("no answer", f"{method} {path}: {type(error).__name__}: {error}")
            continue
        fine = answer.status in right or (answer.status == 503 and answer.getheader("Retry-After"))
        load.count(str(answer.status), "" if fine else f"{method} {path}: {answer.status}")
        if answer.getheader("Connection") == "close":
            connection.close()
            connection = None
        if not only_overload:
            time.sleep(THINK_SECONDS * random_.random())


def slow(load: Load, seed: int) -> None:
    """A client that sends a head or a body byte by byte, or leaves without reading."""
    random_ = random.Random(seed)
    head = b"POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n"
    head += b"X-API-Key: " + load.key.encode() + b"\r\n"
    while not load.stop.is_set():
        kind = random_.randrange(3)
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", load.port), timeout=30) as connection:
            if kind == 2:
                connection.sendall((head + b'\r\n{"text": "a mirror"}') * 5)
                continue
            content = head if kind else head + b"\r\n" + b'{"text": "a mirror"}'
            for at in range(len(content)):
                connection.sendall(content[at : at + 1])
                if load.stop.wait(0.2):
                    return
            load.count("slow client: " + connection.recv(100)[9:12].decode("latin-1"))


def keys_and_versions(load: Load, file: Path, server: ServerProcess) -> None:
    """Make keys, withdraw them, and look how long they are accepted; touch the model, so that it is loaded again."""
    while not load.stop.wait(5):
        key = make_key(file, name="passing")
        if status(load.port, key) != 200:
            load.count("key", "a new key was refused")
        lines = [line for line in file.read_text().splitlines(keepends=True) if not line.endswith(" passing\n")]
        aside = file.with_suffix(".new")  # renamed, as `sed -i` does: a file that is empty for a moment lets nobody in
        aside.write_text("".join(lines))
        aside.replace(file)
        begin = time.monotonic()
        while status(load.port, key) == 200:
            if time.monotonic() - begin > 1:
                load.count("key", "a withdrawn key was accepted for over a second")
                break
        load.count("keys withdrawn")
        (server.model / "config.json").touch()


def status(port: int, key: str) -> int:
    """The status of a request with this key."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/v1/model", headers={"X-API-Key": key})
        return connection.getresponse().status
    finally:
        connection.close()


def run(server: ServerProcess, file: Path, key: str, minutes: float, seed: int) -> tuple[Load, list[dict[str, int]]]:
    """Put the load on the server, and look at it every ten seconds."""
    load, samples = Load(server.port, key), []
    clients = [threading.Thread(target=busy, args=(load, seed * 1000 + n)) for n in range(CLIENTS)]
    clients += [
        threading.Thread(target=busy, args=(load, seed * 1000 + 100 + n), kwargs={"only_overload": True})
        for n in range(OVERLOAD)
    ]
    clients += [threading.Thread(target=slow, args=(load, seed * 1000 + 500 + n)) for n in range(6)]
    clients.append(threading.Thread(target=keys_and_versions, args=(load, file, server)))
    for client in clients:
        client.start()
    begin = time.monotonic()
    seconds, every = 60 * minutes, max(30.0, 60 * minutes / 10)
    try:
        while (passed := time.monotonic() - begin) < seconds and server.alive():
            time.sleep(min(10.0, seconds / 10))
            if passed % every > every / 2 and samples and not samples[-1].get("after overload"):
                load.overload.set()
                time.sleep(OVERLOAD_SECONDS)
                load.overload.clear()
                time.sleep(2)
                samples.append({**server.resources(), "after overload": 1})
            elif passed % every <= every / 2 or not samples:
                samples.append(server.resources())
            print(f"{passed:.0f} s: {load.statuses.total():,} answers, {samples[-1]}", file=sys.stderr, flush=True)
    finally:
        load.stop.set()
        load.overload.set()
        for client in clients:
            client.join(90)
    time.sleep(2)
    samples.append(server.resources())
    return load, samples


def problems(server: ServerProcess, load: Load, samples: list[dict[str, int]]) -> list[str]:
    """What is wrong."""
    found = list(dict.fromkeys(load.failures))[:20]
    first = next((at for at, one in enumerate(samples) if one.get("after overload")), 0)
    early, last = samples[first], samples[-1]
    if not server.alive():
        return [*found, f"the server ended with {server.process.returncode}"]
    if early and last:
        if last["MB"] - early["MB"] > MORE_MB:
            found.append(f"memory grew from {early['MB']} to {last['MB']} MB")
        if last["descriptors"] - early["descriptors"] > MORE_DESCRIPTORS:
            found.append(f"descriptors grew from {early['descriptors']} to {last['descriptors']}")
    found += [f"in the log: {line}" for line in server.log() if line["event"] == "error"][:5]
    code = server.stop()
    return found if code == 0 else [*found, f"the server ended with {code} after SIGTERM"]


def main() -> int:
    """Run, print a summary, and return 1 if there is a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="how long to run")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the clients")
    parser.add_argument("--model", type=Path, help="folder of a model of your own; a small one is trained otherwise")
    parser.add_argument("--json", type=Path, help="file for the summary")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys.txt"
        key = make_key(file, name="soak")
        with ServerProcess("--keys", str(file), "--quiet", "--watch", "1", model=options.model) as server:
            load, samples = run(server, file, key, options.minutes, options.seed)
            found = problems(server, load, samples)
    summary = {
        "minutes": options.minutes,
        "failed": len(found),
        "problems": found,
        "answers": dict(sorted(load.statuses.items())),
        "MB": [one.get("MB") for one in samples],
        "descriptors": [one.get("descriptors") for one in samples],
        "threads": [one.get("threads") for one in samples],
    }
    return finish(summary, options.json, failed=len(found))


if __name__ == "__main__":
    sys.exit(main())
