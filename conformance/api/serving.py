"""Serves an ASGI app on a free port of 127.0.0.1 inside a `with` block, with uvicorn in a thread of this process.

The suite examines bytes on a connection, so a framework's test client is not enough. The suite judges the app, not the
HTTP server in front of it: where uvicorn violates HTTP, `AsgiWrapper` compensates.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn

from conformance.api.arguments import AsgiApp, JudgeError
from conformance.spec.text import escape_text

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

LENGTH_HEADERS = {b"content-length", b"transfer-encoding"}


class AsgiWrapper:
    """An ASGI app that forwards every call to another app.

    Attributes:
        failure: the message of the app, on one line, if the lifespan startup of the app fails; otherwise empty.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self.failure = ""

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """Forward one call."""
        if scope["type"] == "lifespan":
            send = self._watch_startup(send)
        elif scope["type"] == "http" and {name for name, _ in scope["headers"]} >= LENGTH_HEADERS:
            send = _add_connection_close(send)
        await self._app(scope, receive, send)

    def _watch_startup(self, send: Send) -> Send:
        async def send_and_watch(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":  # usually a whole traceback
                self.failure = escape_text(str(message.get("message", "")).strip().rpartition("\n")[2])
            await send(message)

        return send_and_watch


def _add_connection_close(send: Send) -> Send:
    """Return a `send` function that adds the header `Connection: close` to an answer.

    RFC 9112 6.3 requires this header if the request has both Content-Length and Transfer-Encoding.

    """

    async def send_with_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            own: Headers = message.get("headers", ())
            kept = [(name, value) for name, value in own if name.lower() != b"connection"]
            message["headers"] = [*kept, (b"connection", b"close")]
        await send(message)

    return send_with_close


BACKLOG = 2048  # the suite opens many connections at once
MAX_START_S, MAX_STOP_S = 60.0, 10.0
POLL_S = 0.01
KEEP_ALIVE_S, IN_FLIGHT_S = 60, 2


@contextmanager
def serve_app(app: AsgiApp) -> Iterator[str]:
    """Serve the app inside the block and yield its URL; the app's lifespan starts before and ends after the block.

    Raises:
        JudgeError: the app does not start.
    """
    wrapper = AsgiWrapper(app)
    with _open_listener() as listener, _disable_access_log():
        server = uvicorn.Server(_build_config(wrapper))
        thread = threading.Thread(target=_run_server, args=(server, listener), name="judged-app", daemon=True)
        thread.start()
        try:
            _wait_for_start(server, thread, wrapper)
            yield "http://127.0.0.1:{1}".format(*listener.getsockname())
        finally:
            server.should_exit = True
            thread.join(MAX_STOP_S)


def _open_listener() -> socket.socket:
    # asyncio sets TCP_NODELAY only if the protocol is explicit; without it requests on kept connections wait 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    return listener


@contextmanager
def _disable_access_log() -> Iterator[None]:
    """Disable uvicorn's access log, which would show thousands of requests; leave its other logs unchanged."""
    log = logging.getLogger("uvicorn.access")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _build_config(app: AsgiApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http="h11",  # discards data outside of requests: trailers do not become headers, for instance
        ws="none",
        log_config=None,  # leave the logging of this process unchanged
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=IN_FLIGHT_S,
    )


def _run_server(server: uvicorn.Server, listener: socket.socket) -> None:
    with suppress(SystemExit):  # uvicorn exits if the app does not start
        server.run([listener])


def _wait_for_start(server: uvicorn.Server, thread: threading.Thread, wrapper: AsgiWrapper) -> None:
    limit = time.monotonic() + MAX_START_S
    while not server.started:
        if not thread.is_alive():
            raise JudgeError(f"the app does not start: {wrapper.failure or 'its log has the reason'}")
        if time.monotonic() > limit:
            raise JudgeError(f"the app does not start within {MAX_START_S:g} seconds")
        time.sleep(POLL_S)
