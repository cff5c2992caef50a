"""The one shape of every error that a client sees."""

from __future__ import annotations

import json
from collections.abc import Mapping


class RequestRefused(Exception):  # noqa: N818 - an answer, not a fault of the program
    """A request that is not answered with what it asks for: a status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    def body(self) -> bytes:
        """The answer's JSON."""
        return error_body(self.code, self.message)


def error_body(code: str, message: str) -> bytes:
    """``{"error": {"code", "message"}}`` as bytes."""
    return json.dumps({"error": {"code": code, "message": message}}, ensure_ascii=False).encode(errors="replace")


def overloaded(message: str, code: str = "overloaded", seconds: int = 1) -> RequestRefused:
    """A refusal that says when to come again."""
    return RequestRefused(503, code, message, {"Retry-After": str(seconds)})
