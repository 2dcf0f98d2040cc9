"""How uvicorn serves the application, for the command and for tests, and how it begins and ends: quietly, and in time.

At the end a connection goes at once where no whole request has come; an answer under way has a moment. Nothing of this
is worth a line; what runs out of descriptors is worth one now and then.
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
    """Return a configuration: HTTP alone, an OIP error for what is none, and no header but those of the application.

    Args:
        application: an ASGI 3 application.
        log_level: of uvicorn's own messages.
        keep_alive_seconds: after which an idle connection is closed.
        shutdown_seconds: that requests in flight have at the end.
        limits: on heads; those on bodies are the application's.
    """
    return uvicorn.Config(
        application,
        interface="asgi3",
        loop="asyncio",  # whatever else is installed: what becomes of clients is tested with this one
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


GRACE_PERIOD_S = 1.0  # seconds that answers under way have
MIN_LOG_INTERVAL_S = 60.0  # seconds
EXHAUSTION_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class QuietServer(uvicorn.Server):
    """uvicorn's server, which ends within two seconds and says little."""

    _last_line = -MIN_LOG_INTERVAL_S

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        workers.shorten_switch_interval()
        # asyncio warns of each write to a connection that its client has reset: that is the client's affair.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        asyncio.get_running_loop().set_exception_handler(self._note)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End: what has begun to be answered has a moment."""
        ending = asyncio.get_running_loop().call_later(GRACE_PERIOD_S, self._end_all)
        await super().shutdown(sockets)
        ending.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal; one that is sent again, out of impatience, cuts nothing short that ends in time."""
        super().handle_exit(sig, frame)
        self.force_exit = False

    def _end_all(self) -> None:
        workers.give_up()
        for connection in list(self.server_state.connections):
            if isinstance(connection, OipHttpProtocol):
                connection.transport.abort()

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Say that there are no descriptors left, at most a line a minute; asyncio says it for every connection."""
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in EXHAUSTION_ERRNOS):
            if not self.should_exit:
                loop.default_exception_handler(context)
        elif loop.time() - self._last_line >= MIN_LOG_INTERVAL_S:
            self._last_line = loop.time()
            sys.stderr.write(f"new connections have to wait: {error.strerror}\n")
