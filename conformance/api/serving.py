"""Serves an ASGI app on a free port of 127.0.0.1, by uvicorn in a thread of this process, for as long as a block lasts.

The suite looks at bytes on a connection, so that no test client of a framework would do. What is judged is the app,
not the server that it will have in front: where uvicorn itself does not keep to HTTP, `AsgiWrapper` makes up for it.
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
    """An app that passes everything on to another.

    Attributes:
        failure: what the app says where its lifespan does not start, in one line; else empty.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self.failure = ""

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """Carry out one call."""
        if scope["type"] == "lifespan":
            send = self._listening(send)
        elif scope["type"] == "http" and {name for name, _ in scope["headers"]} >= LENGTH_HEADERS:
            send = _closing(send)
        await self._app(scope, receive, send)

    def _listening(self, send: Send) -> Send:
        async def listened(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":  # with a whole traceback, mostly
                self.failure = escape_text(str(message.get("message", "")).strip().rpartition("\n")[2])
            await send(message)

        return listened


def _closing(send: Send) -> Send:
    """Close the connection after an answer: what RFC 9112 6.3 asks of a server that was told two lengths."""

    async def closed(message: Message) -> None:
        if message["type"] == "http.response.start":
            own: Headers = message.get("headers", ())
            kept = [(name, value) for name, value in own if name.lower() != b"connection"]
            message["headers"] = [*kept, (b"connection", b"close")]
        await send(message)

    return closed


BACKLOG = 2048  # the suite opens many connections at once
START_LIMIT, STOP_LIMIT = 60.0, 10.0  # seconds
POLL_S = 0.01
KEEP_ALIVE_SECONDS, IN_FLIGHT_SECONDS = 60, 2


@contextmanager
def serve_app(app: AsgiApp) -> Iterator[str]:
    """Serve the app until the end of the block, which gets its URL; its lifespan is carried out around it.

    Raises:
        JudgeError: it does not start.
    """
    front = AsgiWrapper(app)
    with _listener() as listener, _without_access_log():
        server = uvicorn.Server(_config(front))
        thread = threading.Thread(target=_serve, args=(server, listener), name="judged-app", daemon=True)
        thread.start()
        try:
            _wait(server, thread, front)
            yield "http://127.0.0.1:{1}".format(*listener.getsockname())
        finally:
            server.should_exit = True
            thread.join(STOP_LIMIT)


def _listener() -> socket.socket:
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it every kept connection waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    return listener


@contextmanager
def _without_access_log() -> Iterator[None]:
    """Keep thousands of requests out of the log; what else uvicorn has to say is for the owner of this process."""
    log = logging.getLogger("uvicorn.access")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _config(app: AsgiApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http="h11",  # what belongs to no request reaches no app: trailers are not read as headers, for instance
        ws="none",
        log_config=None,  # the logging of this process is its owner's
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=IN_FLIGHT_SECONDS,
    )


def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    with suppress(SystemExit):  # how uvicorn says that the app does not start
        server.run([listener])


def _wait(server: uvicorn.Server, thread: threading.Thread, front: AsgiWrapper) -> None:
    limit = time.monotonic() + START_LIMIT
    while not server.started:
        if not thread.is_alive():
            raise JudgeError(f"the app does not start: {front.failure or 'its log says why'}")
        if time.monotonic() > limit:
            raise JudgeError(f"the app does not start within {START_LIMIT:g} seconds")
        time.sleep(POLL_S)
