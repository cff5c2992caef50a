"""The server: uvicorn around the application, with draining before the end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import os
import socket
import sys

import uvicorn

from labelwise.serve.app import Application
from labelwise.serve.protocol import JsonErrorProtocol, UvicornLogHandler

SWITCH_SECONDS = 0.001
"""Seconds after which Python switches threads: a fifth of its default, which makes the slowest answers faster."""
ACCEPT_SECONDS = 0.05
"""Seconds for accepting the connections that wait when the server stops."""


class _Server(uvicorn.Server):
    """Sets `draining` of the application when the server is about to stop."""

    def __init__(self, config: uvicorn.Config, application: Application) -> None:
        super().__init__(config)
        self._application = application

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # these objects stay; each collection of all of them would take a tenth of a second
        for server in self.servers:
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                self._application.log.event("listening", host=host, port=port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.draining = True
        self._application.log.event("draining")
        await self._accept_what_waits()
        await super().shutdown(sockets)

    async def _accept_what_waits(self) -> None:
        """Accept the connections that the system has made already: closing the socket would reset them."""
        for server in self.servers:
            for listening in server.sockets:
                with (
                    contextlib.suppress(OSError, AttributeError),
                    socket.socket(fileno=os.dup(listening.fileno())) as copy,
                ):
                    copy.listen(0)  # the system makes no more than one further connection
        await asyncio.sleep(ACCEPT_SECONDS)


def run(application: Application, *, host: str, port: int, drain: float = 30.0) -> None:
    """Answer requests until SIGTERM or Ctrl-C, then finish the requests that have arrived."""
    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        http=JsonErrorProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=math.ceil(drain),
        timeout_keep_alive=30,
        ws="none",
        proxy_headers=False,
        lifespan="on",
    )
    logger = logging.getLogger("uvicorn")
    logger.addHandler(UvicornLogHandler(application.log))
    logger.propagate = False
    # uvicorn raises the signal again at the end; for a drained server that is not an error.
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        _Server(config, application).run()
    application.log.flush()
