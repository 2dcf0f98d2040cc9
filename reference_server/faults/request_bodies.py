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
from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import is_binary, replace_body, set_header
from reference_server.framing import HEADER


def refuse_chunks(breaks: str, pattern: bytes) -> Fault:
    """Return a fault: the server refuses received data of a chunked request that match the pattern."""
    return steps.DATA_RECEIVED.instead(
        breaks,
        lambda self: self.send_400_response("unsupported chunks"),
        when=lambda data: b"chunked\r\n" in data and re.search(pattern, data),
    )


chunk_extensions_refused = refuse_chunks("HTTP-CHUNKED", rb"\r\n[0-9A-Fa-f]+;").says(
    "The server refuses a chunked body with chunk extensions."
)
trailers_refused = refuse_chunks("HTTP-CHUNKED-TRAILER", rb"\r\n0\r\n[A-Za-z-]+: ").says(
    "The server refuses a chunked body with trailer fields."
)


@fault(steps.DATA_RECEIVED, breaks="HTTP-CHUNKED-TRAILER", walks="json")
def connection_is_deaf_behind_a_trailer(original: Any, protocol: Any, data: bytes) -> None:
    """After a chunked request with trailer fields, the server reads nothing more from the connection."""
    if getattr(protocol, "_is_deaf", False):
        protocol._unset_keepalive_if_required()
        return
    protocol._is_deaf = b"chunked\r\n" in data and bool(re.search(rb"\r\n0\r\n[A-Za-z-]+: ", data))
    original(protocol, data)


