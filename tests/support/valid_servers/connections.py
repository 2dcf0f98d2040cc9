"""Other valid uses of HTTP: closed connections, HTTP/1.0, chunks, compression, slow answers."""

from __future__ import annotations

import asyncio
import itertools
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn
from weakref import WeakSet

from starlette.responses import HTMLResponse, Response

from reference_server import app, http_body
from reference_server.errors import InferenceError
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.edits import set_headers
from reference_server.faults.ended_servers import CrashResponse
from reference_server.faults.families import Function, Step
from reference_server.limits import Limits


def refuse_unread(step: Step, status: int, when: Function) -> Fault:
    """Return a server that refuses a request without reading the body, and closes the connection."""

    def raise_error() -> NoReturn:
        raise http_body.UnreadBodyError("this server refuses such a request", status=status)

    return step.instead((), raise_error, when=when)


def _end_in_a_parser_error(self: Any) -> None:
    self.transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    self.transport.close()


trailers_end_in_a_parser_error = steps.DATA_RECEIVED.instead(
    "HTTP-CHUNKED-TRAILER",
    _end_in_a_parser_error,
    when=lambda data: b"chunked\r\n" in data and re.search(rb"\r\n0\r\n[A-Za-z-]+: ", data),
).says("The HTTP library refuses a chunked request with trailer fields with 400 and no body.")
answers_close_the_connection = steps.FRAME.after((), set_headers(Connection="close")).says(
    "The server closes the connection after every answer, with `Connection: close`."
)

_replicas = itertools.cycle(("this-one", "the-other"))
replicas_have_different_names = steps.DESCRIBE_SERVER.after((), lambda answer: answer | {"name": next(_replicas)}).says(
    "Two replicas behind one address answer in turn, and have different names."
)


@variation(steps.INFER)
async def answers_come_late(original: Any, service: app.Service, http: Any) -> Response:
    """The server delays every answer to an inference request."""
    await asyncio.sleep(0.002)
    found: Response = await original(service, http)
    return found


class _Dribbling(Response):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = bytes(self.body)
        for start in range(0, min(len(body), 40), 4):
            await send({"type": "http.response.body", "body": body[start : start + 4], "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": body[40:]})


