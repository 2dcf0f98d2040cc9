"""Connection faults: segmented or pipelined requests, and clients that read slowly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import is_binary, is_chunked, is_raw, set_header
from reference_server.framing import HEADER


class RewritingTransport:
    """A transport that rewrites what the server sends; the head and the body of an answer are separate writes."""

    def __init__(self, transport: Any, rewrite: Callable[[RewritingTransport, bytes], bytes]) -> None:
        self._transport = transport
        self._rewrite = rewrite
        self.head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | memoryview) -> None:
        """Rewrite the data and write the result."""
        octets = bytes(data)
        if octets.startswith(b"HTTP/1.1 "):
            self.head = octets
        self._transport.write(self._rewrite(self, octets))


def _parse_content_length(head: bytes) -> int:
    found = re.search(rb"content-length: ([0-9]+)", head)
    return int(found[1]) if found else 0


content_length_of_json_counts_characters = steps.FRAME.before(
    "OIP-JSON", head=lambda head: head[: len(head.decode())], when=lambda binary: not binary
).says("Content-Length of a JSON answer counts characters instead of bytes, and the server cuts the body to fit.")


class UncountedResponse(Response):
    """A response whose Content-Length is two bytes less than its body."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the whole answer in one piece, and close the connection."""
        cycle: Any = send.__self__  # type: ignore[attr-defined]
        self.headers.update({"Content-Length": str(len(self.body) - 2), "Connection": "close"})
        lines = [b"HTTP/1.1 200 OK", *(name + b": " + value for name, value in self.raw_headers)]
        cycle.transport.write(b"\r\n".join([*lines, b"", bytes(self.body)]))
        cycle.transport.close()
        cycle.response_started = cycle.response_complete = True


two_bytes_of_json_are_not_counted = steps.INFER.after(
    "HTTP-LENGTH",
    lambda answer: UncountedResponse(answer.body, headers=dict(answer.headers)),
    when=lambda result: not is_binary(result),
).says("Content-Length of a JSON answer is two bytes less than the answer that the server sends.")
two_bytes_too_many_counted_in_http_1_0 = steps.INFER_CODED.after(
    "HTTP-LENGTH",
    lambda answer: set_header(answer, "Content-Length", len(answer.body) + 2),
    when=lambda http: http.scope["http_version"] == "1.0" and "keep-alive" in http.headers.get("connection", ""),
).says("Over HTTP/1.0 to a client that keeps connections, Content-Length is two bytes more than the answer.")

# --- requests in segments or chunks -----------------------------------------------------------------------------------


async def _read_pieces(http: Request) -> list[bytes]:
    """Return the body of a request in the pieces in which it arrived."""
    return [piece async for piece in http.stream() if piece]


READ_BYTES = 16 * 1024


@fault(steps.DATA_RECEIVED, breaks="HTTP-CHUNKED")
def chunk_size_in_two_reads_refused(original: Any, protocol: Any, data: bytes) -> None:
    """The server reads up to 16 KiB at a time, and refuses a chunk whose size line ends in the next read."""
    for start in range(0, len(data), READ_BYTES):
        original(protocol, data[start : start + READ_BYTES])
        line = protocol._frames._line if protocol._frames else b""
        if line and not line.endswith(b"\r\n"):
            protocol.send_400_response("malformed chunk size")
            return


TRAILERS = re.compile(rb"\r\n0+\r\n((?:[^\r\n]+\r\n)+)\r\n$")


@fault(steps.DATA_RECEIVED, breaks="HTTP-CHUNKED", walks="json")
def trailers_are_left_for_the_next_request(original: Any, protocol: Any, data: bytes) -> None:
    """The server reads the trailers of a request as the start of the next request, as cheroot 11.1 does."""
    vars(protocol).setdefault("trailers", b"")
    original(protocol, protocol.trailers + data)
    found = TRAILERS.search(data)
    protocol.trailers = found[1] if found else b""


_BREAKS_SEGMENTS = ("HTTP-SEGMENTS", "HTTP-CHUNKED")


