"""A file over https, in pieces that stay: an interrupted download goes on where it stopped."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from labelwise import __version__
from labelwise.errors import LabelwiseError, StorageError, UsageError
from labelwise.events import Task
from labelwise.storage.write_errors import told_as_storage_error
from labelwise.types import OnEvent

TIMEOUT = 60.0
"""Seconds without a byte after which a connection counts as broken."""
ATTEMPTS = 5
"""Connections in a row that may bring nothing new."""
PAUSE = 2.0
"""Seconds before the second attempt; each further pause is twice as long."""
PIECE = 1 << 20
MOST_DIGITS = 18
"""Digits of a size that is read; Python converts no string of thousands."""
LONGEST_REASON = 300
"""Characters of what a server says that are told."""
_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})")
_BROKEN = (TimeoutError, ConnectionError, http.client.HTTPException, ssl.SSLError)


class DownloadError(LabelwiseError, OSError):
    """An address does not give the file."""


@dataclass
class State:
    """What is known of the file that is being fetched; kept beside the piece that is there."""

    url: str
    total: int | None = None
    tag: str | None = None
    """The server's name for this version of the file."""

    def is_whole(self) -> bool:
        """Whether the values are those that `Download` writes: the file can be damaged."""
        has_total = self.total is None or (type(self.total) is int and self.total >= 0)
        return has_total and (self.tag is None or (isinstance(self.tag, str) and _can_be_sent(self.tag)))


def check_address(url: str) -> None:
    """Refuse other addresses than https; http is for this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as err:
        raise UsageError(f"{url} is not an address ({err}); give one that begins with https://") from err
    if parts.username is not None:  # the address is not repeated: logs and screens are read by others
        raise UsageError("the address holds a user name, and none is sent; fetch the file yourself and give it")
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(f"{url} is not an address; give one that begins with https://")
    if parts.scheme != "https" and not is_loopback(host):
        raise UsageError(f"{url} is not encrypted; give an address that begins with https://")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _can_be_sent(tag: str) -> bool:
    """Whether a server's name for a version of a file tells the bytes of the file, and can be a header."""
    return tag.isascii() and tag.isprintable() and not tag.startswith("W/")


