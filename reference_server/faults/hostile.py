"""Robustness faults: servers without protection against hostile clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from reference_server.faults import fault, steps
from reference_server.faults.ended_servers import crash_model

LARGE_BODY_BYTES = 256 * 1024
HUGE_DIMENSION = 2**31
MAX_CONCURRENT = 8  # connections that are served concurrently


class _NullTransport:
    """A transport whose methods do nothing, so that the connection stays open and nothing is sent."""

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_: None


@fault(steps.DATA_RECEIVED, breaks="ROBUST-HEAD")
def head_is_read_for_ever(original: Any, self: Any, data: bytes) -> None:
    """If more than 1 KiB of a head arrive without the end of the head, the server reads on and never answers."""
    is_first = data[:4] in (b"POST", b"GET ")
    if getattr(self, "swallows", False) or (is_first and b"\r\n\r\n" not in data and len(data) > 1024):
        self.swallows, self.transport = True, _NullTransport()
        return
    original(self, data)


first_of_two_lengths_counts = steps.DATA_RECEIVED.before(
    "ROBUST-FRAMING",
    data=lambda data: re.sub(rb"(Content-Length: [0-9]+)(?:\r\nContent-Length:|,) ?[0-9]+", rb"\1", data),
).says("If a request has two Content-Length values, the server uses the first.")
chunks_of_an_earlier_version_go_on = steps.DATA_RECEIVED.before(
    "ROBUST-FRAMING",
    data=lambda data: data.replace(b" HTTP/1.0\r\n", b" HTTP/1.1\r\n", 1),
    when=lambda data: b"chunked" in data.partition(b"\r\n\r\n")[0].lower(),
).says("The server accepts chunks in HTTP/1.0, and further requests after them, as in HTTP/1.1.")
chunk_sizes_have_64_bits = steps.DATA_RECEIVED.before(
    "ROBUST-CHUNK-SIZE",
    data=lambda data: re.sub(rb"\r\n\r\n(?:[+-]|0x|[0-9A-F]+(?=[0-9A-F]{16}))([0-9A-F]+\r\n)", rb"\r\n\r\n\1", data),
).says("The server reads only the last 16 digits of a chunk size, and ignores a sign or `0x` before them.")


@fault(steps.DATA_RECEIVED, breaks="ROBUST-CHUNK-EXTENSION")
def chunk_lines_are_read_for_ever(original: Any, self: Any, data: bytes) -> None:
    """The server reads trailers and long chunk extensions without end and never answers."""
    if getattr(self, "swallows", False) or re.search(rb"\r\n\r\n1;x{20}|\r\n\r\n1(;x=1){5}|\r\n0\r\nX", data):
        self.swallows, self.transport = True, _NullTransport()
        return
    original(self, data)


@fault("http_protocol.OipHttpProtocol.eof_received", breaks="ROBUST-CUT")
def cut_body_is_taken_for_whole(original: Any, self: Any) -> bool:
    """If a client closes the connection inside a body, the server runs the request on the part that arrived."""
    if not (self.cycle is not None and self.cycle.more_body):
        return original(self)
    self.cycle.more_body = False
    self.cycle.message_event.set()
    return True


@fault("http_protocol.OipHttpProtocol.connection_lost", steps.CONNECTION_MADE, breaks="ROBUST-RESET")
def next_connection_after_a_reset_is_closed(original: Any, self: Any, argument: Any) -> None:
    """After a client resets its connection, the server closes the next connection at once."""
    original(self, argument)
    if isinstance(argument, Exception):
        self.server_state.is_harmed = True
    elif argument is not None and getattr(self.server_state, "is_harmed", False):
        self.server_state.is_harmed = False
        argument.abort()


@fault(steps.CONNECTION_MADE, breaks=("ROBUST-SLOW", "ROBUST-RESET"))
def few_connections_are_served_at_a_time(original: Any, self: Any, transport: Any) -> None:
    """The server reads nothing from a connection that opens while eight others are open."""
    original(self, transport)
    if len(self.connections) > MAX_CONCURRENT:
        transport.pause_reading()


@fault(steps.INFER, breaks="ROBUST-RESET")
async def places_of_clients_that_leave_are_kept(original: Any, self: Any, http: Request) -> Response:
    """The server counts requests of disconnected clients as running, and answers 503 beyond eight requests."""
    self.taken = getattr(self, "taken", 0) + 1
    try:
        if self.taken > MAX_CONCURRENT:
            return JSONResponse({"error": "too many requests are running"}, 503)
        return await original(self, http)
    except ClientDisconnect:
        self.taken += 1  # cancels the decrement below
        raise
    finally:
        self.taken -= 1


async def _wait_for_disconnect(http: Request) -> Response:
    """Wait until the client disconnects."""
    while (await http.receive())["type"] != "http.disconnect":
        pass
    return Response(status_code=500)


@fault(steps.INFER, breaks="ROBUST-LARGE")
async def large_documents_are_never_answered(original: Any, self: Any, http: Request) -> Response:
    """The server reads an inference request of more than 256 KiB, but never answers."""
    if int(http.headers.get("content-length", "0")) > LARGE_BODY_BYTES:
        return await _wait_for_disconnect(http)
    return await original(self, http)


@fault(steps.READ_BODY, breaks=("ROBUST-BOMB", "ROBUST-CODING"))
async def packed_bodies_are_never_answered(original: Any, self: Any, http: Request) -> bytes:
    """The server never answers a compressed request of more than 1 KiB."""
    if "content-encoding" in http.headers and int(http.headers.get("content-length", "0")) > 1024:
        await _wait_for_disconnect(http)
    return await original(self, http)


def _has_large_number(body: bytes) -> bool:
    numbers = re.findall(rb"[\[,]\s*([0-9]{10,40})", body.partition(b'"data"')[0])
    return any(int(digits) >= HUGE_DIMENSION for digits in numbers)


large_dimension_ends_the_model = steps.INFER.before("ROBUST-NUMBERS", self=crash_model, when=_has_large_number).says(
    "After a request with a dimension of 2^31 or more, the server no longer has the model."
)
path_of_a_file_is_followed = steps.ANSWER_ROUTING_ERROR.instead(
    "ROBUST-PATH", lambda http: JSONResponse({"file": http.url.path}), when=lambda http: ".." in http.url.path
).says("The server follows `..` in an unknown path and answers with status 200, as if it had found a file.")


@fault("grpc_server.Service.__init__", steps.ANSWER_CALL, breaks="ROBUST-LARGE/grpc")
def large_messages_end_the_models(original: Any, *arguments: Any) -> Any:
    """After a gRPC message of more than 256 KiB, the server no longer has any models."""
    return _remove_models_if_too_large(original, arguments, lambda _, octets: len(octets) > LARGE_BODY_BYTES)


@fault("grpc_server.Service.__init__", steps.ANSWER_CALL, breaks="ROBUST-NUMBERS/grpc")
def large_dimensions_end_the_models(original: Any, *arguments: Any) -> Any:
    """After a gRPC message with a dimension of 2^31 or more, the server no longer has any models."""
    return _remove_models_if_too_large(original, arguments, _has_large_dimension)


def _remove_models_if_too_large(
    original: Any, arguments: tuple[Any, ...], is_too_large: Callable[[Any, bytes], bool]
) -> Any:
    """Remove all models after a call that is too large. This body replaces both `Service.__init__` and `answer`."""
    if len(arguments) == 2:
        service, models = arguments
        return original(service, dict(models))  # a copy, so that other services keep their models
    models, method, octets = arguments
    if is_too_large(method, octets):
        models.clear()
    return original(models, method, octets)


def _has_large_dimension(method: Any, octets: bytes) -> bool:
    inputs = getattr(method.request.FromString(octets), "inputs", ())
    return any(dimension >= HUGE_DIMENSION for item in inputs for dimension in item.shape)
