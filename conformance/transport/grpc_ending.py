"""How a gRPC call ended: with a status of the server, without one, or with something that is no answer at all.

Sources: gRPC over HTTP2, "Responses" and "Errors"; HTTP to gRPC Status Code Mapping.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.grpc_stream import Stream

# The codes by number, each with the HTTP status that stands for it, as google.rpc.Code maps them: what is 400 and above
# is a refusal.
CODES: tuple[tuple[str, int], ...] = (
    ("OK", 200),
    ("CANCELLED", 499),
    ("UNKNOWN", 500),
    ("INVALID_ARGUMENT", 400),
    ("DEADLINE_EXCEEDED", 504),
    ("NOT_FOUND", 404),
    ("ALREADY_EXISTS", 409),
    ("PERMISSION_DENIED", 403),
    ("RESOURCE_EXHAUSTED", 429),
    ("FAILED_PRECONDITION", 400),
    ("ABORTED", 409),
    ("OUT_OF_RANGE", 400),
    ("UNIMPLEMENTED", 501),
    ("INTERNAL", 500),
    ("UNAVAILABLE", 503),
    ("DATA_LOSS", 500),
    ("UNAUTHENTICATED", 401),
)
OK, UNKNOWN = CODES[0], CODES[2]

# What a client makes of an answer of a gateway that speaks no gRPC.
OF_HTTP = {
    400: "INTERNAL",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
    **dict.fromkeys((429, 502, 503, 504), "UNAVAILABLE"),
}
PREFIX = 5  # bytes in front of a message: whether it is compressed, and its length
RESETS = {0: "NO_ERROR", 1: "PROTOCOL_ERROR", 2: "INTERNAL_ERROR", 7: "REFUSED_STREAM", 8: "CANCEL"}


def ended(exchange: Exchange, stream: Stream, largest: int) -> Exchange:
    """Return the exchange of a call whose stream is done."""
    found = replace(exchange, headers=tuple(pair for pair in (*stream.headers, *stream.trailers) if pair[0][0] != ":"))
    given = _given(stream, "grpc-status")
    if stream.failure is not None and given is None:
        return replace(found, failure=stream.failure)
    if given is not None:
        return _with_status(found, stream, given, largest)
    http = _given(stream, ":status") or ""
    if http != "200" and http.isdecimal() and stream.has_ended:
        code = OF_HTTP.get(int(http), "UNKNOWN")
        return replace(found, status=int(http), code=code, details=f"HTTP status {http}")
    if stream.reset is not None:
        name = RESETS.get(stream.reset, f"error code {stream.reset}")
        return _failed(found, FailureKind.STATUSLESS, f"the stream was reset ({name}) without a status")
    return _failed(found, FailureKind.STATUSLESS, "the stream ended without a status")


def _given(stream: Stream, name: str) -> str | None:
    """Return the last value of a header of the answer."""
    return next((value for key, value in reversed((*stream.headers, *stream.trailers)) if key == name), None)


def _with_status(found: Exchange, stream: Stream, given: str, largest: int) -> Exchange:
    known = given.isdecimal() and int(given) < len(CODES)
    code, status = CODES[int(given)] if known else UNKNOWN
    if (code, status) != OK:
        details = unquote(_given(stream, "grpc-message") or "", errors="replace")
        return replace(found, status=status, code=code, details=details)
    body, wrong = _message(bytes(stream.data))
    if wrong:
        return _failed(found, FailureKind.MALFORMED, f"the status OK with {wrong}")
    if len(body) > largest:
        return _failed(found, FailureKind.ENDLESS, f"answer longer than {largest} bytes")
    return replace(found, status=status, code=code, body=body)


def _message(data: bytes) -> tuple[bytes, str]:
    """Return the one message of an answer, or what there is instead."""
    if not data:
        return b"", "no message"
    length = int.from_bytes(data[1:PREFIX], "big")
    if len(data) < PREFIX or len(data) < PREFIX + length:
        return b"", f"a message cut short after {len(data)} bytes"
    if data[0]:
        return b"", "a compressed message, which nobody asked for"
    if len(data) > PREFIX + length:
        return b"", f"{len(data) - PREFIX - length} bytes behind its message"
    return data[PREFIX:], ""


def _failed(exchange: Exchange, kind: FailureKind, text: str) -> Exchange:
    return replace(exchange, failure=TransportFailure(kind, text))
