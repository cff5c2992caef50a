"""Runs the blocks of a page, one after the other, in a folder of its own."""

from __future__ import annotations

import io
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import redirect_stderr, redirect_stdout
from itertools import chain, zip_longest
from pathlib import Path

from labelwise.cli import main
from tests.docs.blocks import Block

ROOT = Path(__file__).parents[2]
PORT = re.compile(r"(?<=localhost:)8000|(?<=127\.0\.0\.1:)8000|(?<=--port )8000")
SHELL = set("|&;<>$`(*")
NUMBER, ANY_NUMBER = re.compile(r"\d+\.\d+"), re.compile(r"\d[\d,]*(?:\.\d+)?")
UNITS = 1.001
"""How far a number with a decimal point may be off, in units of the last digit that the page shows: processors round
differently. A little more than one, for the rounding of the difference itself."""
ENVIRONMENT = {"COLUMNS": "110", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}


class Session:
    """Names, files and servers that the blocks of a page leave for later blocks."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.environment = {**os.environ, **ENVIRONMENT}
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.servers: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        for name in ("examples", "benchmarks"):
            (folder / name).symlink_to(ROOT / name)

    def run(self, block: Block) -> None:
        """Run a block and compare its output with the page."""
        text = PORT.sub(self.port, block.text)
        if block.title is not None:
            (self.folder / block.title).write_text(text, encoding="utf-8")
        elif block.kind == "python":
            self._compare(block, 0, self._python(block.line, text), block.output)
        elif block.kind in ("sh", "console"):
            for line, command, output in commands(text, prompted=block.kind == "console"):
                self._compare(block, line, self._command(block.line + line, command), output)

    def close(self) -> None:
        """Stop the servers."""
        for server in self.servers:
            server.terminate()
            server.wait(30)

    def _python(self, line: int, text: str) -> str:
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile("\n" * (line - 1) + text, str(self.page), "exec"), self.names)
        return out.getvalue()

    def _command(self, line: int, command: str) -> str:
        words = shlex.split(command.replace("\\\n", " "), comments=True)  # shlex does not join continued lines
        if not words:
            return ""
        place = f"{self.page.name}:{line}: {command}"
        if words[-1] == "&":
            return self._serve(command, place)
        if words[0] == "export":
            self.environment |= dict(word.split("=", 1) for word in words[1:])
            return ""
        if words[0] == "labelwise" and not SHELL & set(" ".join(words)):
            code, out, err = run_here(words[1:])
        else:
            done = subprocess.run(
                ["bash", "-c", command], env=self.environment, capture_output=True, text=True, timeout=300
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        assert code == 0, f"{place} ended with {code}:\n{out}{err}"
        return out

    def _serve(self, command: str, place: str) -> str:
        """Start a server and wait until it is ready."""
        words = [sys.executable, "-m", *shlex.split(command, comments=True)[:-1]]
        with Path(self.folder / "server.log").open("wb") as log:
            self.servers.append(subprocess.Popen(words, stdout=log, stderr=log, env=self.environment))
        end = time.monotonic() + 60
        while time.monotonic() < end and self.servers[-1].poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ready"):
                    return ""
            except urllib.error.HTTPError as refused:  # a server that requires a key is ready
                refused.close()
                return ""
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"{place} did not start to serve:\n{Path(self.folder / 'server.log').read_text()}")

    def _compare(self, block: Block, line: int, got: str, want: str | None) -> None:
        same = want is None or alike(want, got, times=block.times)
        assert same, f"{self.page.name}:{block.line + line} shows\n{want}\nbut this was printed\n{got}"


def alike(want: str, got: str, *, times: bool = False) -> bool:
    """Whether a page shows the printed output.

    Spaces and line breaks are ignored, and `...` matches anything. A number with a decimal point may differ by one unit
    of the last digit that the page shows. In tables of times any number matches.
    """
    number = ANY_NUMBER if times else NUMBER
    pieces = re.split(rf"({number.pattern}|\.\.\.)", _plain(want))
    shown = [piece for piece in pieces[1::2] if piece != "..."]
    kinds = (".*?" if piece == "..." else f"({number.pattern})" for piece in pieces[1::2])
    pattern = "".join(chain.from_iterable(zip_longest(map(re.escape, pieces[::2]), kinds, fillvalue="")))
    found = re.fullmatch(pattern, _plain(got), re.DOTALL)
    if found is None or times:
        return found is not None
    return all(_close(page, printed) for page, printed in zip(shown, found.groups(), strict=True))


def _close(page: str, printed: str) -> bool:
    """Whether a printed number is the number that a page shows."""
    unit = 10.0 ** -len(page.partition(".")[2])
    return abs(float(page) - float(printed)) <= UNITS * unit


def _plain(text: str) -> str:
    return " ".join(re.sub(r"([─━])\1+", r"\1", text).split())


def commands(text: str, *, prompted: bool) -> list[tuple[int, str, str | None]]:
    """Line, command and output of each command; None for the output if nothing is shown."""
    found: list[tuple[int, str, str | None]] = []
    open_ended = False
    for number, line in enumerate(text.splitlines()):
        if open_ended:
            at, command, output = found[-1]
            found[-1] = at, f"{command}\n{line}", output
            open_ended = line.endswith("\\")
        elif not prompted or line.startswith("$ "):
            found.append((number, line.removeprefix("$ ") if prompted else line, None))
            open_ended = line.endswith("\\")
        else:
            at, command, output = found[-1]
            found[-1] = at, command, f"{output or ''}{line}\n"
    return found


def run_here(arguments: list[str]) -> tuple[int, str, str]:
    """Run the command line in this process, which is faster than a new one."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
