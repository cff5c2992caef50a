#!/usr/bin/env python3
"""Sends malformed requests to a server in a process of its own, and watches its answers, memory and descriptors.

    python tools/fuzz/http_bodies.py --cases 10000 --seed 7

A case is one request: JSON of every kind, damaged JSON, bytes, nested brackets, wrong lengths and types, chunks, odd
heads, several requests at once, or a client that leaves. As it should be: an answer with a status below 500 and, if it
is an error, one sentence; or a connection that is closed after bytes that are no request. Failures are other answers,
no answer within five seconds, errors in the log, a process that ends, and memory or descriptors that grow.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from served import ServerProcess, finish

LIMIT_SECONDS, UNFINISHED_SECONDS = 5.0, 0.2
"""Seconds for an answer; for a request that is not complete, which the server rightly waits for."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
MORE_MB, MORE_DESCRIPTORS = 100, 20
"""What a server may hold at the end more than after the first tenth of the cases."""
FIELDS = ("text", "texts", "top_k", "min_probability", "explain", "model", "", "x", "\ud800", "__proto__")
TEXTS = ("a mirror", "", "\x00", "\x1b[31m", "\u202e", "é" * 50, "\ud800", "🍎" * 9, "x" * 20_000, "=cmd|' /C calc'!A0")
NUMBERS = (0, -1, 1, 10, 1000, 1001, 2**31, 2**63, 2**64, -(2**70), 0.5, 1e308, -0.0, float("nan"), float("inf"))
PATHS = (
    "/v1/suggest",
    "/v1/labels?q=",
    "/v1/model?model=",
    "/metrics?",
    "/",
    "/health?",
    "/v1/reload",
    "/openapi.json?",
)


@dataclass
class Result:
    """What became of all cases."""

    outcomes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, bytes]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    resources: list[dict[str, int]] = field(default_factory=list)
    seconds: float = 0.0


# ---------------------------------------------------------------------- requests


def value(random_: random.Random, depth: int = 0) -> object:
    """Any JSON value, with values at the limits of what is allowed."""
    kind = random_.randrange(9 if depth < 3 else 5)
    if kind == 0:
        return random_.choice((None, True, False))
    if kind in (1, 2):
        return random_.choice(NUMBERS)
    if kind in (3, 4):
        return random_.choice(TEXTS)
    if kind in (5, 6):
        return [value(random_, depth + 1) for _ in range(random_.choice((0, 1, 2, 5, 300)) if depth == 0 else 2)]
    return {random_.choice(FIELDS): value(random_, depth + 1) for _ in range(random_.randrange(5))}


def near(random_: random.Random) -> bytes:
    """A request that is nearly right."""
    fields: dict[str, object] = {"text": "a mirror for the bathroom", "top_k": 3}
    for _ in range(random_.randrange(3)):
        fields[random_.choice(FIELDS)] = value(random_, 1)
    return written(fields)


def written(thing: object) -> bytes:
    """JSON as Python writes it, NaN and halves of characters included."""
    return json.dumps(thing, ensure_ascii=random.getrandbits(1) == 0).encode("utf-8", "surrogatepass")


def body(random_: random.Random) -> bytes:
    """The body of a request."""
    kind = random_.randrange(10)
    if kind < 4:
        return near(random_)
    if kind < 6:
        return written(value(random_))
    if kind < 8:
        damaged = bytearray(near(random_))
        for _ in range(random_.randrange(1, 4)):
            at = random_.randrange(len(damaged) + 1)
            damaged[at : at + random_.randrange(4)] = random_.randbytes(random_.randrange(4))
        return bytes(damaged)
    if kind == 8:
        return random_.choice((b"[", b'{"text":', b'{"texts":[', b"\xff")) * random_.choice((1, 10, 1000, 100_000))
    return random_.randbytes(random_.randrange(300))


