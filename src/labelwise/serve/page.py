"""The page at /: static files that load nothing from other servers."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/ask.js": ("ask.js", "text/javascript; charset=utf-8"),
    "/why.js": ("why.js", "text/javascript; charset=utf-8"),
    "/routes.html": ("routes.html", "text/html; charset=utf-8"),
    "/routes.js": ("routes.js", "text/javascript; charset=utf-8"),
}
HEADERS = {
    "Cache-Control": "no-cache",  # cached, but revalidated by ETag each time: a new version is seen at once
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def add_page(api: FastAPI) -> None:
    """Add the routes of the page's files, which are read once."""
    for path, (name, kind) in FILES.items():
        content = files("labelwise.serve").joinpath("static", name).read_bytes()
        api.add_api_route(path, _answer(content, kind), methods=["GET", "HEAD"], include_in_schema=False)


def _answer(content: bytes, kind: str) -> Any:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {**HEADERS, "ETag": tag}

    async def answer(request: Request) -> Response:
        known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
        if tag in known:
            return Response(status_code=304, headers=headers)
        return Response(content, headers={**headers, "Content-Type": kind})

    return answer
