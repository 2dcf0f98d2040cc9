"""gRPC: calls that end as no library of gRPC ends them. A front of bare HTTP/2 takes the calls and hands them on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from reference_server.faults import fault

INTERNAL_ERROR, CANCEL = 2, 8  # of HTTP/2 (RFC 9113, 7)
FRAME, WINDOW = 16 * 1024, 64 * 1024 * 1024
HEADERS = ((":status", "200"), ("content-type", "application/grpc"))
# How a refused call ends: called with the connection and the number of the stream.
End = Callable[[Any, int], None]


def run_behind_front(original: Any, arguments: tuple[Any, ...], end: End) -> Any:
    """Take a step of a server behind a front; how it listens is one, and every call is another."""
    made = original(*arguments)
    if len(arguments) == 5:
        server = arguments[0]
        listener = socket.create_server(("127.0.0.1", 0))
        inner, server.address = server.address, f"127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=_accept, args=(listener, inner, end), daemon=True).start()
    return made


def _accept(listener: socket.socket, inner: str, end: End) -> None:
    import grpc

    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_retries", 0)]
    channel = grpc.insecure_channel(inner, options)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, channel, end), daemon=True).start()


def _serve(connection: socket.socket, channel: Any, end: End) -> None:
    """Answer the calls of a connection, one after the other."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2.exceptions import ProtocolError
    from h2.settings import SettingCodes, Settings

    http2 = H2Connection(H2Configuration(client_side=False))
    http2.local_settings = Settings(client=False, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: WINDOW})
    http2.initiate_connection()
    http2.increment_flow_control_window(WINDOW)
    calls: dict[int, tuple[str, bytearray]] = {}
    with connection, suppress(OSError, ProtocolError):
        connection.sendall(http2.data_to_send())
        while octets := connection.recv(256 * 1024):
            for event in http2.receive_data(octets):
                _take(http2, event, calls, channel, end)
            connection.sendall(http2.data_to_send())


def _take(http2: Any, event: Any, calls: dict[int, tuple[str, bytearray]], channel: Any, end: End) -> None:
    from h2.events import DataReceived, RequestReceived, StreamEnded

    if isinstance(event, RequestReceived):
        named: bytes = dict(event.headers)[b":path"]
        calls[event.stream_id] = (named.decode(), bytearray())
    elif isinstance(event, DataReceived):
        calls[event.stream_id][1].extend(event.data)
        http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
    elif isinstance(event, StreamEnded):
        path, data = calls.pop(event.stream_id)
        _answer(http2, event.stream_id, channel.unary_unary(path), bytes(data[5:]), end)


def _answer(http2: Any, stream: int, call: Any, message: bytes, end: End) -> None:
    import grpc

    try:
        found = call(message)
    except grpc.RpcError:
        end(http2, stream)
        return
    http2.send_headers(stream, HEADERS)
    data = b"\0" + len(found).to_bytes(4, "big") + found
    for start in range(0, len(data), FRAME):
        http2.send_data(stream, data[start : start + FRAME])
    http2.send_headers(stream, (("grpc-status", "0"),), end_stream=True)


LISTENS, CALLS = "grpc_server.GrpcServer.__init__", "grpc_server.answer"


@fault(LISTENS, CALLS, breaks="GRPC-STATUS")
def grpc_refused_streams_are_reset(original: Any, *arguments: Any) -> Any:
    """A stream whose call is refused is reset with INTERNAL_ERROR, and no status is sent."""
    return run_behind_front(original, arguments, lambda http2, stream: http2.reset_stream(stream, INTERNAL_ERROR))
