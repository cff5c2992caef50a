"""labelwise serve"""

from __future__ import annotations

import errno
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command, DeviceOption
from labelwise.cli.show import Show
from labelwise.errors import UsageError, need
from labelwise.kernels.preparing import Preparation
from labelwise.serve.hosts import AllowedHosts
from labelwise.serve.keys import make_key
from labelwise.serve.limits import Limits

N_EXAMPLES = 5
"""Largest number of example texts on the page."""


@dataclass(frozen=True, kw_only=True)
class Serve(Command):
    """Serve models over HTTP: POST /v1/suggest, GET /v1/labels, GET /v1/model, /metrics, and a page at /.

    Try it: labelwise serve my-model, then
    curl -H 'Content-Type: application/json' -d '{"text": "red cotton play mat"}' localhost:8000/v1/suggest
    """

    groups: ClassVar = {
        "address": ("host", "port", "allowed_hosts", "cors"),
        "keys": ("keys", "make_key", "key_name", "admin"),
    }

    models: Annotated[tuple[str, ...], Positional, arg(metavar="MODEL")] = ()
    """Folder of a trained model. For several models, names and folders: news=FOLDER shop=FOLDER. The first one is the
    default."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all."""
    port: int = 8000
    """Port to listen on; 0 for any free port."""
    keys: Path | None = None
    """Accept only requests with a key of this file, which --make-key writes. The file is read again when it changes; if
    it holds no key, no request is accepted. Without this option no key is needed."""
    make_key: Path | None = None
    """Add a new key to this file, print the key once, and exit. The file holds only the hash of the key."""
    key_name: str = "default"
    """With --make-key: the name of the key in the log."""
    admin: bool = False
    """With --make-key: the key may also be used for POST /v1/reload."""
    allowed_hosts: tuple[str, ...] = ()
    """Names of this server in the header Host of requests, besides localhost; * for all. Without keys, a server on
    127.0.0.1 answers to localhost alone, so that no page reaches it by a name of its own."""
    cors: tuple[str, ...] = ()
    """Origins whose pages may send requests, such as https://example.org; none if not given."""
    examples: Path | None = None
    """File of texts that the page offers to try, one per line; the first five count. Without it: names of labels."""
    watch: float = 2.0
    """Seconds between two checks for a new version in the model folders, which is then loaded; 0: only on SIGHUP."""
    drain: float = 30.0
    """Seconds to finish requests after SIGTERM or Ctrl-C."""
    threads: int = 1
    """Threads for one batch; 1 suits short texts."""
    device: DeviceOption = None
    """Device of the encoder, if the model has one."""
    limits: Limits = field(default_factory=Limits)

    def run(self, out: Console, show: Show) -> None:
        """Load the models and answer requests until a signal ends the server."""
        if self.make_key is not None:
            out.print(make_key(self.make_key, name=self.key_name, admin=self.admin), markup=False)
            show.remark(f"{self.make_key} holds the hash of the key; the key itself is stored nowhere, so keep it safe")
            return
        folders = model_folders(self.models)
        if not 0 <= self.port <= 65535:
            raise UsageError(f"--port {self.port}: give a port from 0 to 65535")
        if self.threads < 1 or self.watch < 0 or self.drain < 0:
            raise UsageError("--threads must be at least 1, --watch and --drain at least 0")
        limits, examples = self.limits.checked(), example_texts(self.examples)
        address = bound_address(self.host, self.port)  # an error before the models are loaded, not after
        hosts = AllowedHosts.of(address, self.allowed_hosts, name=self.host, keys=self.keys is not None)
        for module in ("uvicorn", "fastapi"):
            need(module, extra="serve", purpose="servers")
        bars = show.on_event if show.console.is_terminal else None  # a log has JSON lines only
        with Preparation(("serving",), on_event=bars) as preparation:  # other processes compile meanwhile
            from labelwise.serve.app import Application, ServerConfig
            from labelwise.serve.logs import JsonLog
            from labelwise.serve.server import run

            log = JsonLog(requests=not self.quiet)
            if preparation.kernels:
                log.event("preparing_kernels", kernels=len(preparation.kernels))
            preparation.wait()
        application = Application(
            ServerConfig(
                folders=folders,
                limits=limits,
                keys=self.keys,
                hosts=hosts,
                cors=self.cors,
                examples=examples,
                watch=self.watch,
                threads=self.threads,
                device=self.device,
                log=log,
            )
        )
        run(application, host=self.host, port=self.port, drain=self.drain)


def example_texts(file: Path | None) -> list[str]:
    """The first texts of a file with one text per line."""
    if file is None:
        return []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as err:
        raise UsageError(f"--examples {file}: it is not UTF-8 text; give a text file with one text per line") from err
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        raise UsageError(f"--examples {file}: it holds no text; give a text file with one text per line")
    return texts[:N_EXAMPLES]


def bound_address(host: str, port: int) -> str:
    """The address that a host stands for on this machine; an error if the server could not listen there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, TypeError) as err:  # a TypeError: no name that could be encoded
            reason = getattr(err, "strerror", None) or err
            remedy = "; choose another port with --port" if getattr(err, "errno", None) == errno.EADDRINUSE else ""
            raise UsageError(f"cannot listen on {host}:{port}: {reason}{remedy}") from err
        return str(probe.getsockname()[0])


def model_folders(models: tuple[str, ...]) -> dict[str, Path]:
    """Model folders by name: the name in NAME=FOLDER, else the name of the folder."""
    if not models:
        raise UsageError("no model is given; write labelwise serve MODEL, with the folder of a trained model")
    folders: dict[str, Path] = {}
    for given in models:
        name, equals, folder = given.partition("=")
        if not equals or Path(given).is_dir():
            name, folder = Path(given).resolve().name, given
        if not re.fullmatch(r"[\w.-]{1,64}", name):
            raise UsageError(f"{name!r} is not a model name; use letters, digits, dots and dashes: NAME={folder}")
        if name in folders:
            raise UsageError(f"two models are called {name!r}; give them names: a={folders[name]} b={folder}")
        folders[name] = Path(folder)
    return folders
