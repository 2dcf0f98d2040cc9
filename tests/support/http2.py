"""A server that ends each call as a test tells it, frame by frame, also as no gRPC library would."""

from __future__ import annotations

import socket
from collections.abc import Callable

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

from tests.support.scripted_server import Script

# Called with the connection and the number of the stream on which a whole request has come.
End = Callable[[H2Connection, int], None]
HEADERS = [(":status", "200"), ("content-type", "application/grpc")]


def end_calls(end: End) -> Script:
    """Return a script that ends every call of a connection alike."""

    def script(connection: socket.socket) -> None:
        http2 = H2Connection(H2Configuration(client_side=False))
        http2.initiate_connection()
        connection.sendall(http2.data_to_send())
        while octets := connection.recv(65536):
            for event in http2.receive_data(octets):
                if isinstance(event, StreamEnded):
                    end(http2, event.stream_id)
            connection.sendall(http2.data_to_send())

    return script


def make_reset(code: int, *, headers: bool = False, data: bytes = b"") -> End:
    """Return an end without a status: a RST_STREAM, at once or behind a part of an answer."""

    def end(http2: H2Connection, stream: int) -> None:
        if headers:
            http2.send_headers(stream, HEADERS)
            http2.send_data(stream, data)
        http2.reset_stream(stream, code)

    return end


def make_answer(*trailers: tuple[str, str], data: bytes = b"", status: str = "200") -> End:
    """Return an answer of headers, data, and trailers; without trailers the data end it."""

    def end(http2: H2Connection, stream: int) -> None:
        http2.send_headers(stream, [(":status", status), *HEADERS[1:]])
        http2.send_data(stream, data, end_stream=not trailers)
        if trailers:
            http2.send_headers(stream, trailers, end_stream=True)

    return end


def make_trailers_only(*headers: tuple[str, str], status: str = "200") -> End:
    """Return an answer of one block of headers."""

    def end(http2: H2Connection, stream: int) -> None:
        http2.send_headers(stream, [(":status", status), *HEADERS[1:], *headers], end_stream=True)

    return end