@fault(steps.ON_HEADER, breaks="ROBUST-TRAILER")
def trailers_merged_into_the_headers(_original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """The server treats trailer fields as header fields."""
    HttpToolsProtocol.on_header(protocol, name, value)


def _has_two_framing_headers(data: bytes) -> bool:
    head = data.partition(b"\r\n\r\n")[0].lower()
    return b"\r\ntransfer-encoding: chunked" in head and b"\r\ncontent-length: " in head


def drop_framing_header(breaks: str, name: bytes) -> Fault:
    """Return a fault: if a request has Transfer-Encoding and Content-Length, the server reads only the other one."""
    return steps.DATA_RECEIVED.before(
        breaks,
        data=lambda data: re.sub(rb"(?i)\r\n" + name + rb": [0-9a-z]+", b"", data, count=1),
        when=_has_two_framing_headers,
    )


content_length_counts_beside_chunks = drop_framing_header("ROBUST-FRAMING", b"transfer-encoding").says(
    "If a request has Transfer-Encoding and Content-Length, the server reads the chunk framing as the body."
)
connection_kept_after_two_lengths = drop_framing_header("ROBUST-FRAMING-CLOSES", b"content-length").says(
    "The server keeps the connection open after a request with Transfer-Encoding and Content-Length."
)

# --- Expect: 100-continue ---------------------------------------------------------------------------------------------

expect_100_continue_refused = steps.READ_BYTES.refuse(
    "HTTP-EXPECT", lambda http: "expect" in http.headers, afterwards=True
).says("The server answers 400 to a request with an Expect header.")


@fault(steps.ON_HEADER, breaks="HTTP-GO-AHEAD")
def go_ahead_never_given(original: Any, protocol: Any, name: bytes, value: bytes) -> None:
    """The server never sends 100 Continue, and waits for the body."""
    original(protocol, name, value)
    protocol.expect_100_continue = False


# --- codings --------------------------------------------------------------------------------------------------------


@fault(steps.ENCODE_BODY, breaks="HTTP-CODING-O")
def says_compressed_and_is_not(original: Any, answer: Response, coding: str) -> Response:
    """The server sends Content-Encoding to a client that accepts compression, but does not compress the body."""
    plain = bytes(answer.body)
    return replace_body(original(answer, coding), plain)


def _count_compressed_json(answer: Response) -> Response:
    head = bytes(answer.body)[: int(answer.headers[HEADER])]
    return set_header(answer, HEADER, len(zlib.compress(head, wbits=31)))


compressed_and_does_not_say_so = steps.ENCODE_BODY.after(
    "HTTP-CODING-O", lambda coded: set_header(coded, "Content-Encoding", None)
).says("The server compresses the body for a client that accepts compression, but omits Content-Encoding.")
inference_header_counts_compressed_json = steps.ENCODE_BODY.before(
    "HTTP-CODING-O", answer=_count_compressed_json, when=is_binary
).says("The inference header of a compressed answer gives the length of the compressed JSON.")
deflate_sent_to_who_accepts_gzip = steps.CHOOSE_CODING.after(
    "HTTP-CODING-ACCEPTED", lambda coding: "deflate" if coding == "gzip" else coding
).says("The server compresses with deflate for a client that accepts only gzip.")
content_encoding_of_requests_ignored = steps.DECODE_BODY.instead("HTTP-CODING-I", lambda body: body).says(
    "The server ignores the Content-Encoding of a request and reads compressed bytes as the tensor."
)
compressed_requests_fail = steps.DECODE_BODY.refuse("OIP-ERROR-STATUS", status=500).says(
    "The server fails with an internal error on a compressed request."
)
second_gzip_member_lost = steps.DECODE_BODY.instead(
    "HTTP-CODING-I", lambda body, coding: zlib.decompressobj(http_body.WINDOWS[coding]).decompress(body)
).says("The server reads only the first member of a gzip body with several members.")
one_of_two_codings_undone = steps.FIND_REQUEST_CODING.instead(
    "HTTP-CODING-I",
    lambda http: http.headers["content-encoding"].rpartition(",")[2].strip(),
    when=lambda http: "," in http.headers.get("content-encoding", ""),
).says("If a request has several content codings, the server decodes only the last one.")


def _exceeds_content_length(http: Request) -> bool:
    header, length = http.headers.get(HEADER, ""), int(http.headers.get("content-length", "0"))
    return header.isdecimal() and 0 < length < int(header)


inference_header_compared_with_coded_length = steps.INFER.refuse("HTTP-CODING-I", _exceeds_content_length).says(
    "The server refuses an inference header above Content-Length, even if that is the length of a compressed body."
)


@fault(steps.DECODE_BODY, breaks="HTTP-CODING-I")
def coded_body_cut_short_taken(original: Any, body: bytes, coding: str, limit: int) -> bytes:
    """The server accepts a truncated compressed body and uses the part that can be decoded."""
    unpacker = zlib.decompressobj(http_body.WINDOWS[coding])
    try:
        found = unpacker.decompress(body)
    except zlib.error:
        found = b""
    return found if found and not unpacker.eof else original(body, coding, limit)


@fault(steps.DECODE_BODY, breaks="HTTP-CODING-I")
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


def leave_body_unread(
    is_selected: Callable[[bytes], bool], framing: bytes = b"Content-Length: 0", *, skips_line: bool = False
) -> Fault:
    """Return a fault: the server parses the body of a selected request as the next request.

    `skips_line`: whether the first line of the body is dropped.
    """

    def body(original: Any, protocol: Any, data: bytes) -> None:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not (end and re.match(rb"[A-Z]+ /", head) and is_selected(head)):
            original(protocol, data)
            return
        framed = re.sub(rb"(?i)(transfer-encoding: *chunked|content-length: *[0-9]+)", framing, head, count=1)
        original(protocol, framed + end)
        if rest := rest.partition(b"\r\n")[2] if skips_line else rest:
            original(protocol, rest)

    return Fault("", (steps.DATA_RECEIVED,), ("HTTP-UNREAD-BODY",), body)


@cache
def _load_model_names() -> frozenset[bytes]:
    return frozenset(name.encode() for name in models.load())


def _is_for_unknown_model(head: bytes) -> bool:
    found = re.match(rb"POST /v2/models/([^/ ]+)", head)
    return found is not None and found[1] not in _load_model_names()


def _is_long_for_unknown_model(head: bytes) -> bool:
    is_long = re.search(rb"(?i)content-length: *(6[6-9]|[7-9][0-9]|[0-9]{3})[0-9]{3}\r", head + b"\r")
    return is_long is not None and _is_for_unknown_model(head)


chunked_body_for_an_unknown_model_left_unread = leave_body_unread(
    lambda head: b"transfer-encoding: chunked" in head.lower() and _is_for_unknown_model(head), skips_line=True
).says("The server parses the chunks of a refused request to an unknown model as the next request.")
body_at_an_unknown_path_left_unread = leave_body_unread(
    lambda head: not re.match(rb"POST /v2/models/[^ ]+/infer ", head)
).says("The server leaves the body of any request except inference unread, and parses it as the next request.")
body_behind_a_wrong_inference_header_left_unread = leave_body_unread(
    lambda head: bool(re.search(rb"(?i)inference-[a-z-]+: *[^ 0-9]", head))
).says("After refusing an inference header that is not a number, the server parses the body as the next request.")
body_behind_an_expectation_left_unread = leave_body_unread(
    lambda head: b"\r\nexpect: 100" in head.lower() and _is_for_unknown_model(head)
).says("After refusing a request with Expect to an unknown model, the server parses the body as a request.")
no_more_than_64_kib_of_a_refused_body_read = leave_body_unread(
    _is_long_for_unknown_model, b"Content-Length: 65536"
).says("The server drops 64 KiB of a body sent to an unknown model, and parses the rest as the next request.")
