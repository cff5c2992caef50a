"""A server in a process of its own, for the programs that put load on it: its port, memory, descriptors and log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 120.0
FIT = """
import sys
from labelwise import LinearTree, generate_shop
train = generate_shop(600, 200)["train"]
LinearTree(threads=1).fit(train.texts, train.Y, label_names=train.labels).save(sys.argv[1])
"""


def finish(summary: dict[str, Any], file: Path | None, *, failed: int) -> int:
    """Print a summary, write it to a file if one is given; the exit code."""
    text = json.dumps(summary, indent=1)
    print(text)
    if file is not None:
        file.write_text(text + "\n")
    return 1 if failed else 0


class ServerProcess:
    """`labelwise serve` with a small model, or a given one, on a free port; ends with the block."""

    def __init__(self, *options: str, model: Path | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="labelwise-served-")
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        self._log = Path(self._folder.name) / "log.jsonl"
        if model is None:
            model = Path(self._folder.name) / "model"
            subprocess.run([sys.executable, "-c", FIT, str(model)], check=True, env=self._environment)
        self.model = model
        self._options = options
        self.port = 0

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "labelwise", "serve", f"model={self.model}", "--port", "0", *self._options]
        with self._log.open("w") as out:
            self.process = subprocess.Popen(command, stderr=out, env=self._environment)
        until = time.monotonic() + START_SECONDS
        while not self.port:
            found = [line["port"] for line in self.log() if line["event"] == "listening"]
            self.port = found[0] if found else 0
            if self.process.poll() is not None or time.monotonic() > until:
                told = self._log.read_text()
                self.__exit__(None, None, None)
                raise SystemExit(f"the server did not start: {told}")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log so far."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.endswith("}")]

    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def resources(self) -> dict[str, int]:
        """Memory in MB, open descriptors and threads, where the system has /proc."""
        folder = Path(f"/proc/{self.process.pid}")
        try:
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            descriptors = len(list((folder / "fd").iterdir()))
        except OSError:
            return {}
        return {
            "MB": int(status["VmRSS"].split()[0]) // 1024,
            "descriptors": descriptors,
            "threads": int(status["Threads"]),
        }

    def stop(self, seconds: float = 60.0) -> int:
        """End the server as an operator would, and return its exit code."""
        self.process.terminate()
        return self.process.wait(seconds)