@fault(steps.READ_BYTES, breaks=_BREAKS_SEGMENTS)
async def letters_decoded_segment_by_segment(_original: Any, http: Request, _limit: int) -> bytes:
    """The server decodes JSON segment by segment: a character split in two becomes replacement characters."""
    pieces = await _read_pieces(http)
    if HEADER in http.headers:
        return b"".join(pieces)
    return b"".join(piece.decode("utf-8", "replace").encode() for piece in pieces)


@fault(steps.READ_BYTES, breaks=_BREAKS_SEGMENTS)
async def binary_data_not_waited_for(_original: Any, http: Request, _limit: int) -> bytes:
    """If the first segment ends with the JSON, the server takes the segment for the whole body."""
    pieces = await _read_pieces(http)
    ends_with_the_json = http.headers.get(HEADER) == str(len(pieces[0]) if pieces else 0)
    return pieces[0] if pieces and ends_with_the_json else b"".join(pieces)


@fault(steps.READ_BYTES, breaks=_BREAKS_SEGMENTS)
async def short_read_taken_for_the_end(_original: Any, http: Request, _limit: int) -> bytes:
    """The server takes a segment of fewer than four bytes for the end of the body."""
    pieces = await _read_pieces(http)
    short = next((index for index, piece in enumerate(pieces[:-1]) if len(piece) < 4), len(pieces))
    return b"".join(pieces[: short + 1])


@fault(steps.READ_BYTES, breaks=_BREAKS_SEGMENTS)
async def no_more_than_sixteen_segments(_original: Any, http: Request, _limit: int) -> bytes:
    """The server keeps only the first 16 segments of a body under 64 KiB."""
    pieces = await _read_pieces(http)
    small = len(pieces) > 16 and sum(map(len, pieces)) < 65_536
    return b"".join(pieces[:16] if small else pieces)


@fault(steps.READ_BYTES, breaks=_BREAKS_SEGMENTS)
async def segments_written_over_each_other(_original: Any, http: Request, _limit: int) -> bytes:
    """If a body up to 4 KiB comes in two segments, the server writes the second over the start of the first."""
    pieces = await _read_pieces(http)
    whole = b"".join(pieces)
    if len(pieces) != 2 or len(whole) > 4096:
        return whole
    return pieces[1] + whole[len(pieces[1]) :]


chunked_body_taken_for_empty = steps.READ_BYTES.after("HTTP-CHUNKED", lambda _: b"", when=is_chunked).says(
    "The server reads a chunked body as empty."
)


@fault(steps.READ_BYTES, breaks="HTTP-CHUNKED")
async def chunked_binary_data_refused_in_two_pieces(_original: Any, http: Request, _limit: int) -> bytes:
    """The server refuses a chunked body with binary data unless it arrives in one piece."""
    pieces = await _read_pieces(http)
    if is_chunked(http) and HEADER in http.headers and len(pieces) > 1:
        raise InferenceError("the body is incomplete")
    return b"".join(pieces)


_shared_buffer: list[bytes] = []


async def _read_into_shared_buffer(http: Request) -> bytes:
    """Read a body into the buffer that all connections share, and return the contents of the buffer."""
    _shared_buffer.clear()
    async for piece in http.stream():
        _shared_buffer.append(piece)
    return b"".join(_shared_buffer)


@fault(steps.READ_BYTES, breaks="OIP-ISOLATION")
async def chunks_of_all_connections_in_one_buffer(original: Any, http: Request, limit: int) -> bytes:
    """The server reads all chunked bodies into one shared buffer, and empties the buffer when a body begins."""
    return await _read_into_shared_buffer(http) if is_chunked(http) else await original(http, limit)


@fault(steps.READ_BYTES, breaks="OIP-ISOLATION")
async def raw_bodies_of_all_connections_in_one_buffer(original: Any, http: Request, limit: int) -> bytes:
    """The server reads all raw bodies into one shared buffer, and empties the buffer when a body begins."""
    return await _read_into_shared_buffer(http) if is_raw(http) else await original(http, limit)


# --- several requests or answers on one connection --------------------------------------------------------------------


def _is_error(head: bytes) -> bool:
    return head[9:10] in (b"4", b"5")


