"""One JSON object a line on standard error, never with a text in it."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

FLUSH_SECONDS = 0.5
MOST_WAITING = 1000


class Log:
    """Writes lines; what is no error may wait half a second, so that a busy server writes many at once."""

    def __init__(self, out: TextIO | None = None, *, requests: bool = True) -> None:
        self._out, self._requests = out or sys.stderr, requests
        self._lines: list[str] = []

    def request(self, method: str, path: str, status: int, seconds: float, **more: Any) -> None:
        """A request that was answered."""
        if self._requests or status >= 500:
            self.event("request", method=method, path=path, status=status, ms=round(1000 * seconds, 2), **more)

    def event(self, what: str, **values: Any) -> None:
        """Anything that happened."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._lines.append(json.dumps({"time": now, "event": what, **values}, ensure_ascii=False))
        if what != "request" or len(self._lines) >= MOST_WAITING:
            self.flush()

    async def keep_flushing(self) -> None:
        """Write what waits twice a second, for ever."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        lines, self._lines = self._lines, []
        if lines:
            self._out.write("\n".join(lines) + "\n")
            self._out.flush()
