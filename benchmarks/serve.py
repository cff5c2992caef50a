"""Measures requests per second and latency of `labelwise serve`, also with ten times the load.

    python benchmarks/serve.py --seconds 60 --check
    python benchmarks/serve.py --seconds 60 --overload 10 --check

The server runs in its own process, with a linear model of the generated shop (or --model). This process sends requests
over loopback, one text each, on keep-alive connections; a connection sends the next request when it has the answer. Two
cores are enough: one for each process. --overload 10 then opens ten times as many connections, which ignore
Retry-After. Each of them waits for its answer, so a slow server gets fewer requests. With --open requests are sent at
ten times the rate that was answered before, on 960 connections (the server takes 1,000), whether answers come or not;
"unsent" counts requests for which no connection was free. One process cannot send ten times the requests that a linear
model answers for short texts, so make the texts longer:

    python benchmarks/serve.py --seconds 60 --overload 10 --open --copies 100 --check
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path

import numpy as np

from labelwise import LinearTree, generate_shop

REQUESTS_PER_SECOND, P99_MS, OVERLOAD_TIMES, GROWTH = 2_000, 20.0, 3.0, 1.05


class Connection(asyncio.Protocol):
    """Sends a request, waits for the answer, sends the next request."""

    def __init__(self, load: "Load", start: int) -> None:
        self.load, self.at, self.buffer, self.sent = load, start, b"", 0.0

    def connection_made(self, transport) -> None:
        self.transport = transport
        if self.load.open:
            self.load.idle.append(self)
        else:
            self.ask()

    def ask(self) -> None:
        self.at = (self.at + 1) % len(self.load.requests)
        self.sent = time.perf_counter()
        self.transport.write(self.load.requests[self.at])

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = int(re.search(rb"content-length: (\d+)", self.buffer[:head])[1])
        if len(self.buffer) < head + 4 + length:
            return
        self.load.answered(int(self.buffer[9:12]), time.perf_counter() - self.sent)
        self.buffer = self.buffer[head + 4 + length :]
        if self.load.stop:
            self.transport.close()
        elif self.load.open:
            self.load.idle.append(self)
        else:
            self.ask()

    def connection_lost(self, error) -> None:
        if not self.load.stop:
            self.load.answered("lost", 0.0)


class Load:
    """Connections that keep a server busy, and their measurements after the warm-up."""

    def __init__(self, texts: list[str], port: int, top_k: int, rate: float = 0.0) -> None:
        self.port, self.stop, self.counting, self.rate, self.open = port, False, False, rate, rate > 0
        self.idle: deque[Connection] = deque()
        self.statuses: Counter[int | str] = Counter()
        self.seconds: list[float] = []
        bodies = [json.dumps({"text": text, "top_k": top_k}).encode() for text in texts]
        head = "POST /v1/suggest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        self.requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]

    def answered(self, status: int | str, seconds: float) -> None:
        if self.counting:
            self.statuses[status] += 1
            if status == 200:
                self.seconds.append(seconds)

    async def run(self, connections: int, seconds: float, warm_up: float, pid: int) -> dict:
        loop = asyncio.get_running_loop()
        for number in range(connections):
            await loop.create_connection(lambda at=37 * number: Connection(self, at), "127.0.0.1", self.port)
        pacing = loop.create_task(self.pace()) if self.open else None
        await asyncio.sleep(warm_up)
        self.counting = True
        start, cpu, own, memory = time.perf_counter(), cpu_seconds(pid), time.process_time(), []
        while time.perf_counter() - start < seconds:
            memory.append(resident_mib(pid))
            await asyncio.sleep(min(1.0, max(0.01, seconds / 10)))
        wall = time.perf_counter() - start
        self.counting = False
        result = {
            "connections": connections,
            "seconds": round(wall, 1),
            "answers": {str(status): count for status, count in sorted(self.statuses.items(), key=str)},
            "accepted_per_s": round(self.statuses[200] / wall),
            "asked_per_s": round(sum(self.statuses.values()) / wall),
            "server_cpu": round((cpu_seconds(pid) - cpu) / wall, 2),
            "client_cpu": round((time.process_time() - own) / wall, 2),
            "memory_mib": [round(memory[0]), round(max(memory)), round(memory[-1])],
        }
        for name, share in (("p50_ms", 50), ("p99_ms", 99), ("p99.9_ms", 99.9)):
            result[name] = round(float(np.percentile(self.seconds, share)) * 1000, 2) if self.seconds else None
        self.stop = True
        if pacing is not None:
            pacing.cancel()
        await asyncio.sleep(0.5)
        for connection in self.idle:
            connection.transport.close()
        return result

    async def pace(self) -> None:
        """Send at a constant rate, whatever is answered; a request without a free connection counts as unsent."""
        start, sent = time.perf_counter(), 0
        while True:
            due = int((time.perf_counter() - start) * self.rate)
            for _ in range(due - sent):
                if self.idle:
                    self.idle.popleft().ask()
                elif self.counting:
                    self.statuses["unsent"] += 1
            sent = due
            await asyncio.sleep(0.001)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


@contextlib.contextmanager
def server(model: Path, options: list[str]):
    """A server on a free port: its process and the port."""
    command = [sys.executable, "-m", "labelwise", "serve", str(model), "--port", "0", *options]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            port = None
            while port is None:
                time.sleep(0.2)
                log.seek(0)
                found = re.search(r'"listening".*"port": (\d+)', log.read())
                port = int(found[1]) if found else None
                if process.poll() is not None:
                    log.seek(0)
                    sys.exit(f"the server ended: {log.read()[-500:]}")
            yield process, port
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a model folder; one of 20,000 generated products if not given")
    parser.add_argument("--texts", type=Path, help="one text per line; generated products if not given")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm-up", type=float, default=3)
    parser.add_argument("--connections", type=int, default=48)
    parser.add_argument("--top-k", type=int, default=5)
    parser.add_argument("--overload", type=int, default=0, help="then measure with this many times the connections")
    parser.add_argument("--open", action="store_true", help="overload by a constant rate, not by more connections")
    parser.add_argument("--copies", type=int, default=1, help="join this many texts to one")
    parser.add_argument("--serve", default="", help="more options of labelwise serve, as one string")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    options = parser.parse_args()
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        shop = generate_shop(20_000, 5_000) if options.model is None or options.texts is None else {}
        model = options.model
        if model is None:
            model, train = Path(folder) / "model", shop["train"]
            fitted = LinearTree().fit(train.texts, train.Y, label_names=train.labels, validation=shop["test"])
            fitted.save(model)
        texts = options.texts.read_text(encoding="utf-8").splitlines() if options.texts else shop["test"].texts
        if options.copies > 1:
            texts = [" ".join(texts[(at + k) % len(texts)] for k in range(options.copies)) for at in range(500)]
        with server(model, options.serve.split()) as (process, port):
            measure = (options.seconds, options.warm_up, process.pid)
            normal = asyncio.run(Load(texts, port, options.top_k).run(options.connections, *measure))
            print(json.dumps({"normal": normal}))
            if normal["accepted_per_s"] < REQUESTS_PER_SECOND:
                missed.append(f"{normal['accepted_per_s']:,} requests/s are under {REQUESTS_PER_SECOND:,}")
            if normal["p99_ms"] >= P99_MS:
                missed.append(f"a p99 of {normal['p99_ms']} ms is not under {P99_MS} ms")
            if options.overload:
                many = options.connections * options.overload
                rate = normal["accepted_per_s"] * options.overload if options.open else 0
                many = 960 if options.open else many
                over = asyncio.run(Load(texts, port, options.top_k, rate).run(many, *measure))
                print(json.dumps({"overload": over}))
                first, most, _ = over["memory_mib"]
                if process.poll() is not None or set(over["answers"]) - {"200", "503", "unsent"}:
                    missed.append(f"under overload the answers were {over['answers']}")
                if most > first * GROWTH:
                    missed.append(f"memory grew from {first} to {most} MiB")
                if over["p99_ms"] >= OVERLOAD_TIMES * normal["p99_ms"]:
                    missed.append(
                        f"the accepted wait {over['p99_ms']} ms (p99), {OVERLOAD_TIMES:g} times normal or more"
                    )
        if process.returncode != 0:
            missed.append(f"the server ended with {process.returncode}")
    print(
        f"{normal['accepted_per_s']:,} requests/s on {options.connections} connections, p50 {normal['p50_ms']} ms, p99 "
        f"{normal['p99_ms']} ms, {normal['server_cpu']} cores of the server; "
        + ("; ".join(missed) if missed else "all targets are met")
    )
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
