"""The log: a JSON object per line on standard error, which never holds a text of a request."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from labelwise.errors import printable

FLUSH_SECONDS = 0.5
MAX_WAITING_LINES = 1000


class JsonLog:
    """Writes lines. Lines of requests may wait half a second, so that a busy server writes many at once."""

    def __init__(self, out: TextIO | None = None, *, requests: bool = True) -> None:
        self._out, self._requests = out or sys.stderr, requests
        self._lines: list[str] = []

    def request(self, method: str, path: str, status: int, seconds: float, **more: Any) -> None:
        """Log an answered request."""
        if self._requests or status >= 500:
            self.event("request", method=method, path=path, status=status, ms=round(1000 * seconds, 2), **more)

    def event(self, what: str, **values: Any) -> None:
        """Log an event with its values."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": what, **values}, ensure_ascii=False)
        self._lines.append(printable(line))  # a path may hold control characters that JSON leaves as they are
        if what != "request" or len(self._lines) >= MAX_WAITING_LINES:
            self.flush()

    async def keep_flushing(self) -> None:
        """Write the waiting lines twice a second, until the task is cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self.flush()

    def flush(self) -> None:
        """Write the waiting lines."""
        lines, self._lines = self._lines, []
        if lines:
            self._out.write("\n".join(lines) + "\n")
            self._out.flush()
