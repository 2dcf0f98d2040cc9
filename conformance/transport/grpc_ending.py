"""Determines how a gRPC call ended: with a status from the server, without one, or with a malformed answer.

Sources: gRPC over HTTP2, "Responses" and "Errors"; HTTP to gRPC Status Code Mapping.
"""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import unquote

from conformance.transport.exchange import Exchange, FailureKind, TransportFailure
from conformance.transport.grpc_stream import PREFIX_BYTES, Stream, is_grpc, read_declared_length

# The codes by number, each with the HTTP status that google.rpc.Code maps it to. 400 and above is a refusal.
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

# The codes that a client derives from an HTTP answer of a gateway that does not speak gRPC.
CODES_BY_HTTP_STATUS = {
    400: "INTERNAL",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "UNIMPLEMENTED",
    **dict.fromkeys((429, 502, 503, 504), "UNAVAILABLE"),
}
RESET_NAMES = {0: "NO_ERROR", 1: "PROTOCOL_ERROR", 2: "INTERNAL_ERROR", 7: "REFUSED_STREAM", 8: "CANCEL"}
# Reset codes that report a server without capacity, as a status would.
CODES_BY_RESET = {7: CODES[14], 11: CODES[8]}


def finish_exchange(exchange: Exchange, stream: Stream) -> Exchange:
    """Return the exchange with the status, body, headers and failure of a finished stream."""
    pairs = (*stream.headers, *stream.trailers)
    found = replace(exchange, headers=tuple(pair for pair in pairs if not pair[0].startswith(":")))
    status_text = _find_last_value(stream, "grpc-status")
    if stream.failure is not None and status_text is None:
        return replace(found, failure=stream.failure)
    if len(set(stream.list_values("grpc-status"))) > 1:
        return _mark_failed(found, FailureKind.MALFORMED, "more than one gRPC status")
    if status_text is not None:
        return _apply_status(found, stream, status_text)
    if stream.reset in CODES_BY_RESET:
        code, status = CODES_BY_RESET[stream.reset]
        return replace(found, status=status, code=code, details="the stream was reset")
    if stream.reset is not None:
        name = RESET_NAMES.get(stream.reset, f"error code {stream.reset}")
        return _mark_failed(found, FailureKind.STATUSLESS, f"the stream was reset ({name}) without a status")
    return _classify_by_http_status(found, stream, _find_last_value(stream, ":status") or "")


def _find_last_value(stream: Stream, name: str) -> str | None:
    """Return the last value of a header or trailer of the answer, or None."""
    return next(reversed(stream.list_values(name)), None)


def _describe_content_type(stream: Stream) -> str:
    return f"the content type {(_find_last_value(stream, 'content-type') or '')[:60]}"


def _classify_by_http_status(found: Exchange, stream: Stream, http: str) -> Exchange:
    """Return the exchange of an answer without a gRPC status: a refusal for an HTTP error status, else a failure."""
    if not re.fullmatch("[2-5][0-9][0-9]", http):
        return _mark_failed(found, FailureKind.MALFORMED, f"no valid HTTP status: {http[:20]}")
    if http == "200":
        ending = "the stream ended" if stream.has_messages else f"an answer of {_describe_content_type(stream)}"
        return _mark_failed(found, FailureKind.STATUSLESS, f"{ending} without a status")
    if http.startswith("2"):
        return _mark_failed(found, FailureKind.STATUSLESS, f"HTTP status {http} without a gRPC status")
    return replace(
        found, status=int(http), code=CODES_BY_HTTP_STATUS.get(int(http), "UNKNOWN"), details=f"HTTP status {http}"
    )


def _is_code(text: str) -> bool:
    return re.fullmatch("[0-9]{1,3}", text) is not None and int(text) < len(CODES)


def _apply_status(found: Exchange, stream: Stream, status_text: str) -> Exchange:
    code, status = CODES[int(status_text)] if _is_code(status_text) else UNKNOWN
    if (code, status) != OK:
        details = unquote(_find_last_value(stream, "grpc-message") or "", errors="replace")
        return replace(found, status=status, code=code, details=details)
    wrong_type = not is_grpc(*stream.list_values("content-type")[-1:])
    body, wrong = (b"", _describe_content_type(stream)) if wrong_type else _parse_single_message(stream.data)
    if wrong:
        return _mark_failed(found, FailureKind.MALFORMED, f"the status OK with {wrong}")
    return replace(found, status=status, code=code, body=body)


def _parse_single_message(data: bytearray) -> tuple[bytes, str]:
    """Return the single message of an answer, and a description of a fault, which is empty if there is none."""
    if not data:
        return b"", "no message"
    length = read_declared_length(data)
    if len(data) < PREFIX_BYTES or len(data) < PREFIX_BYTES + length:
        return b"", f"a message cut short after {len(data)} bytes"
    if data[0]:
        return b"", "a compressed message, although the request accepts none"
    if len(data) > PREFIX_BYTES + length:
        return b"", f"{len(data) - PREFIX_BYTES - length} bytes after the message"
    return bytes(memoryview(data)[PREFIX_BYTES:]), ""


def _mark_failed(exchange: Exchange, kind: FailureKind, text: str) -> Exchange:
    return replace(exchange, failure=TransportFailure(kind, text))
