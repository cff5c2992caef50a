"""uvicorn around the application: signals, draining, an end."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import sys

import uvicorn

from labelwise.serve.app import Application
from labelwise.serve.protocol import Protocol, Remarks

SWITCH_SECONDS = 0.001
"""A thread that computes gives way after this long: five times sooner than by default, for the slowest answers."""


class _Server(uvicorn.Server):
    """Tells the application when it begins to drain."""

    def __init__(self, config: uvicorn.Config, application: Application) -> None:
        super().__init__(config)
        self._application = application

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # what is there now stays; looking through all of it again would cost a tenth of a second
        for server in self.servers:
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                self._application.log.event("listening", host=host, port=port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.draining = True
        self._application.log.event("draining")
        await super().shutdown(sockets)


def run(application: Application, *, host: str, port: int, drain: float = 30.0) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then finish those that have come."""
    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        http=Protocol,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=int(drain),
        timeout_keep_alive=30,
        ws="none",
        proxy_headers=False,
        lifespan="on",
    )
    logger = logging.getLogger("uvicorn")
    logger.addHandler(Remarks(application.log))
    logger.propagate = False
    # uvicorn raises the signal again when all is done; a drained server has ended well.
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        _Server(config, application).run()
    application.log.flush()