class Download:
    """The download of an address into a folder of its own, which can be gone on with until it is removed."""

    def __init__(self, url: str, folder: Path, *, most: int) -> None:
        check_address(url)
        self.folder, self.most = folder, most
        self.file, self._state_file = folder / "archive", folder / "download.json"
        self.state = State(url)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder; one process at a time works in it."""
        with told_as_storage_error(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout as err:
            raise UsageError(f"another process is fetching into {self.folder}; wait until it has ended") from err
        try:
            yield
        finally:
            lock.release()

    def remove(self) -> None:
        """Remove what was fetched."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def fetch(self, on_event: OnEvent | None, task: str) -> Path:
        """The complete file. What an earlier call has fetched is not fetched again."""
        with told_as_storage_error(self.folder):
            self._go_on()
            if self._is_complete():
                return self.file
            failures, error = 0, None
            while failures < ATTEMPTS:
                if failures:
                    time.sleep(PAUSE * 2 ** (failures - 1))
                before = self._size()
                try:
                    self._connect(on_event, task)
                    if self._is_complete():
                        return self.file
                    error = "the connection ended too early"
                except http.client.InvalidURL as err:
                    error = str(err)
                    break
                except _BROKEN as err:
                    error = str(err) or type(err).__name__
                except urllib.error.URLError as err:
                    error = str(err.reason)
                    if self._size() == before and not isinstance(err.reason, _BROKEN):
                        break
                except ValueError as err:  # an address, of the user or of a redirect, that no server can have
                    error = str(err)
                    break
                failures = 1 if self._size() > before else failures + 1
        kept = f"; {self._size():,} bytes are kept in {self.folder}" if self._size() else ""
        raise DownloadError(f"{self.state.url} cannot be fetched ({str(error)[:LONGEST_REASON]}){kept}")

    # ------------------------------------------------------------------ the piece that is there

    def _size(self) -> int:
        return self.file.stat().st_size if self.file.is_file() else 0

    def _is_complete(self) -> bool:
        return self.state.total is not None and self.file.is_file() and self._size() == self.state.total

    def _go_on(self) -> None:
        """Take over what is there, if it is of the same address."""
        found = None
        with suppress(OSError, ValueError, TypeError, RecursionError):
            found = State(**json.loads(self._state_file.read_text(encoding="utf-8")))
        if (
            found is not None
            and found.is_whole()
            and found.url == self.state.url
            and self._size() <= (found.total or self.most)
        ):
            self.state = found
        else:
            self._begin_again()

    def _begin_again(self) -> None:
        self.file.unlink(missing_ok=True)
        self.state = State(self.state.url)

    # ------------------------------------------------------------------ one connection

    def _connect(self, on_event: OnEvent | None, task: str) -> None:
        """Fetch what one connection brings."""
        start = self._size() if self.state.tag else 0
        headers = {"User-Agent": f"labelwise/{__version__}", "Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": str(self.state.tag)}
        request = urllib.request.Request(self.state.url, headers=headers)
        try:
            with _opener(self.state.url).open(request, timeout=TIMEOUT) as answer:
                start = self._begin(answer, start)
                self._keep(answer, start, on_event, task)
        except urllib.error.HTTPError as err:
            if err.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and start:
                self._begin_again()
                return
            if err.code in (408, 429) or err.code >= 500:
                raise http.client.HTTPException(f"the server answers {err.code} {err.reason}") from err
            raise DownloadError(
                f"{self.state.url} cannot be fetched (the server answers {err.code} {err.reason})"
            ) from err

    def _begin(self, answer: Any, start: int) -> int:
        """The first byte of an answer; what the answer says of the file is kept."""
        length = answer.headers.get("Content-Length", "")
        total = int(length[: MOST_DIGITS + 1]) if length.isdecimal() else None
        if answer.status == http.client.PARTIAL_CONTENT:
            found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != start or int(found[2]) != self.state.total:
                self._begin_again()
                raise ConnectionError("the server sent another part of the file than was asked for")
            return start
        if answer.status != http.client.OK:
            raise DownloadError(f"{self.state.url} cannot be fetched (the server answers {answer.status}, no file)")
        if total is not None and total > self.most:
            raise DownloadError(f"{self.state.url} has {total:,} bytes, more than the {self.most:,} that are expected")
        free = shutil.disk_usage(self.folder).free
        if total is not None and total > free:
            raise StorageError(f"{self.folder} has room for {free:,} bytes, but the archive has {total:,}; free some")
        self.file.unlink(missing_ok=True)
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        self.state = State(self.state.url, total, tag if tag and _can_be_sent(tag) else None)
        self._state_file.write_text(json.dumps(asdict(self.state)), encoding="utf-8")
        return 0

    def _keep(self, answer: Any, start: int, on_event: OnEvent | None, name: str) -> None:
        """Append what arrives."""
        total = None if self.state.total is None else max(1, self.state.total // 1_000_000)
        with self.file.open("ab") as out, Task(on_event, name, total=total, unit="MB") as task:
            done = start
            task.done = done // 1_000_000
            while piece := answer.read1(PIECE):  # what is there: a connection that breaks takes nothing along
                done += len(piece)
                if done > (self.most if self.state.total is None else self.state.total):
                    raise DownloadError(f"{self.state.url} sends more bytes than the {done - len(piece):,} expected")
                out.write(piece)
                task.advance(done // 1_000_000 - task.done)
            out.flush()
            os.fsync(out.fileno())
        if self.state.total is None:  # the end of the answer is the end; one in chunks that breaks off is an error
            self.state.total = done


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to an address that could be asked for; never from the network to this machine."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request of a redirect."""
        try:
            check_address(newurl)
        except UsageError as err:
            raise DownloadError(f"{req.full_url} leads to another address that was not followed: {err}") from err
        if is_loopback(urlsplit(newurl).hostname or "") and not is_loopback(urlsplit(req.full_url).hostname or ""):
            raise DownloadError(f"{req.full_url} leads to {newurl}, which is this machine; it was not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(url: str) -> urllib.request.OpenerDirector:
    """What opens addresses: with the proxies of the environment, none for this machine."""
    handlers: list[urllib.request.BaseHandler] = [_SafeRedirects()]
    if is_loopback(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)