@fault(steps.CONNECTION_MADE, breaks=("HTTP-KEEPALIVE", "HTTP-PIPELINE", "OIP-ISOLATION"))
def errors_answered_twice(original: Any, protocol: Any, transport: Any) -> None:
    """The server sends every error answer twice."""

    def rewrite(wrapped: RewritingTransport, data: bytes) -> bytes:
        twice = _is_error(wrapped.head) and data != wrapped.head and _parse_content_length(wrapped.head) == len(data)
        return data + wrapped.head + data if twice else data

    original(protocol, RewritingTransport(transport, rewrite))


@fault("http_protocol.OipHttpProtocol.on_response_complete", breaks="HTTP-PIPELINE")
def pipelined_requests_answered_last_first(original: Any, protocol: Any) -> None:
    """The server answers the last of the waiting pipelined requests first."""
    protocol.pipeline.reverse()
    original(protocol)


@fault(steps.HEADERS_COMPLETE, breaks="HTTP-PIPELINE-AFTER-POST")
def requests_behind_an_inference_forgotten(original: Any, protocol: Any) -> None:
    """The server never answers a request that it reads from a connection while a POST is unanswered."""
    before = protocol.cycle
    original(protocol)
    if before is not None and not before.response_complete and before.scope["method"] == "POST":
        protocol.pipeline.popleft()


def answer_like_get(is_answered: Callable[[Any], bool]) -> Fault:
    """Return a fault: the server answers some HEAD requests like GET; the condition takes the scope of a request."""

    def change(_: None, self: Any) -> None:
        if self.scope["method"] == "HEAD" and is_answered(self.scope):
            self.scope["method"] = "GET"

    return steps.HEADERS_COMPLETE.after("HTTP-HEAD", change)


head_answered_like_get = answer_like_get(lambda _: True).says(
    "The server sends a body in the answer to a HEAD request."
)
errors_of_head_have_a_body = answer_like_get(lambda scope: "no" in scope["path"]).says(
    "The server sends the error object as the body when it refuses a HEAD request."
)

MIN_LARGE_BYTES, WRITE_BYTES = 4 * 1024 * 1024, 256 * 1024
_unsent: dict[str, bytes] = {}


class _SharedBufferResponse(Response):
    """A response that the server writes, as fast as its client reads, from the buffer of all such responses."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        _unsent["body"] = bytes(self.body)
        for end in range(WRITE_BYTES, len(self.body) + WRITE_BYTES, WRITE_BYTES):
            piece, has_more = _unsent["body"][end - WRITE_BYTES : end], end < len(self.body)
            await send({"type": "http.response.body", "body": piece, "more_body": has_more})


large_answers_in_flight_share_a_buffer = steps.FRAME.after(
    "OIP-ISOLATION",
    lambda answer: _SharedBufferResponse(answer.body, headers=dict(answer.headers)),
    when=lambda result: len(result.body) > MIN_LARGE_BYTES,
).says("The server sends answers of over 4 MiB from one buffer, so that a second overwrites the rest of the first.")

MAX_STALL_S = 0.1


class _StallAbortingTransport(RewritingTransport):
    """A transport that aborts its connection when the write buffer does not shrink for MAX_STALL_S."""

    def write(self, data: bytes | memoryview) -> None:
        """Write data, and check the write buffer twice afterwards."""
        super().write(data)
        asyncio.get_running_loop().call_later(MAX_STALL_S, self._check_buffer)

    def _check_buffer(self) -> None:
        asyncio.get_running_loop().call_later(MAX_STALL_S, self._abort_if_stalled, self.get_write_buffer_size())

    def _abort_if_stalled(self, unsent: int) -> None:
        if unsent and self.get_write_buffer_size() >= unsent:
            self.abort()


@fault(steps.CONNECTION_MADE, breaks="HTTP-SLOW-READER")
def answer_cut_short_where_nobody_reads(original: Any, protocol: Any, transport: Any) -> None:
    """The server aborts a connection if a client reads nothing of the answer for a tenth of a second."""
    original(protocol, _StallAbortingTransport(transport, lambda _wrapped, data: data))
