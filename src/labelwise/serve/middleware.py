"""What every request passes: headers, API keys, suggestions without the framework, metrics, the log."""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from collections.abc import Callable
from typing import Any

from labelwise.serve.hosts import AllowedHosts
from labelwise.serve.keys import Key, KeyFile
from labelwise.serve.logs import JsonLog
from labelwise.serve.page import FILES
from labelwise.serve.prometheus import ServerMetrics
from labelwise.serve.request_error import RequestError, overloaded
from labelwise.serve.suggest import SuggestHandler

SUGGEST = "/v1/suggest"
PATHS = frozenset(
    {*FILES, "/health", "/ready", "/metrics", "/openapi.json", SUGGEST, "/v1/labels", "/v1/model", "/v1/reload"}
)
OPEN = frozenset({*FILES, "/health", "/ready", "/openapi.json"})
"""Paths that need no key."""
ADMIN = frozenset({("POST", "/v1/reload")})
DELAY_SECONDS, REFUSALS_PER_SECOND = (0.1, 0.3), 2_000
"""Refusals under overload are delayed: by a random time, so that clients do not return all at once, and longer when
there are more of them, since a higher rate of refusals would leave no time for answers."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

JSON = (b"content-type", b"application/json")
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""Headers of every answer that does not set them itself, as the page does: no guessing of types, no frames, nothing
kept by caches, no address passed on."""


class AuthMiddleware:
    """An ASGI application around the framework's application."""

    def __init__(
        self,
        app: Any,
        suggest_handler: SuggestHandler,
        metrics: ServerMetrics,
        log: JsonLog,
        *,
        keys: KeyFile | None = None,
        hosts: AllowedHosts | None = None,
    ) -> None:
        self._n_delayed = 0
        self.app, self.suggest_handler, self.metrics, self.log = app, suggest_handler, metrics, log
        self.keys, self.hosts = keys, hosts or AllowedHosts()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # websockets are not accepted
            await send({"type": "websocket.close", "code": 1003})
            return
        start = time.perf_counter()
        path, method = scope["path"], scope["method"]
        log_fields: dict[str, Any] = {}
        try:
            self.hosts.check(scope["headers"])
            key = self._check_key(method, path, scope["headers"])
            if key is not None:
                log_fields["key"] = key.name
            if path == SUGGEST and method == "POST":
                body, log_fields["texts"] = await self.suggest_handler.handle(scope["headers"], receive)
                status = 200
                await reply(send, 200, body)
            else:
                status = await self._forward(scope, receive, send)
        except RequestError as error:
            status = error.status
            log_fields["code"] = error.code
            self.metrics.refused.add(error.code)
            if error.code == "overloaded":
                await self._delay()
            await reply(send, status, error.body(), error.headers)
        except asyncio.CancelledError:  # the seconds of --drain are over; the task ends with this answer
            status = 503
            late = overloaded("the server stopped before there was an answer; ask another one.", "draining")
            await reply(send, status, late.body(), late.headers)
        except Exception as error:
            status = 500
            # The message of an error may quote a text, its place in the code does not.
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.log.event(
                "error", kind=type(error).__name__, where=f"{where.filename}:{where.lineno}", path=path[:200]
            )
            answer = RequestError(500, "internal", "the server failed on this request; its log says where.")
            await reply(send, status, answer.body())
        seconds = time.perf_counter() - start
        place = path if path in PATHS else "other"
        self.metrics.requests.add(method if method in METHODS else "other", place, str(status))
        self.metrics.seconds.observe(place, seconds)
        self.log.request(method[:20], path[:200], status, seconds, **log_fields)

    async def _delay(self) -> None:
        """Delay a refusal under overload: clients that return at once would take time from accepted requests."""
        self._n_delayed += 1
        try:
            await asyncio.sleep(max(random.uniform(*DELAY_SECONDS), self._n_delayed / REFUSALS_PER_SECOND))
        finally:
            self._n_delayed -= 1

    async def _forward(self, scope: Any, receive: Any, send: Any) -> int:
        """Let the framework answer. Returns the status of its answer."""
        status, begun = 500, False

        async def watched(message: Any) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception:
            if not begun:
                raise
        return status

    def _check_key(self, method: str, path: str, headers: Any) -> Key | None:
        """The client's key; None where no key is needed."""
        if self.keys is None:
            if (method, path) in ADMIN:
                raise RequestError(
                    403, "no_admin", "this needs an admin key, and the server was started without keys (--keys FILE)."
                )
            return None
        if path in OPEN:
            return None
        given = b""
        for name, value in headers:
            if name == b"x-api-key":
                given = value
            elif name == b"authorization" and value[:7].lower() == b"bearer ":
                given = value[7:].strip()
        found = self.keys.current().find(given) if given else None
        if found is None:
            problem = "this API key is not known" if given else "an API key is needed"
            raise RequestError(
                401,
                "unauthorized",
                f"{problem}; send it as Authorization: Bearer KEY, or as X-API-Key.",
                {"WWW-Authenticate": "Bearer"},
            )
        if (method, path) in ADMIN and found.role != "admin":
            raise RequestError(403, "no_admin", "this needs an admin key; make one with --make-key FILE --admin.")
        return found


async def reply(send: Any, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    """Send a JSON answer."""
    lines = [JSON, (b"content-length", str(len(body)).encode())]
    if headers:
        lines += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


def with_headers(send: Any, scope: Any, closing: Callable[[], bool]) -> Any:
    """The `send` of a request whose answer gets the security headers, and `Connection: close` if `closing` says so.

    An answer that other requests of the same connection wait for does not close it: see `more_requests` of the
    protocol.
    """

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name for name, _ in given}
            given += [header for header in SECURITY_HEADERS if header[0] not in names]
            more: Any = scope.get("state", {}).get("more_requests")
            if closing() and b"connection" not in names and not (more is not None and more()):
                given.append((b"connection", b"close"))
            message = {**message, "headers": given}
        await send(message)

    return send_with_headers
