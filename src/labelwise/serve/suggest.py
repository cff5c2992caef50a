"""POST /v1/suggest: the one route that is asked thousands of times a second, so it goes past the framework."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from labelwise.errors import LabelwiseError, MissingExtraError
from labelwise.serve.limits import Limits
from labelwise.serve.model_pool import Models, can_explain
from labelwise.serve.refusal import RequestRefused
from labelwise.serve.schema import Ask, ask_within, parse


class SuggestHandler:
    """Takes requests for labels and gives answers."""

    def __init__(self, models: Models, limits: Limits) -> None:
        self.models, self.limits = models, limits
        self.schema = ask_within(limits)

    async def handle(self, headers: Sequence[tuple[bytes, bytes]], receive: Any) -> tuple[bytes, int]:
        """The answer's JSON and the number of texts."""
        if all(served.batcher.waiting >= self.limits.queue for served in self.models.values()):
            self.models.find(None).batcher.check_room()  # refused before it costs anything
        ask = parse(self.schema, await self._body(headers, receive))
        answer = await self.answer(ask)
        return to_json(answer), len(answer["results"])

    async def answer(self, ask: Ask) -> dict[str, Any]:
        """Labels for a request that is well-formed."""
        texts, served = ask.documents(), self.models.find(ask.model)
        calibrated = served.now.model.calibrator_ is not None
        if ask.min_probability and not calibrated:
            raise RequestRefused(
                409,
                "not_calibrated",
                f"the scores of {served.name} are no probabilities: it is not calibrated; leave out min_probability.",
            )
        explained = await self._explained(len(texts), ask.top_k) if ask.explain else 0
        try:
            version, rows = await served.queue(ask.explain).answer(texts, (ask.top_k, explained))
        except MissingExtraError as error:
            raise RequestRefused(501, "not_installed", f"{error}.") from error
        except LabelwiseError as error:
            raise RequestRefused(422, "cannot_answer", f"{error}.") from error
        number, least = "probability" if calibrated else "score", ask.min_probability
        results = []
        for row, told in rows:
            kept = [(label, score) for label, score in row if score >= least] if least else row
            result: dict[str, Any] = {"suggestions": [{"label": label, number: score} for label, score in kept]}
            if told is not None:
                names = {label for label, _ in kept}
                result["explanations"] = [one for one in told if one["label"] in names]
            results.append(result)
        return {"model": served.name, "version": version, "results": results}

    async def _explained(self, n_texts: int, top_k: int) -> int:
        """How many labels of each text are explained."""
        if not await asyncio.to_thread(can_explain):
            raise RequestRefused(
                501, "no_explanations", "this server cannot explain its suggestions; leave out explain."
            )
        return min(top_k, max(1, self.limits.max_explained // n_texts))

    async def _body(self, headers: Sequence[tuple[bytes, bytes]], receive: Any) -> bytes:
        """The whole body, if it is JSON by name, not too large and comes in time."""
        kind = b""
        for name, value in headers:
            if name == b"content-type":
                kind = value
            elif name == b"content-length" and (not value.isdigit() or int(value[:20]) > self.limits.max_body):
                raise self._too_large()
        if kind.partition(b";")[0].strip().lower() != b"application/json":
            raise RequestRefused(
                415, "unsupported_media_type", "the body must be JSON; send it with Content-Type: application/json."
            )
        try:
            async with asyncio.timeout(self.limits.deadline):
                return await self._chunks(receive)
        except TimeoutError:
            seconds = f"{self.limits.deadline:g}"
            raise RequestRefused(
                408, "slow_request", f"the body did not come within {seconds} seconds.", {"Connection": "close"}
            ) from None

    async def _chunks(self, receive: Any) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestRefused(400, "disconnected", "the connection was closed before the body was complete.")
            part = message.get("body", b"")
            size += len(part)
            if size > self.limits.max_body:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self) -> RequestRefused:
        most = self.limits.max_body
        return RequestRefused(
            413,
            "too_large",
            f"the body is larger than {most:,} bytes; send fewer or shorter texts at a time.",
            {"Connection": "close"},
        )