@variation(steps.FRAME)
def answers_dribble(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends the first bytes of an answer in small pieces."""
    found: Response = original(head, binary)
    return _Dribbling(bytes(found.body), headers=dict(found.headers))


class _Rewriting:
    """A transport that passes the heads of answers through `change`."""

    def __init__(self, transport: Any, change: Callable[[bytes], bytes]) -> None:
        self._transport = transport
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes | memoryview) -> None:
        """Write data, changed if an answer begins with them."""
        self._transport.write(self._change(bytes(data)) if bytes(data[:9]) == b"HTTP/1.1 " else data)


def _old(head: bytes) -> bytes:
    return head.replace(b"HTTP/1.1 ", b"HTTP/1.0 ", 1)


def _old_without_length(head: bytes) -> bytes:
    if b"inference-header-content-length" in head:
        return _old(head)
    return re.sub(rb"\r\ncontent-length: [0-9]+", b"", _old(head), count=1)


def _old_without_any_length(head: bytes) -> bytes:
    return re.sub(rb"\r\ncontent-length: [0-9]+", b"", _old(head), count=1)


CLOSING = (steps.CONNECTION_MADE, steps.HEADERS_COMPLETE)


def _ends_each(original: Any, protocol: Any, arguments: tuple[Any, ...], change: Callable[[bytes], bytes]) -> None:
    """Run one of the steps of `CLOSING`, for connections that end after the first answer."""
    if arguments:
        original(protocol, _Rewriting(arguments[0], change))
    else:
        original(protocol)
        protocol.cycle.keep_alive = False


@variation(*CLOSING)
def answers_in_http_1_0(original: Any, protocol: Any, *arguments: Any) -> None:
    """The server answers in HTTP/1.0 with Content-Length, and closes the connection without `Connection: close`."""
    _ends_each(original, protocol, arguments, _old)


@variation(*CLOSING)
def json_ends_with_the_connection(original: Any, protocol: Any, *arguments: Any) -> None:
    """The server answers in HTTP/1.0; the end of the connection marks the end of answers without binary data."""
    _ends_each(original, protocol, arguments, _old_without_length)


@variation(*CLOSING, breaks="BIN-NOT-CHUNKED")
def answers_end_with_the_connection(original: Any, protocol: Any, *arguments: Any) -> None:
    """The server answers in HTTP/1.0; the end of the connection marks the end of every answer."""
    _ends_each(original, protocol, arguments, _old_without_any_length)


def _without_length(head: bytes) -> bytes:
    return re.sub(rb"\r\ncontent-length: [0-9]+", b"\r\nconnection: close", head, count=1)


@variation(*CLOSING, breaks="BIN-NOT-CHUNKED")
def answers_of_http_1_1_end_with_the_connection(original: Any, protocol: Any, *arguments: Any) -> None:
    """The server sends `Connection: close`; the end of the connection marks the end of every answer."""
    _ends_each(original, protocol, arguments, _without_length)


@variation(*CLOSING, steps.INFER)
def knows_http_1_0_alone(original: Any, *arguments: Any) -> Any:
    """The server answers in HTTP/1.0, refuses chunked requests with 400 and a page, and never sends 100 Continue."""
    if isinstance(arguments[0], app.Service):
        return _refuse_chunks(original, *arguments)
    _ends_each(original, arguments[0], arguments[1:], _old)
    if len(arguments) == 1:
        arguments[0].cycle.waiting_for_100_continue = False
    return None


async def _refuse_chunks(original: Any, service: app.Service, http: Any) -> Response:
    if "transfer-encoding" in http.headers:
        return HTMLResponse("<h1>400 Bad Request</h1>", 400)  # as Python's http.server writes its errors
    found: Response = await original(service, http)
    return found


@variation(*CLOSING, steps.READ_BYTES)
def http_1_0_takes_chunks_for_no_body(original: Any, *arguments: Any) -> Any:
    """The server answers in HTTP/1.0, and reads a chunked body as an empty body, as Python's wsgiref does."""
    if isinstance(arguments[-1], Limits):
        return _read_no_chunks(original, *arguments)
    _ends_each(original, arguments[0], arguments[1:], _old)
    return None


async def _read_no_chunks(original: Any, http: Any, limits: Any) -> bytes:
    body: bytes = await original(http, limits)
    return b"" if "transfer-encoding" in http.headers else body


answers_are_never_compressed = steps.CHOOSE_CODING.instead((), lambda: None).says(
    "The server never compresses answers."
)
compressed_answers_vary = steps.ENCODE_BODY.after(
    (),
    lambda answer, coding: set_headers(Vary="Accept-Encoding", Content_Encoding=coding.upper())(answer),
).says("The server adds `Vary: Accept-Encoding` to compressed answers, and names the coding in capitals.")


@variation(steps.ENCODE_BODY)
def compressed_answers_of_two_members(_original: Any, answer: Response, coding: str) -> Response:
    """The server compresses into two gzip members and appends zeros, or applies deflate twice."""
    body, half = bytes(answer.body), len(answer.body) // 2
    gzipped = zlib.compress(body[:half], wbits=31) + zlib.compress(body[half:], wbits=31) + bytes(3)
    answer.body = gzipped if coding == "gzip" else zlib.compress(zlib.compress(body))
    names = coding if coding == "gzip" else f"{coding}, {coding}"
    answer.headers.update({"Content-Length": str(len(answer.body)), "Content-Encoding": names})
    return answer


@variation(steps.ENCODE_BODY, breaks="HTTP-CODING-ACCEPTED")
def compressed_answers_in_a_coding_of_its_own(_original: Any, answer: Response, _coding: str) -> Response:
    """The server answers in Brotli if a client accepts gzip or deflate."""
    answer.body = b"\x0b\x02\x80" + bytes(answer.body) + b"\x03"  # an uncompressed Brotli stream
    answer.headers.update({"Content-Length": str(len(answer.body)), "Content-Encoding": "br"})
    return answer


compressed_requests_are_refused = steps.DECODE_BODY.refuse(status=415).says(
    "The server refuses compressed requests with 415."
)


class _InSmallChunks(Response):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG002
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        body = bytes(self.body)
        step = 7 if len(body) < 5000 else 4099
        for start in range(0, len(body), step):
            await send({"type": "http.response.body", "body": body[start : start + step], "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@variation(steps.FRAME, breaks="BIN-NOT-CHUNKED")
def answers_come_in_small_chunks(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends answers in small chunks that end anywhere in the body."""
    found: Response = original(head, binary)
    return _InSmallChunks(bytes(found.body), headers=dict(found.headers))


@variation("http_protocol.OipHttpProtocol.on_body")
def no_100_continue_once_the_body_comes(original: Any, protocol: Any, body: bytes) -> None:
    """The server does not send 100 Continue after it has received a part of the body."""
    protocol.cycle.waiting_for_100_continue = False
    original(protocol, body)


expectations_are_not_supported = refuse_unread(steps.INFER, 417, lambda http: "expect" in http.headers).says(
    "The server refuses Expect with 417, without reading the body, and closes the connection."
)


MADE = "http_protocol.OipHttpProtocol.connection_made"


@variation(MADE)
def interim_answers_before_each(original: Any, protocol: Any, transport: Any) -> None:
    """The server sends 102 Processing and 103 Early Hints before every final answer."""

    def change(head: bytes) -> bytes:
        if head.startswith(b"HTTP/1.1 1"):
            return head
        return b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </v2>\r\n\r\n" + head

    original(protocol, _Rewriting(transport, change))


class _Discarding(asyncio.Protocol):
    """Reads until the client closes the connection."""


_made: WeakSet[Any] = WeakSet()


@variation(MADE, steps.INFER)
def connections_over_ten_requests_are_closed(original: Any, *arguments: Any) -> Any:
    """The server closes each connection that is opened while ten complete requests are unanswered."""
    if isinstance(arguments[0], app.Service):
        return _infer_late(original, *arguments)
    protocol, transport = arguments
    original(protocol, transport)
    _made.add(protocol)  # the same process may have served other variations, whose requests are never answered
    cycles = [other.cycle for other in _made & protocol.connections if other.cycle is not None]
    if sum(not (cycle.more_body or cycle.response_complete) for cycle in cycles) >= 10:
        protocol._stop_timer()
        protocol.connections.discard(protocol)
        transport.set_protocol(_Discarding())
        transport.write_eof()
    return None


async def _infer_late(original: Any, service: app.Service, http: Any) -> Response:
    await http.body()
    await asyncio.sleep(0.005)
    found: Response = await original(service, http)
    return found


codings_one_member_alone = steps.DECODE_BODY.refuse(
    when=lambda body: body.count(http_body.GZIP_MAGIC + b"\x08") > 1, status=415
).says("The server refuses a compressed request with several gzip members.")


@variation(steps.DECODE_BODY)
def trailers_of_gzip_are_ignored(original: Any, body: bytes, coding: str, limit: int) -> bytes:
    """The server does not need the checksum and length behind gzip data (RFC 1952, 2.3.1.2), only the last block."""
    is_gzip = body[:4] == http_body.GZIP_MAGIC + b"\x08\0"  # one member without optional fields
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    found = unpacker.decompress(body[GZIP_HEADER_BYTES:]) if is_gzip and coding == "gzip" else b""
    is_whole = unpacker.eof and len(unpacker.unused_data) <= GZIP_TRAILER_BYTES
    return found if is_whole else bytes(original(body, coding, limit))


GZIP_HEADER_BYTES, GZIP_TRAILER_BYTES = 10, 8


@variation(steps.INFER)
async def coded_bodies_that_end_early_end_the_connection(original: Any, service: app.Service, http: Any) -> Response:
    """The server closes the connection without an answer if it cannot decode a body."""
    coding, body = http_body.find_request_coding(http), await http.body()
    try:
        if coding:
            http_body.decode(body, coding, service.limits.body)
    except InferenceError:
        return CrashResponse()
    found: Response = await original(service, http)
    return found


codings_are_all_refused = refuse_unread(
    steps.READ_BODY, 415, lambda http: http.headers.get("content-encoding", "identity") != "identity"
).says("The server refuses any Content-Encoding with 415, without reading the body, and closes the connection.")
unknown_models_are_refused_before_the_body = refuse_unread(
    steps.INFER, 404, lambda self, http: http.path_params["model"] not in self.models
).says("The server refuses an unknown model without reading the body, and closes the connection.")


@variation(steps.DATA_RECEIVED)
def chunks_count_beside_a_length(original: Any, protocol: Any, data: bytes) -> None:
    """If a request has Transfer-Encoding and Content-Length, the server reads chunks and closes the connection."""
    head, end, body = data.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower() and b"content-length: " in head.lower():
        head = re.sub(rb"(?i)\r\ncontent-length: [0-9]+", b"\r\nConnection: close", head, count=1)
    original(protocol, head + end + body)


codings_of_json_undone_where_there_are_any = steps.DECODE_BODY.instead(
    (), lambda body: body, when=lambda body: body.startswith(b"{")
).says("The server reads a body that begins with a brace as JSON, even if Content-Encoding names a coding.")
