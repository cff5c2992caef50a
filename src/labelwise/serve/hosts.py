"""Names in the header Host that a server answers to, against pages that reach it by a name of their own.

A page of evil.example may let this name point to 127.0.0.1 (DNS rebinding). The browser then takes a server on this
machine for the page's own, so no rule about other origins holds, but the request still names evil.example.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from labelwise.errors import UsageError
from labelwise.serve.request_error import RequestError

ANY = "*"
_NAME = re.compile(r"[\w.-]{1,253}|\[[0-9a-fA-F:.]+\]")


class AllowedHosts:
    """The names and addresses in Host that are accepted; without names, all."""

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._names = None if names is None or ANY in names else frozenset(_bare(name) for name in names)

    @classmethod
    def of(cls, address: str, given: Sequence[str], *, name: str = "localhost", keys: bool) -> AllowedHosts:
        """What a server at this address accepts: this machine's names, the one it was started with, the given ones.

        Without given names, all are accepted where requests need keys, which a page does not have, or where the server
        listens on other addresses than those of this machine alone, since it cannot know its names then.
        """
        for one in given:
            if one != ANY and not _NAME.fullmatch(one):
                raise UsageError(f"--allowed-hosts {one}: give names or addresses without a port, or * for all")
        if not given and (keys or not is_loopback(address)):
            return cls()
        return cls(("localhost", *(one for one in (name, *given) if _NAME.fullmatch(one) or one == ANY)))

    def check(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse a request that names another host. Programs that send no Host are no browsers."""
        if self._names is None:
            return
        for header, value in headers:
            if header == b"host" and not self._accepts(value.decode("latin-1")):
                raise RequestError(
                    421,
                    "unknown_host",
                    "this server does not answer to the host of this request; start it with --allowed-hosts NAME.",
                )

    def _accepts(self, host: str) -> bool:
        assert self._names is not None
        name = _bare(host)
        return name in self._names or is_loopback(name)


def is_loopback(address: str) -> bool:
    """Whether an address is one of the machine itself."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address.lower().rstrip(".") == "localhost"


def _bare(host: str) -> str:
    """A host in lower case, without the port, the brackets of an IPv6 address and the dot at the end."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".")
