"""One HTTP request read off a connection, kept as it came. h11 knows the framing and says what is wrong with it."""

from __future__ import annotations

import socket
from typing import Final

import h11

from conformance.spec.text import escape_text
from conformance.wire.client_request import ClientRequest

MAX_HEAD_BYTES: Final = 64 * 1024  # bytes of a head that are read
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
_READ: Final = 64 * 1024
_GO_AHEAD: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._left_over = b""

    def read(self) -> ClientRequest | None:
        """Return the next request; None where the client has closed, or sent nothing more in time.

        What is no whole request of HTTP is one with `trouble`, as far as it came.
        """
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        if self._left_over:  # nothing at all would mean that the client has closed
            parser.receive_data(self._left_over)
        head: h11.Request | None = None
        body = bytearray()
        try:
            while not isinstance(event := self._next(parser), h11.EndOfMessage):
                if isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.ConnectionClosed):
                    return None
                if len(body) > MAX_BODY_BYTES:
                    return make_received(head, bytes(body), f"a body of more than {MAX_BODY_BYTES} bytes")
        except h11.RemoteProtocolError as error:
            return make_received(head, bytes(body), escape_text(str(error)))
        except OSError:
            return None if head is None else make_received(head, bytes(body), "the rest of the request never came")
        self._left_over = parser.trailing_data[0]
        return make_received(head, bytes(body), "")

    def _next(self, parser: h11.Connection) -> object:
        """Return the next event that is one."""
        while (event := parser.next_event()) is h11.NEED_DATA:
            if parser.they_are_waiting_for_100_continue:
                self._socket.sendall(_GO_AHEAD)
            parser.receive_data(self._socket.recv(_READ))
        return event


def make_received(head: h11.Request | None, body: bytes, trouble: str) -> ClientRequest:
    """Return a request as the rules for clients look at it."""
    if head is None:
        return ClientRequest("", "", body=body, trouble=trouble)
    headers = tuple((_text(name), _text(value)) for name, value in head.headers.raw_items())
    chunked = any(name.lower() == "transfer-encoding" and value.lower().endswith("chunked") for name, value in headers)
    version = f"HTTP/{_text(head.http_version)}"
    return ClientRequest(_text(head.method), _text(head.target), headers, body, version, chunked, trouble)


def is_kept_alive(received: ClientRequest) -> bool:
    """Whether the client keeps the connection open behind an answer (RFC 9112 9.3)."""
    options = [option.strip().lower() for option in (received.header("Connection") or "").split(",")]
    if received.trouble or "close" in options:
        return False
    return received.version != "HTTP/1.0" or "keep-alive" in options


def _text(octets: bytes) -> str:
    return bytes(octets).decode("latin-1")
