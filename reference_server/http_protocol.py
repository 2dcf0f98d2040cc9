"""What uvicorn does with bytes, bent to the protocol: every error has the OIP form, and a trailer is no header.

The one place that touches uvicorn's inside. `heads.py` says which heads are refused.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reference_server import heads
from reference_server.heads import HeadRefusal
from reference_server.limits import DEFAULT, Limits
from reference_server.response import encode


class RefusedHeadError(Exception):
    """The head of a request is refused; raised through the parser, which stops there."""


class OipHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with an OIP error for malformed requests, limits on heads, and without trailers."""

    limits: Limits = DEFAULT
    _is_behind_the_head = False
    _is_in_head = False  # whether a head has begun, and has not ended
    _head_size = 0  # bytes of it, but for those that came with its first
    _head_timer: asyncio.TimerHandle | None = None
    _refusal: HeadRefusal = heads.MALFORMED

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection; the first head has to come in time."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.limits.patience, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head may have so many and no more."""
        was_in_head = self._is_in_head
        super().data_received(data)
        self._head_size = self._head_size + len(data) if was_in_head and self._is_in_head else 0
        if self._head_size > self.limits.head and not self.transport.is_closing():
            self._refuse(heads.TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._is_behind_the_head, self._is_in_head = False, True
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.patience, self._give_up)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; a field behind the body is none, whatever its name (RFC 9112, 7.1.2)."""
        if not self._is_behind_the_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """End the head of a request."""
        self._is_behind_the_head, self._is_in_head = True, False
        self._stop_timer()
        refusal = heads.refusal(self.parser.get_http_version(), self.headers)
        if refusal is not None:
            self._refusal = refusal
            raise RefusedHeadError
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse a malformed request and close; a whole request in front of it still gets its own answer first."""
        if self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body:
            self.cycle.keep_alive = False
            return
        self._refuse(self._refusal)

    def _give_up(self) -> None:
        """End a connection whose next head does not come; where one has begun, with an answer."""
        self._head_timer = None
        if self._is_in_head:
            self._refuse(heads.TOO_SLOW)
        else:
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, refusal: HeadRefusal) -> None:
        status: HTTPStatus = refusal.status
        body = encode({"error": refusal.message})
        head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode("ascii") + body)
        self.transport.close()


def protocol_within(limits: Limits) -> type[OipHttpProtocol]:
    """Return the protocol with limits of its own, as uvicorn takes one: a class."""
    return type("LimitedOipHttpProtocol", (OipHttpProtocol,), {"limits": limits})
