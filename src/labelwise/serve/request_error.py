"""Errors as clients see them: JSON with a code and a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping


class RequestError(Exception):
    """A request that cannot be answered: the HTTP status, a code for programs and a sentence for people."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    def body(self) -> bytes:
        """The answer's JSON."""
        return error_body(self.code, self.message)


def error_body(code: str, message: str) -> bytes:
    """``{"error": {"code", "message"}}`` as bytes."""
    return json.dumps({"error": {"code": code, "message": message}}, ensure_ascii=False).encode(errors="replace")


def overloaded(message: str, code: str = "overloaded", seconds: int = 1) -> RequestError:
    """An error with status 503 that says after how many seconds to try again."""
    return RequestError(503, code, message, {"Retry-After": str(seconds)})