def request(random_: random.Random) -> bytes:
    """A whole request as bytes."""
    content, path = body(random_), "/v1/suggest"
    method = "POST"
    if random_.randrange(5) == 0:
        path = random_.choice(PATHS) + random_.choice(
            ("", "%00", "%ff", "a=b&" * 100, "%F0%9F%8D%8E", "..%2f..", "offset=-1")
        )
        method = random_.choice(("GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH", "TRACE"))
    kinds = ("application/json",) * 12 + ("text/plain", "", "application/json; charset=utf-16", "APPLICATION/JSON")
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Type: {random_.choice(kinds)}"]
    kind = random_.randrange(24)
    if kind == 0:
        lengths = (len(content) + 7, max(len(content) - 3, 0), 10**12, 10**30, -1)
        head.append(f"Content-Length: {random_.choice(lengths)}")
    elif kind == 1:
        pieces = [content[at : at + 50] for at in range(0, len(content), 50)]
        content = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        if random_.randrange(2):
            content = content.replace(b"\r\n", b"\n", 1) + random_.randbytes(3)
        head.append("Transfer-Encoding: chunked")
    elif kind == 2:
        head += [f"Content-Length: {len(content)}", "Transfer-Encoding: chunked"]
    elif kind == 3:
        head += [f"X-{n}: {'y' * random_.choice((1, 500))}" for n in range(random_.choice((10, 200)))]
        head.append(f"Content-Length: {len(content)}")
    elif kind == 4:
        head += [random_.choice((": no name", "no colon", "Bad\x00Name: 1", "Expect: 100-continue", "Upgrade: h2c"))]
        head.append(f"Content-Length: {len(content)}")
    else:
        head.append(f"Content-Length: {len(content)}")
    whole = "\r\n".join([*head, "", ""]).encode("latin-1") + content
    kind = random_.randrange(30)
    if kind == 0:
        return whole[: random_.randrange(len(whole))]
    if kind == 1:
        return whole * random_.randrange(2, 6)
    if kind == 2:
        return whole + random_.randbytes(random_.randrange(1, 30))
    return whole


# ---------------------------------------------------------------------- answers


def send(port: int, content: bytes, random_: random.Random) -> tuple[str, bytes]:
    """The outcome of a request, and the answer."""
    received, whole = b"", whole_request(content)
    head_alone = content.startswith(b"HEAD ")
    limit = LIMIT_SECONDS if whole else UNFINISHED_SECONDS
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=limit) as connection:
            with contextlib.suppress(ConnectionError):  # it need not read all before it refuses
                connection.sendall(content)
            if random_.randrange(20) == 0:
                return "left", b""  # without waiting for the answer
            if random_.randrange(10) == 0:
                with contextlib.suppress(OSError):  # the server may have closed the connection already
                    connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while not complete(received, head_alone):
                    part = connection.recv(1 << 16)
                    if not part:
                        break
                    received = (received + part).removeprefix(CONTINUE)
    except TimeoutError:
        return ("no answer", received) if whole or received else ("waits for the rest", b"")
    except OSError as error:
        return f"no connection: {error}", received
    return judge(received, head_alone), received


def whole_request(content: bytes) -> bool:
    """Whether a request has all the bytes that its head promises."""
    head, end, rest = content.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (-?\d+)", head.lower())
    if b"chunked" in head.lower():
        return content.endswith(b"\r\n0\r\n\r\n")
    return bool(end) and (found is None or len(rest) >= int(found[1]))


def complete(received: bytes, head_alone: bool) -> bool:
    """Whether an answer has come to its end; that of HEAD has no body."""
    head, end, rest = received.partition(b"\r\n\r\n")
    if not end:
        return False
    found = re.search(rb"content-length: (\d+)", head.lower())
    return head_alone or found is None or len(rest) >= int(found[1])


