"""The door that every request passes: keys, the short way to suggestions, counting, the log."""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from typing import Any

from labelwise.serve.keys import Key, Keyring
from labelwise.serve.logs import Log
from labelwise.serve.page import FILES
from labelwise.serve.prometheus import Metrics
from labelwise.serve.refusal import RequestRefused
from labelwise.serve.suggest import SuggestHandler

SUGGEST = "/v1/suggest"
PATHS = frozenset(
    {*FILES, "/health", "/ready", "/metrics", "/openapi.json", SUGGEST, "/v1/labels", "/v1/model", "/v1/reload"}
)
OPEN = frozenset({*FILES, "/health", "/ready", "/openapi.json"})
"""Asked without a key."""
ADMIN = frozenset({("POST", "/v1/reload")})
HOLD_SECONDS, REFUSALS_PER_SECOND = (0.1, 0.3), 2_000
"""Refusals under overload are held back, at random or all would come back at once, and longer the more there are: at a
higher rate they would leave no time for answers."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

JSON = (b"content-type", b"application/json")


class AuthMiddleware:
    """An ASGI application around the framework's."""

    def __init__(self, app: Any, desk: SuggestHandler, metrics: Metrics, log: Log, keys: Keyring | None = None) -> None:
        self._held = 0
        self.app, self.desk, self.metrics, self.log, self.keys = app, desk, metrics, log, keys

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # a websocket is turned away
            await send({"type": "websocket.close", "code": 1003})
            return
        start = time.perf_counter()
        path, method = scope["path"], scope["method"]
        told: dict[str, Any] = {}
        try:
            who = self._check_key(method, path, scope["headers"])
            if who is not None:
                told["key"] = who.name
            if path == SUGGEST and method == "POST":
                body, told["texts"] = await self.desk.handle(scope["headers"], receive)
                status = 200
                await reply(send, 200, body)
            else:
                status = await self._forward(scope, receive, send)
        except RequestRefused as refusal:
            status = refusal.status
            told["code"] = refusal.code
            self.metrics.refused.add(refusal.code)
            if refusal.code == "overloaded":
                await self._hold()
            await reply(send, status, refusal.body(), refusal.headers)
        except Exception as error:
            status = 500
            # The sentence of an error may quote a text; where it happened does not.
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.log.event(
                "error", kind=type(error).__name__, where=f"{where.filename}:{where.lineno}", path=path[:200]
            )
            sorry = RequestRefused(500, "internal", "something went wrong inside the server; its log tells where.")
            await reply(send, status, sorry.body())
        seconds = time.perf_counter() - start
        place = path if path in PATHS else "other"
        self.metrics.requests.add(method if method in METHODS else "other", place, str(status))
        self.metrics.seconds.see(place, seconds)
        self.log.request(method[:20], path[:200], status, seconds, **told)

    async def _hold(self) -> None:
        """Let a refusal for want of room wait: who asks again at once would take the time of the accepted."""
        self._held += 1
        try:
            await asyncio.sleep(max(random.uniform(*HOLD_SECONDS), self._held / REFUSALS_PER_SECOND))
        finally:
            self._held -= 1

    async def _forward(self, scope: Any, receive: Any, send: Any) -> int:
        """Let the framework answer, and see with which status."""
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
        """Who asks, where keys are needed."""
        if self.keys is None:
            if (method, path) in ADMIN:
                raise RequestRefused(
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
        found = self.keys.find(given) if given else None
        if found is None:
            problem = "this API key is not known" if given else "an API key is needed"
            raise RequestRefused(
                401,
                "unauthorized",
                f"{problem}; send it as Authorization: Bearer KEY, or as X-API-Key.",
                {"WWW-Authenticate": "Bearer"},
            )
        if (method, path) in ADMIN and found.role != "admin":
            raise RequestRefused(403, "no_admin", "this needs an admin key; make one with --make-key FILE --admin.")
        return found


async def reply(send: Any, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    """Send a whole JSON answer."""
    lines = [JSON, (b"content-length", str(len(body)).encode())]
    if headers:
        lines += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
