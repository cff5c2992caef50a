"""Limits of connections that uvicorn does not have: size of a request's head, and seconds until it is complete."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from labelwise.serve.app import Application
from labelwise.serve.logs import JsonLog
from labelwise.serve.request_error import error_body

MAX_HEAD = 64 << 10
"""Largest size of request line and headers in bytes, up to one read more."""
HEAD_SECONDS = 10.0
"""Seconds from connecting, or from the first byte of the next request, until the head is complete."""


class JsonErrorProtocol(HttpToolsProtocol):
    """A connection that answers every error with JSON."""

    _in_head = False
    _head = 0
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request; refuse the connection if too many are open."""
        super().connection_made(transport)
        application: Application = self.config.app  # type: ignore[assignment]
        if len(self.connections) > application.config.limits.max_connections:
            application.metrics.refused.add("connections")
            message = "too many connections are open; try again in a second."
            self._refuse(503, "Service Unavailable", "overloaded", message)
            return
        self._due = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer."""
        self._cancel_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head, and refuse a head that is too large."""
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > MAX_HEAD:
                self._refuse(431, "Request Header Fields Too Large", "too_large", "the headers are too large.")
            elif self._due is None:
                self._due = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def on_message_begin(self) -> None:
        """Start to count: a head begins."""
        self._in_head, self._head = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Cancel the timer: the head is complete."""
        self._in_head = False
        self._cancel_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP."""
        self._refuse(400, "Bad Request", "invalid_http", "this is not a valid HTTP request.")

    def _give_up(self) -> None:
        self._due = None
        self._refuse(408, "Request Timeout", "slow_request", f"no request came within {HEAD_SECONDS:g} seconds.")

    def _refuse(self, status: int, reason: str, code: str, message: str) -> None:
        self._in_head = False
        body = error_body(code, message)
        head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        head += "retry-after: 1\r\n" if status == 503 else ""
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def _cancel_timer(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


class UvicornLogHandler(logging.Handler):
    """Writes uvicorn's warnings and errors to the server's log, without tracebacks, which may quote a text."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.log.event("uvicorn", level=record.levelname.lower(), message=record.getMessage())
