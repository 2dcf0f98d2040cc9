"""Faults in the transfer of bodies: chunks, Expect, content codings, and bodies left unread."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from reference_server import http_body, models
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER

DATA_RECEIVED_STEP = "http_protocol.OipHttpProtocol.data_received"


def _refuse_pattern(original: Any, protocol: Any, data: bytes, pattern: bytes) -> None:
    """Refuse received data of a chunked request that match the pattern."""
    is_chunked = b"chunked\r\n" in data
    if is_chunked and re.search(pattern, data):
        protocol.send_400_response("unsupported chunks")
    else:
        original(protocol, data)


@fault(DATA_RECEIVED_STEP, breaks="HTTP-CHUNKED")
def chunk_extensions_refused(original: Any, protocol: Any, data: bytes) -> None:
    """The server refuses a chunked body with chunk extensions."""
    _refuse_pattern(original, protocol, data, rb"\r\n[0-9A-Fa-f]+;")


@fault(DATA_RECEIVED_STEP, breaks="HTTP-CHUNKED-TRAILER")
def trailers_refused(original: Any, protocol: Any, data: bytes) -> None:
    """The server refuses a chunked body with trailer fields."""
    _refuse_pattern(original, protocol, data, rb"\r\n0\r\n[A-Za-z-]+: ")


@fault(DATA_RECEIVED_STEP, breaks="HTTP-CHUNKED-TRAILER", walks="json")
def connection_is_deaf_behind_a_trailer(original: Any, protocol: Any, data: bytes) -> None:
    """After a chunked request with trailer fields, the server reads nothing more from the connection."""
    if getattr(protocol, "_is_deaf", False):
        protocol._unset_keepalive_if_required()
        return
    protocol._is_deaf = b"chunked\r\n" in data and bool(re.search(rb"\r\n0\r\n[A-Za-z-]+: ", data))
    original(protocol, data)


@fault("http_protocol.OipHttpProtocol.on_header", breaks="ROBUST-TRAILER")
def trailers_merged_into_the_headers(_original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """The server treats trailer fields as header fields."""
    HttpToolsProtocol.on_header(protocol, name, value)


def _has_two_framing_headers(data: bytes) -> bool:
    head = data.partition(b"\r\n\r\n")[0].lower()
    return b"\r\ntransfer-encoding: chunked" in head and b"\r\ncontent-length: " in head


@fault(DATA_RECEIVED_STEP, breaks="ROBUST-FRAMING")
def content_length_counts_beside_chunks(original: Any, protocol: Any, data: bytes) -> None:
    """If a request has Transfer-Encoding and Content-Length, the server reads the chunk framing as the body."""
    if _has_two_framing_headers(data):
        data = re.sub(rb"(?i)\r\ntransfer-encoding: chunked", b"", data, count=1)
    original(protocol, data)


@fault(DATA_RECEIVED_STEP, breaks="ROBUST-FRAMING-CLOSES")
def connection_kept_after_two_lengths(original: Any, protocol: Any, data: bytes) -> None:
    """The server keeps the connection open after a request with Transfer-Encoding and Content-Length."""
    if _has_two_framing_headers(data):
        data = re.sub(rb"(?i)\r\ncontent-length: [0-9]+", b"", data, count=1)
    original(protocol, data)


# --- Expect: 100-continue ---------------------------------------------------------------------------------------------


@fault("http_body.read", breaks="HTTP-EXPECT")
async def expect_100_continue_refused(original: Any, http: Request, limit: int) -> bytes:
    """The server answers 400 to a request with an Expect header."""
    body: bytes = await original(http, limit)
    if "expect" in http.headers:
        raise InferenceError("Expect is not supported")
    return body


ON_HEADER_STEP = "http_protocol.OipHttpProtocol.on_header"


@fault(ON_HEADER_STEP, breaks="HTTP-GO-AHEAD")
def go_ahead_never_given(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """The server never sends 100 Continue, and waits for the body."""
    original(protocol, name, value)
    protocol.expect_100_continue = False


# --- codings --------------------------------------------------------------------------------------------------------


def replace_body(answer: Response, body: bytes) -> Response:
    """Return the answer with another body."""
    answer.body = body
    answer.headers["Content-Length"] = str(len(body))
    return answer


@fault("http_body.encode", breaks="HTTP-CODING-O")
def says_compressed_and_is_not(original: Any, answer: Response, coding: str) -> Response:
    """The server sends Content-Encoding to a client that accepts compression, but does not compress the body."""
    plain = bytes(answer.body)
    return replace_body(original(answer, coding), plain)


@fault("http_body.encode", breaks="HTTP-CODING-O")
def compressed_and_does_not_say_so(original: Any, answer: Response, coding: str) -> Response:
    """The server compresses the body for a client that accepts compression, but omits Content-Encoding."""
    coded: Response = original(answer, coding)
    del coded.headers["Content-Encoding"]
    return coded


@fault("http_body.encode", breaks="HTTP-CODING-O")
def inference_header_counts_compressed_json(original: Any, answer: Response, coding: str) -> Response:
    """The inference header of a compressed answer gives the length of the compressed JSON."""
    if HEADER in answer.headers:
        head = bytes(answer.body)[: int(answer.headers[HEADER])]
        answer.headers[HEADER] = str(len(zlib.compress(head, wbits=31)))
    return original(answer, coding)


@fault("http_body.choose_coding", breaks="HTTP-CODING-ACCEPTED")
def deflate_sent_to_who_accepts_gzip(original: Any, http: Request) -> str | None:
    """The server compresses with deflate for a client that accepts only gzip."""
    return "deflate" if original(http) == "gzip" else original(http)


@fault("http_body.decode", breaks="HTTP-CODING-I")
def content_encoding_of_requests_ignored(_original: Any, body: bytes, _coding: str, _limit: int) -> bytes:
    """The server ignores the Content-Encoding of a request and reads compressed bytes as the tensor."""
    return body


@fault("http_body.decode", breaks="OIP-ERROR-STATUS")
def compressed_requests_fail(_original: Any, _body: bytes, _coding: str, _limit: int) -> bytes:
    """The server fails with an internal error on a compressed request."""
    raise InferenceError("invalid start byte", status=500)


@fault("http_body.decode", breaks="HTTP-CODING-I")
def second_gzip_member_lost(_original: Any, body: bytes, coding: str, _limit: int) -> bytes:
    """The server reads only the first member of a gzip body with several members."""
    return zlib.decompressobj(http_body.WINDOWS[coding]).decompress(body)


@fault("http_body.find_request_coding", breaks="HTTP-CODING-I")
def one_of_two_codings_undone(original: Any, http: Request) -> str | None:
    """If a request has several content codings, the server decodes only the last one."""
    several = "," in http.headers.get("content-encoding", "")
    return http.headers["content-encoding"].rpartition(",")[2].strip() if several else original(http)


@fault("app.Service.infer", breaks="HTTP-CODING-I")
async def inference_header_compared_with_coded_length(original: Any, service: Any, http: Request) -> Response:
    """The server refuses an inference header above Content-Length, even if that is the length of a compressed body."""
    header, length = http.headers.get(HEADER, ""), int(http.headers.get("content-length", "0"))
    if header.isdecimal() and 0 < length < int(header):
        raise InferenceError("the inference header is greater than Content-Length")
    answer: Response = await original(service, http)
    return answer


@fault("http_body.decode", breaks="HTTP-CODING-I")
def coded_body_cut_short_taken(original: Any, body: bytes, coding: str, limit: int) -> bytes:
    """The server accepts a truncated compressed body and uses the part that can be decoded."""
    unpacker = zlib.decompressobj(http_body.WINDOWS[coding])
    try:
        found = unpacker.decompress(body)
    except zlib.error:
        found = b""
    return found if found and not unpacker.eof else original(body, coding, limit)


@fault("http_body.decode", breaks="HTTP-CODING-I")
def second_gzip_member_cut_short_dropped(original: Any, body: bytes, coding: str, limit: int) -> bytes:
    """If a gzip body of several members is truncated, the server uses the members before the truncated one."""
    try:
        return original(body, coding, limit)
    except InferenceError:
        unpacker = zlib.decompressobj(http_body.WINDOWS[coding])
        found = unpacker.decompress(body)
        if not unpacker.eof:
            raise
        return found


# --- unread bodies that are parsed as the next request ----------------------------------------------------------------

EMPTY_BODY_FRAMING = b"Content-Length: 0"


def _leave_body_unread(
    original: Any, protocol: Any, data: bytes, is_selected: Callable[[bytes], bool], framing: bytes
) -> None:
    """Parse the body of a selected request as the next request; `framing` replaces the request's framing header."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not (end and re.match(rb"[A-Z]+ /", head) and is_selected(head)):
        original(protocol, data)
        return
    framed = re.sub(rb"(?i)(transfer-encoding: *chunked|content-length: *[0-9]+)", framing, head, count=1)
    original(protocol, framed + end)
    if rest:
        original(protocol, rest)


