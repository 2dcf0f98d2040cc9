"""Compression of answers and of requests gone wrong."""

from __future__ import annotations

import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import codings
from reference_server.faults import fault
from reference_server.framing import HEADER

# --- answers to clients that accept a coding -------------------------------------------------------------------------


def replace_body(answer: Response, body: bytes) -> Response:
    """Return the answer with another body."""
    answer.body = body
    answer.headers["Content-Length"] = str(len(body))
    return answer


@fault("codings.encoded", breaks="HTTP-CODING-O")
def says_compressed_and_is_not(original: Any, answer: Response, coding: str) -> Response:
    """An answer to a client that accepts gzip names that coding and is not in it."""
    plain = bytes(answer.body)
    return replace_body(original(answer, coding), plain)


@fault("codings.encoded", breaks="HTTP-CODING-O")
def inference_header_counts_compressed_json(original: Any, answer: Response, coding: str) -> Response:
    """The inference header of a compressed answer is the length of the JSON after compression."""
    if HEADER in answer.headers:
        head = bytes(answer.body)[: int(answer.headers[HEADER])]
        answer.headers[HEADER] = str(len(zlib.compress(head, wbits=31)))
    return original(answer, coding)  # type: ignore[no-any-return]


@fault("codings.chosen", breaks="HTTP-CODING-ACCEPTED")
def deflate_sent_to_who_accepts_gzip(original: Any, http: Request) -> str | None:
    """An answer to a client that accepts gzip alone is in the coding deflate."""
    return "deflate" if original(http) == "gzip" else original(http)


# --- requests --------------------------------------------------------------------------------------------------------


@fault("codings.decoded", breaks="HTTP-CODING-I")
def content_encoding_of_requests_ignored(_original: Any, body: bytes, _coding: str, _limit: int) -> bytes:
    """The Content-Encoding of a request is not looked at, so that compressed bytes of a raw request become a tensor."""
    return body


@fault("codings.decoded", breaks="HTTP-CODING-I")
def second_gzip_member_lost(_original: Any, body: bytes, coding: str, _limit: int) -> bytes:
    """Of a gzip body of several members the first one is read."""
    return zlib.decompressobj(codings.WINDOWS[coding]).decompress(body)


@fault("codings.of_request", breaks="HTTP-CODING-I")
def one_of_two_codings_undone(original: Any, http: Request) -> str | None:
    """Of several codings the last one alone is undone."""
    several = "," in http.headers.get("content-encoding", "")
    return http.headers["content-encoding"].rpartition(",")[2].strip() if several else original(http)


@fault("codings.decoded", breaks="ROBUST-CODING")
def coded_body_cut_short_taken(original: Any, body: bytes, coding: str, limit: int) -> bytes:
    """Of a coded body that is cut short, what can be decoded is taken for all of it."""
    unpacker = zlib.decompressobj(codings.WINDOWS[coding])
    try:
        found = unpacker.decompress(body)
    except zlib.error:
        found = b""
    cut: bytes = found if found and not unpacker.eof else original(body, coding, limit)
    return cut
