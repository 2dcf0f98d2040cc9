"""What stands between uvicorn and an app that is judged in process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from conformance.api.arguments import AsgiApp
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
