"""POST /v1/suggest. It gets thousands of requests per second, so it is answered without the framework."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from labelwise.errors import LabelwiseError, MissingExtraError
from labelwise.serve.limits import Limits
from labelwise.serve.model_pool import ModelPool, can_explain
from labelwise.serve.request_error import RequestError
from labelwise.serve.schema import BaseRequest, parse_request, suggest_request_schema


class SuggestHandler:
    """Reads requests for labels and answers them."""

    def __init__(self, models: ModelPool, limits: Limits) -> None:
        self.models, self.limits = models, limits
        self.schema = suggest_request_schema(limits)

    async def handle(self, headers: Sequence[tuple[bytes, bytes]], receive: Any) -> tuple[bytes, int]:
        """The answer's JSON and the number of texts."""
        if all(served.batcher.waiting >= self.limits.queue for served in self.models.values()):
            self.models.find(None).batcher.check_room()  # an error before the body is read
        request = parse_request(self.schema, await self._body(headers, receive))
        answer = await self.answer(request)
        return to_json(answer), len(answer["results"])

    async def answer(self, request: BaseRequest) -> dict[str, Any]:
        """The answer to a well-formed request."""
        texts, served = request.documents(), self.models.find(request.model)
        calibrated = served.current.model.calibrator_ is not None
        if request.min_probability and not calibrated:
            raise RequestError(
                409,
                "not_calibrated",
                f"the scores of {served.name} are not probabilities: it is not calibrated; leave out min_probability.",
            )
        n_explained = await self._n_explained(len(texts), request.top_k) if request.explain else 0
        try:
            version, rows = await served.queue(request.explain).answer(texts, (request.top_k, n_explained))
        except MissingExtraError as error:
            raise RequestError(501, "not_installed", f"{error}.") from error
        except LabelwiseError as error:
            raise RequestError(422, "cannot_answer", f"{error}.") from error
        field, minimum = "probability" if calibrated else "score", request.min_probability
        results = []
        for row, explanations in rows:
            kept = [(label, score) for label, score in row if score >= minimum] if minimum else row
            result: dict[str, Any] = {"suggestions": [{"label": label, field: score} for label, score in kept]}
            if explanations is not None:
                names = {label for label, _ in kept}
                result["explanations"] = [one for one in explanations if one["label"] in names]
            results.append(result)
        return {"model": served.name, "version": version, "results": results}

    async def _n_explained(self, n_texts: int, top_k: int) -> int:
        """Number of labels that are explained for each text."""
        if not await asyncio.to_thread(can_explain):
            raise RequestError(501, "no_explanations", "this server cannot explain its suggestions; leave out explain.")
        return min(top_k, max(1, self.limits.max_explained // n_texts))

    async def _body(self, headers: Sequence[tuple[bytes, bytes]], receive: Any) -> bytes:
        """The whole body; an error if its type is not JSON, if it is too large, or if it comes too late."""
        kind = b""
        for name, value in headers:
            if name == b"content-type":
                kind = value
            elif name == b"content-length" and (not value.isdigit() or int(value[:20]) > self.limits.max_body):
                raise self._too_large()
        if kind.partition(b";")[0].strip().lower() != b"application/json":
            raise RequestError(
                415, "unsupported_media_type", "the body must be JSON; send it with Content-Type: application/json."
            )
        try:
            async with asyncio.timeout(self.limits.deadline):
                return await self._chunks(receive)
        except TimeoutError:
            seconds = f"{self.limits.deadline:g}"
            raise RequestError(
                408, "slow_request", f"the body did not arrive within {seconds} seconds.", {"Connection": "close"}
            ) from None

    async def _chunks(self, receive: Any) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "disconnected", "the connection was closed before the body was complete.")
            part = message.get("body", b"")
            size += len(part)
            if size > self.limits.max_body:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self) -> RequestError:
        limit = self.limits.max_body
        return RequestError(
            413,
            "too_large",
            f"the body is larger than {limit:,} bytes; send fewer or shorter texts at a time.",
            {"Connection": "close"},
        )
