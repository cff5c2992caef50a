"""Connections: limits that uvicorn does not have, and an answer to each accepted request when the server stops."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from labelwise.serve.app import Application
from labelwise.serve.logs import JsonLog
from labelwise.serve.middleware import SECURITY_HEADERS
from labelwise.serve.request_error import error_body

MAX_HEAD = 64 << 10
"""Largest size of request line and headers in bytes, up to one read more."""
HEAD_SECONDS = 10.0
"""Seconds from connecting, or from the first byte of the next request, until the head is complete."""
IDLE_SECONDS = 1.0
"""Seconds that a connection without a request stays open after the server was told to stop."""


@dataclass(frozen=True)
class Refusal:
    """An answer to bytes that are no request."""

    status: int
    reason: str
    code: str
    message: str

    def content(self) -> bytes:
        """The whole answer, after which the connection is closed."""
        body = error_body(self.code, self.message)
        head = [f"HTTP/1.1 {self.status} {self.reason}".encode(), b"content-type: application/json"]
        head += [b"content-length: %d" % len(body), b"connection: close"]
        head += [b"retry-after: 1"] if self.status == 503 else []
        head += [b"%s: %s" % header for header in SECURITY_HEADERS]
        return b"\r\n".join([*head, b"", body])


class JsonErrorProtocol(HttpToolsProtocol):
    """A connection that answers every error with JSON, and that is closed only when all its requests are answered.

    Requests may come before earlier ones are answered (pipelining). uvicorn's own class knows the last one alone when
    the client hangs up, when bytes are no request, and when the server stops.
    """

    _in_head = False
    _head = 0
    _in_body = False
    _got_body = False
    _beside_body = 0
    """Bytes since the last ones of a body: extensions of a chunk's head, and the lines after the last chunk."""
    _due: asyncio.TimerHandle | None = None
    _refusal: Refusal | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request; refuse the connection if too many are open."""
        super().connection_made(transport)
        self._cycles: deque[Any] = deque()
        if len(self.connections) > self._application.config.limits.max_connections:
            self._application.metrics.refused.add("connections")
            message = "too many connections are open; try again in a second."
            self._refuse(Refusal(503, "Service Unavailable", "overloaded", message))
            return
        self._due = self.loop.call_later(HEAD_SECONDS, self._give_up)
        if self._application.draining:
            self._close_if_idle_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timer, and let all unanswered requests know that their client has left."""
        self._cancel_timer()
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head, and refuse a head that is too large, or so much beside a body."""
        if self._refusal is not None:
            return
        self._got_body = False
        super().data_received(data)
        if self._in_body:
            self._beside_body = 0 if self._got_body else self._beside_body + len(data)
            if self._beside_body > MAX_HEAD:
                message = "there is too much beside the chunks of the body."
                self._refuse(Refusal(431, "Request Header Fields Too Large", "too_large", message))
        if self._in_head:
            self._head += len(data)
            if self._head > MAX_HEAD:
                message = "the headers are too large."
                self._refuse(Refusal(431, "Request Header Fields Too Large", "too_large", message))
            elif self._due is None:
                self._due = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def on_message_begin(self) -> None:
        """Start to count: a head begins."""
        self._in_head, self._head = True, 0
        self._in_body, self._beside_body = False, 0
        super().on_message_begin()
        self.scope["state"]["more_requests"] = self._more_requests  # read by `with_headers`

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those after the body are dropped, which nobody reads."""
        if self._in_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Note that a part of the body has come."""
        self._got_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the body is complete."""
        self._in_body = False
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """Cancel the timer: the head is complete."""
        self._in_head, self._in_body = False, True
        self._cancel_timer()
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self._cycles.append(self.cycle)

    def on_response_complete(self) -> None:
        """Go on with the next request; refuse what came after the last one, or close the connection when draining."""
        super().on_response_complete()
        if self.transport.is_closing() or self._unanswered():
            return
        if self._refusal is not None:
            self._write_refusal(self._refusal)
        elif self._application.draining:
            self._close_if_idle_soon()

    def shutdown(self) -> None:
        """Let the answers to come say that the connection is closed; close it soon if no further request comes.

        A client may have sent a request that is still on its way, so an idle connection is not closed at once.
        """
        if not self._unanswered():
            self._close_if_idle_soon()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP."""
        self._refuse(Refusal(400, "Bad Request", "invalid_http", "this is not a valid HTTP request."))

    @property
    def _application(self) -> Application:
        return self.config.app  # type: ignore[return-value]

    def _unanswered(self) -> list[Any]:
        """The requests without a complete answer, the oldest first."""
        while self._cycles and self._cycles[0].response_complete:
            self._cycles.popleft()
        return [cycle for cycle in self._cycles if not cycle.response_complete]

    def _more_requests(self) -> bool:
        """Whether further requests wait for the answer to the present one."""
        return bool(self.pipeline)

    def _close_if_idle_soon(self) -> None:
        self.loop.call_later(IDLE_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self.transport.is_closing() or self._unanswered() or self._in_head:
            return
        if _has_unread_bytes(self.transport):
            self._close_if_idle_soon()
        else:
            self.transport.close()

    def _give_up(self) -> None:
        self._due = None
        message = f"no request came within {HEAD_SECONDS:g} seconds."
        self._refuse(Refusal(408, "Request Timeout", "slow_request", message))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what is no request: after the answers to the requests before it. A request that was cut off by these
        bytes gets no answer of its own.
        """
        self._in_head, self._refusal = False, refusal
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._cycles.remove(self.cycle)
        if not self._unanswered():
            self._write_refusal(refusal)

    def _write_refusal(self, refusal: Refusal) -> None:
        if not self.transport.is_closing():
            self.transport.write(refusal.content())
            self.transport.close()

    def _cancel_timer(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def _has_unread_bytes(transport: asyncio.Transport) -> bool:
    """Whether bytes arrived that the event loop has not read yet; false where the system cannot tell."""
    connection = transport.get_extra_info("socket")
    if connection is None or not hasattr(socket, "MSG_DONTWAIT"):
        return False
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as copy:
            return bool(copy.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False


class UvicornLogHandler(logging.Handler):
    """Writes uvicorn's warnings and errors to the server's log, without tracebacks, which may quote a text."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self.log.event("uvicorn", level=record.levelname.lower(), message=record.getMessage())