@cache
def _load_model_names() -> frozenset[bytes]:
    return frozenset(name.encode() for name in models.load())


def _is_for_unknown_model(head: bytes) -> bool:
    found = re.match(rb"POST /v2/models/([^/ ]+)", head)
    return found is not None and found[1] not in _load_model_names()


def _is_chunked(head: bytes) -> bool:
    return b"transfer-encoding: chunked" in head.lower()


@fault(DATA_RECEIVED_STEP, breaks="HTTP-UNREAD-BODY")
def chunked_body_for_an_unknown_model_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """The server parses the chunks of a refused request to an unknown model as the next request."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if end and _is_chunked(head) and _is_for_unknown_model(head):
        data = head + end + rest.partition(b"\r\n")[2]
    _leave_body_unread(
        original, protocol, data, lambda head: _is_for_unknown_model(head) and _is_chunked(head), EMPTY_BODY_FRAMING
    )


@fault(DATA_RECEIVED_STEP, breaks="HTTP-UNREAD-BODY")
def body_at_an_unknown_path_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """The server leaves the body of any request except inference unread, and parses it as the next request."""
    _leave_body_unread(
        original, protocol, data, lambda head: not re.match(rb"POST /v2/models/[^ ]+/infer ", head), EMPTY_BODY_FRAMING
    )


@fault(DATA_RECEIVED_STEP, breaks="HTTP-UNREAD-BODY")
def body_behind_a_wrong_inference_header_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """After refusing an inference header that is not a number, the server parses the body as the next request."""
    _leave_body_unread(
        original,
        protocol,
        data,
        lambda head: bool(re.search(rb"(?i)inference-[a-z-]+: *[^ 0-9]", head)),
        EMPTY_BODY_FRAMING,
    )


@fault(DATA_RECEIVED_STEP, breaks="HTTP-UNREAD-BODY")
def body_behind_an_expectation_left_unread(original: Any, protocol: Any, data: bytes) -> None:
    """After refusing a request with Expect to an unknown model, the server parses the body as a request."""
    _leave_body_unread(
        original,
        protocol,
        data,
        lambda head: b"\r\nexpect: 100" in head.lower() and _is_for_unknown_model(head),
        EMPTY_BODY_FRAMING,
    )


@fault(DATA_RECEIVED_STEP, breaks="HTTP-UNREAD-BODY")
def no_more_than_64_kib_of_a_refused_body_read(original: Any, protocol: Any, data: bytes) -> None:
    """The server drops 64 KiB of a body sent to an unknown model, and parses the rest as the next request."""
    is_long = re.compile(rb"(?i)content-length: *(6[6-9]|[7-9][0-9]|[0-9]{3})[0-9]{3}\r")
    _leave_body_unread(
        original,
        protocol,
        data,
        lambda head: _is_for_unknown_model(head) and bool(is_long.search(head + b"\r")),
        b"Content-Length: 65536",
    )
