"""Compression of answers and of requests gone wrong."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER

# --- answers to clients that accept gzip -----------------------------------------------------------------------------


def coded(answer: Response, body: bytes, coding: str | None = "gzip") -> Response:
    """Return the answer with a coded body, and the header that says so."""
    kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
    return Response(body, headers=kept | ({"Content-Encoding": coding} if coding else {}))


def packed(answer: Response) -> bytes:
    """Return the answer's body in the gzip coding."""
    return gzip.compress(bytes(answer.body), mtime=0)


def accepts(http: Request) -> bool:
    """Say whether the client accepts gzip."""
    return "gzip" in http.headers.get("accept-encoding", "")


@fault("app.Service.infer", breaks="HTTP-CODING-O")
async def compressed_without_saying_so(original: Any, service: Any, http: Request) -> Response:
    """An answer compressed for a client that accepts gzip has no Content-Encoding."""
    answer: Response = await original(service, http)
    return coded(answer, packed(answer), None) if accepts(http) else answer


@fault("app.Service.infer", breaks="HTTP-CODING-O")
async def says_compressed_and_is_not(original: Any, service: Any, http: Request) -> Response:
    """An answer to a client that accepts gzip names that coding and is not in it."""
    answer: Response = await original(service, http)
    return coded(answer, bytes(answer.body)) if accepts(http) else answer


@fault("app.Service.infer", breaks="HTTP-CODING-O")
async def deflate_sent_as_gzip(original: Any, service: Any, http: Request) -> Response:
    """A compressed answer is in the zlib format under the name of gzip."""
    answer: Response = await original(service, http)
    return coded(answer, zlib.compress(bytes(answer.body))) if accepts(http) else answer


@fault("app.Service.infer", breaks="HTTP-CODING-O")
async def compressed_answer_without_its_end(original: Any, service: Any, http: Request) -> Response:
    """The compressor of an answer is flushed and never finished."""
    answer: Response = await original(service, http)
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(bytes(answer.body)) + packer.flush(zlib.Z_SYNC_FLUSH)
    return coded(answer, body) if accepts(http) else answer


@fault("app.Service.infer", breaks="HTTP-CODING-O")
async def inference_header_counts_compressed_json(original: Any, service: Any, http: Request) -> Response:
    """The inference header of a compressed answer is the length of the JSON after compression."""
    answer: Response = await original(service, http)
    if not accepts(http):
        return answer
    found = coded(answer, packed(answer))
    if HEADER in answer.headers:
        found.headers[HEADER] = str(len(gzip.compress(bytes(answer.body)[: int(answer.headers[HEADER])])))
    return found


@fault("app.Service.infer", breaks="HTTP-CODING-O")
async def json_and_binary_compressed_apart(original: Any, service: Any, http: Request) -> Response:
    """The JSON of an answer is compressed and the binary data behind it are not."""
    answer: Response = await original(service, http)
    if not accepts(http) or HEADER not in answer.headers:
        return answer
    end = int(answer.headers[HEADER])
    body = bytes(answer.body)
    return coded(answer, gzip.compress(body[:end]) + body[end:])


@fault("app.Service.infer", breaks="HTTP-CODING-O")
async def content_length_from_before_compression(original: Any, service: Any, http: Request) -> Response:
    """A compressed answer is filled up with zeros to the length that it had before."""
    answer: Response = await original(service, http)
    return coded(answer, packed(answer).ljust(len(answer.body), b"\0")) if accepts(http) else answer


# --- requests --------------------------------------------------------------------------------------------------------


@fault("http_body.read", breaks="HTTP-CODING-I")
async def content_encoding_of_requests_ignored(_original: Any, http: Request, _limit: int) -> bytes:
    """The Content-Encoding of a request is not looked at, so that compressed bytes of a raw request become a tensor."""
    return await http.body()


@fault("http_body.read", breaks="HTTP-CODING-I")
async def decoded_body_cut_at_content_length(original: Any, http: Request, limit: int) -> bytes:
    """Of a request body that is decompressed only as many bytes are read as Content-Length says."""
    if http.headers.get("content-encoding") != "gzip":
        return bytes(await original(http, limit))
    body = await http.body()
    try:
        return gzip.decompress(body)[: len(body)]
    except (OSError, EOFError) as error:
        raise InferenceError("the body is not in the gzip coding") from error


@fault("http_body.read", breaks="HTTP-CODING-I")
async def compressed_request_answered_with_200(original: Any, http: Request, limit: int) -> bytes:
    """A compressed raw request is answered with the tensor of an empty body."""
    if http.headers.get("content-encoding") == "gzip" and http.headers.get(HEADER) == "0":
        return b""
    return bytes(await original(http, limit))