def judge(received: bytes, head_alone: bool = False) -> str:
    """Whether an answer is as it should be; that of HEAD has no body."""
    if not received:
        return "closed"
    head, _, rest = received.partition(b"\r\n\r\n")
    status = head[9:12].decode("latin-1")
    if not status.isdigit() or not 200 <= int(status) < 500:
        return f"status {status}" if status != "503" else "busy"
    if b"x-content-type-options: nosniff" not in head.lower():
        return "no security headers"
    if int(status) >= 400 and rest and not head_alone:
        size = int(re.search(rb"content-length: (\d+)", head.lower())[1])  # type: ignore[index]
        try:
            error = json.loads(rest[:size])["error"]
        except (ValueError, KeyError, TypeError):
            return "an error of another shape"
        if sorted(error) != ["code", "message"] or not error["message"].endswith(".") or "\n" in error["message"]:
            return "an error of another shape"
    return "answered" if int(status) < 400 else "refused"


GOOD = ("answered", "refused", "closed", "left", "waits for the rest", "busy")


def run(
    server: ServerProcess, *, cases: int | None, minutes: float | None, seed: int, progress: Callable[[str], None]
) -> Result:
    """Send cases until their number or the time is reached."""
    result, begin = Result(), time.monotonic()
    until = begin + 60 * minutes if minutes else float("inf")
    total = cases or (10_000 if minutes is None else sys.maxsize)
    number, next_look = 0, 1
    while number < total and time.monotonic() < until and server.alive():
        random_ = random.Random(seed * 1_000_003 + number)
        random.seed(seed * 1_000_003 + number)
        content = request(random_)
        outcome, received = send(server.port, content, random_)
        result.outcomes[outcome] += 1
        result.statuses[received[9:12].decode("latin-1")] += 1
        if outcome not in GOOD:
            result.failures.append((number, outcome, content))
        number += 1
        if number == next_look:
            result.resources.append(server.resources())
            progress(f"{number:,} cases, {len(result.failures)} failures, {result.resources[-1]}")
            next_look = max(number + 1, min(number * 2, number + 1000))
    result.seconds = time.monotonic() - begin
    time.sleep(1)  # connections that clients left are closed
    result.resources.append(server.resources())
    result.problems = problems(server, result, number)
    return result


def problems(server: ServerProcess, result: Result, number: int) -> list[str]:
    """What is wrong with the server as a whole."""
    if not server.alive():
        return [f"the server ended with {server.process.returncode} after {number} cases"]
    found = [f"error in the log: {line}" for line in server.log() if line["event"] == "error"][:5]
    early = next((one for one in result.resources[1:] if one), None)
    last = result.resources[-1]
    if early and last and number > 1000:
        early = result.resources[min(8, len(result.resources) - 2)]
        if last["MB"] - early["MB"] > MORE_MB:
            found.append(f"memory grew from {early['MB']} to {last['MB']} MB")
        if last["descriptors"] - early["descriptors"] > MORE_DESCRIPTORS:
            found.append(f"descriptors grew from {early['descriptors']} to {last['descriptors']}")
    outcome, _ = send(
        server.port, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", random.Random(1)
    )
    return [*found, *([] if outcome == "answered" else [f"/health afterwards: {outcome}"])]


def main() -> int:
    """Run, print a summary, and return 1 if there is a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, help="number of cases; 10,000 without --minutes")
    parser.add_argument("--minutes", type=float, help="how long to run")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the run")
    parser.add_argument("--json", type=Path, help="file for the summary")
    parser.add_argument("--keep", type=Path, help="folder for failing requests")
    options = parser.parse_args()
    with ServerProcess("--watch", "0", "--quiet", "--wait-ms", "0") as server:
        result = run(
            server,
            cases=options.cases,
            minutes=options.minutes,
            seed=options.seed,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    for number, outcome, content in result.failures[:20]:
        print(f"case {number}: {outcome}: {content[:200]!r}")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        for number, _, content in result.failures[:200]:
            (options.keep / f"{options.seed}-{number}.http").write_bytes(content)
    failed = len(result.failures) + len(result.problems)
    summary = {
        "cases": result.outcomes.total(),
        "failed": failed,
        "outcomes": dict(result.outcomes),
        "statuses": dict(result.statuses),
        "problems": result.problems,
        "resources": [result.resources[0], result.resources[-1]],
        "seconds": round(result.seconds, 1),
    }
    return finish(summary, options.json, failed=failed)


if __name__ == "__main__":
    sys.exit(main())
