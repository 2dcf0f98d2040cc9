"""The uvicorn configuration, for the command and for tests, and a server that starts and stops quietly and in time.

At shutdown a connection without a complete request closes at once; an answer in flight gets GRACE_PERIOD_S. The server
logs nothing about its shutdown. It logs at most once a minute that descriptors have run out.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from types import FrameType
from typing import Any

import uvicorn

from reference_server import workers
from reference_server.http_protocol import OipHttpProtocol, make_protocol
from reference_server.limits import DEFAULT, Limits


def make_uvicorn_config(
    application: Any, *, log_level: str, keep_alive_seconds: int, shutdown_seconds: int, limits: Limits = DEFAULT
) -> uvicorn.Config:
    """Return a configuration: HTTP only, OIP errors for malformed requests, no headers but the application's.

    Args:
        application: an ASGI 3 application.
        log_level: for uvicorn's messages.
        keep_alive_seconds: time after which an idle connection is closed.
        shutdown_seconds: time for requests in flight at shutdown.
        limits: limits on connections and heads; the application enforces those on bodies.
    """
    return uvicorn.Config(
        application,
        interface="asgi3",
        loop="asyncio",  # even if uvloop is installed: connection handling is tested with asyncio
        http=make_protocol(limits),
        ws="none",
        lifespan="off",
        log_level=log_level,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=keep_alive_seconds,
        timeout_graceful_shutdown=shutdown_seconds,
    )


GRACE_PERIOD_S = 1.0  # time for answers in flight at shutdown
MIN_LOG_INTERVAL_S = 60.0  # seconds
EXHAUSTION_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class QuietServer(uvicorn.Server):
    """uvicorn's server, modified to stop within two seconds and to log little."""

    _last_line = -MIN_LOG_INTERVAL_S

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving."""
        workers.shorten_switch_interval()
        # asyncio warns about each write to a connection that its client has reset, which is no fault of the server.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        asyncio.get_running_loop().set_exception_handler(self._log_exception)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; answers in flight get GRACE_PERIOD_S to finish."""
        ending = asyncio.get_running_loop().call_later(GRACE_PERIOD_S, self._abort_all_connections)
        await super().shutdown(sockets)
        ending.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal; a repeated signal does not force an immediate exit."""
        super().handle_exit(sig, frame)
        self.force_exit = False

    def _abort_all_connections(self) -> None:
        workers.refuse_waiting_work()
        for connection in list(self.server_state.connections):
            if isinstance(connection, OipHttpProtocol):
                connection.transport.abort()

    def _log_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log that descriptors have run out, at most once a minute; asyncio would log it for every connection."""
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in EXHAUSTION_ERRNOS):
            if not self.should_exit:
                loop.default_exception_handler(context)
        elif loop.time() - self._last_line >= MIN_LOG_INTERVAL_S:
            self._last_line = loop.time()
            sys.stderr.write(f"new connections must wait: {error.strerror}\n")
