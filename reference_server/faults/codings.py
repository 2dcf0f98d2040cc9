"""Compression of answers and of requests gone wrong."""

from __future__ import annotations

import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import app, codings, http_body
from reference_server.faults import fault
from reference_server.framing import HEADER

# --- answers to clients that accept a coding -------------------------------------------------------------------------


def replace_body(answer: Response, body: bytes) -> Response:
    """Return the answer with another body."""
    answer.body = body
    answer.headers["Content-Length"] = str(len(body))
    return answer


@fault("codings.encoded", breaks="HTTP-CODING-O")
def compressed_without_saying_so(original: Any, answer: Response, coding: str) -> Response:
    """An answer compressed for a client that accepts gzip has no Content-Encoding."""
    found: Response = original(answer, coding)
    del found.headers["Content-Encoding"]
    return found


@fault("codings.encoded", breaks="HTTP-CODING-O")
def says_compressed_and_is_not(original: Any, answer: Response, coding: str) -> Response:
    """An answer to a client that accepts gzip names that coding and is not in it."""
    plain = bytes(answer.body)
    return replace_body(original(answer, coding), plain)


@fault("codings.encoded", breaks="HTTP-CODING-O")
def deflate_sent_as_gzip(original: Any, answer: Response, coding: str) -> Response:
    """A compressed answer is in the zlib format under the name of gzip."""
    plain = bytes(answer.body)
    return replace_body(original(answer, coding), zlib.compress(plain))


@fault("codings.encoded", breaks="HTTP-CODING-O")
def compressed_answer_without_its_end(original: Any, answer: Response, coding: str) -> Response:
    """The compressor of an answer is flushed and never finished."""
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(bytes(answer.body)) + packer.flush(zlib.Z_SYNC_FLUSH)
    return replace_body(original(answer, coding), body)


@fault("codings.encoded", breaks="HTTP-CODING-O")
def inference_header_counts_compressed_json(original: Any, answer: Response, coding: str) -> Response:
    """The inference header of a compressed answer is the length of the JSON after compression."""
    if HEADER in answer.headers:
        head = bytes(answer.body)[: int(answer.headers[HEADER])]
        answer.headers[HEADER] = str(len(zlib.compress(head, wbits=31)))
    return original(answer, coding)  # type: ignore[no-any-return]


@fault("codings.encoded", breaks="HTTP-CODING-O")
def json_and_binary_compressed_apart(original: Any, answer: Response, coding: str) -> Response:
    """The JSON of an answer is compressed and the binary data behind it are not."""
    end, body = int(answer.headers.get(HEADER, len(answer.body))), bytes(answer.body)
    answer.body = body[:end]
    found: Response = original(answer, coding)
    return replace_body(found, bytes(found.body) + body[end:])


@fault("codings.encoded", breaks="HTTP-CODING-O")
def content_length_from_before_compression(original: Any, answer: Response, coding: str) -> Response:
    """A compressed answer is filled up with blanks to the length that it had before."""
    before = len(answer.body)
    found: Response = original(answer, coding)
    return replace_body(found, bytes(found.body).ljust(before))


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
def decoded_body_cut_at_content_length(original: Any, body: bytes, coding: str, limit: int) -> bytes:
    """Of a request body that is decompressed only as many bytes are read as Content-Length says."""
    return bytes(original(body, coding, limit))[: len(body)]


@fault("codings.decoded", breaks="HTTP-CODING-I")
def compressed_request_answered_with_200(_original: Any, _body: bytes, _coding: str, _limit: int) -> bytes:
    """A compressed raw request is answered with the tensor of an empty body."""
    return b""


@fault("app.Service.read_body", breaks="HTTP-CODING-I")
async def coding_of_chunked_requests_ignored(original: Any, service: app.Service, http: Request) -> bytes:
    """The coding of a chunked request is not undone: its coded bytes are the body."""
    chunked = "transfer-encoding" in http.headers
    body: bytes = await (http_body.read(http, service.limits) if chunked else original(service, http))
    return body


@fault("codings.decoded", breaks="HTTP-CODING-I")
def second_gzip_member_lost(_original: Any, body: bytes, coding: str, _limit: int) -> bytes:
    """Of a gzip body of several members the first one is read."""
    return zlib.decompressobj(codings.WINDOWS[coding]).decompress(body)


@fault("codings.of_request", breaks="HTTP-CODING-I")
def coding_in_capitals_ignored(original: Any, http: Request) -> str | None:
    """A coding whose name is in capitals is taken for none."""
    name: str | None = original(http)
    return None if http.headers.get("content-encoding", "").isupper() else name


@fault("codings.of_request", breaks="HTTP-CODING-I")
def codings_other_than_gzip_ignored(original: Any, http: Request) -> str | None:
    """A coding other than gzip is taken for none."""
    return original(http) if http.headers.get("content-encoding", "").lower() == "gzip" else None


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
