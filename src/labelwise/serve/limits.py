"""Limits of one request, and of all requests together."""

from __future__ import annotations

from dataclasses import dataclass, fields

from labelwise.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of requests, of the queue and of batches."""

    max_body: int = 4 << 20
    """Bytes of a request's body."""
    max_texts: int = 256
    """Texts of one request."""
    max_characters: int = 100_000
    """Characters of one text."""
    max_top_k: int = 1_000
    """Largest `top_k` of a request."""
    max_explained: int = 100
    """Explained labels of one request over all its texts; at least the best label of each text is explained."""
    batch: int = 32
    """Largest number of texts that are predicted together."""
    wait_ms: float = 2.0
    """Milliseconds that the first request of a batch waits for others."""
    queue: int = 48
    """Texts in the queue of a model from which on further requests are answered with 503."""
    max_connections: int = 1_000
    """Largest number of open connections; further ones are answered with 503 and closed."""
    deadline: float = 10.0
    """Seconds in which a request is answered, or refused with 503."""

    def checked(self) -> Limits:
        """The limits themselves; an error if one of them is out of range."""
        for field in fields(self):
            value, name = getattr(self, field.name), field.name.replace("_", "-")
            if not value > 0 and field.name != "wait_ms":
                raise UsageError(f"--{name} {value}: give more than 0")
        if self.wait_ms < 0:
            raise UsageError(f"--wait-ms {self.wait_ms}: give 0 or more")
        return self
