"""Faults that appear only if a certain kind of request has a certain framing, content coding, path or transport."""

from __future__ import annotations

import asyncio
import re
import zlib
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import http_body
from reference_server.errors import InferenceError
from reference_server.faults import fault, steps
from reference_server.faults.combined_values import has_more_elements
from reference_server.faults.edits import (
    get_media_type,
    has_version,
    is_binary,
    is_chunked,
    is_raw,
    on_elements,
    replace_body,
    set_classes,
    set_elements,
)
from reference_server.framing import HEADER
from reference_server.models import Model
from reference_server.request import InferRequest


def is_chunked_raw(http: Request) -> bool:
    """Whether a request is a chunked raw binary request."""
    return is_raw(http) and is_chunked(http)


def is_http_1_0(http: Request) -> bool:
    """Whether a request is HTTP/1.0."""
    return http.scope["http_version"] == "1.0"


raw_body_in_chunks_taken_as_empty = steps.READ_BODY.after(
    "HTTP-CHUNKED", lambda _: b"", when=is_chunked_raw, walks="raw"
).says("The server reads the body of a chunked raw request as empty.")
raw_body_in_chunks_ends_at_4_kib = steps.READ_BODY.after(
    "HTTP-CHUNKED", lambda body: body[:4096], when=is_chunked_raw, walks="raw"
).says("The server reads only the first 4 KiB of a chunked raw body.")


@fault(steps.READ_BODY, breaks="HTTP-CODING-I", walks="raw")
async def coded_raw_body_in_chunks_is_the_tensor(original: Any, service: Any, http: Request) -> bytes:
    """If a raw request is chunked and compressed, the server takes the compressed bytes as the tensor."""
    if is_chunked_raw(http) and "content-encoding" in http.headers:
        return await http_body.read(http, service.limits)
    return await original(service, http)


coded_binary_data_end_with_the_window = steps.READ_BODY.after(
    "HTTP-CODING-I",
    lambda body: body[:1024].ljust(len(body), b"\0"),
    when=lambda http: "content-encoding" in http.headers and HEADER in http.headers,
    walks="binary",
).says("The server decodes only 1 KiB of a compressed body with binary data, and reads the rest as zeros.")
lines_lost_in_chunks = steps.READ_BODY.after(
    "HTTP-CHUNKED", lambda body: body.partition(b"\r\n")[0], when=is_chunked, walks="json"
).says("The server drops everything after the first CRLF line break in a chunked body.")
raw_requests_refused_under_a_version = steps.INFER.refuse(
    "OIP-ENDPOINTS", lambda http: has_version(http) and is_raw(http), walks="raw"
).says("The server refuses a raw request if the path names a version.")


@fault(steps.FIND_MODEL, steps.CLASSIFY, breaks="OIP-ENDPOINTS", walks="classes")
def classes_of_scores_without_a_version_alone(original: Any, *arguments: Any) -> Any:
    """The server refuses to classify an output if the path names a version."""
    if isinstance(arguments[-1], Request):
        _path.append(arguments[-1].url.path)
        return original(*arguments)
    if _path and "/versions/" in _path[-1]:
        raise InferenceError("this version does not support classification")
    return original(*arguments)


_path: list[str] = []

binary_answers_cut_for_http_1_0 = steps.INFER.after(
    "OIP-ANSWER",
    lambda answer: replace_body(answer, bytes(answer.body)[:-16]),
    when=lambda http, result: is_http_1_0(http) and is_binary(result),
    walks="binary",
).says("Over HTTP/1.0, the server omits the last 16 bytes of a binary answer, also from Content-Length.")
binary_data_refused_in_http_1_0 = steps.INFER.refuse(
    "OIP-ANSWER", lambda http: is_http_1_0(http) and HEADER in http.headers, walks="binary"
).says("Over HTTP/1.0, which nginx uses towards upstream servers by default, the server refuses binary data with 400.")


@fault(steps.INFER, breaks="OIP-ANSWER", walks="json")
async def http_1_0_waits_for_ever(original: Any, service: Any, http: Request) -> Response:
    """The server never answers an HTTP/1.0 request with an id in the JSON."""
    if is_http_1_0(http) and b'"id"' in await http.body():
        await asyncio.sleep(3600)
    return await original(service, http)


text_is_latin_1 = steps.READ_BODY.after(
    "OIP-CONTENT-TYPE-OTHER",
    lambda body: body.decode("latin-1").encode(),
    when=lambda http: get_media_type(http).startswith("text/"),
    walks="json",
).says("If Content-Type begins with `text/`, the server reads the body as Latin-1, whatever the charset.")
raw_body_of_type_json_ends_at_1_kib = steps.READ_BODY.after(
    "RAW-ENCODING",
    lambda body: body[:1024].ljust(len(body), b"\0"),
    when=lambda http: is_raw(http) and get_media_type(http).startswith("application/json"),
    walks="raw",
).says("If a raw request has Content-Type application/json, the server reads all but the first 1 KiB as zeros.")
capitals_of_a_media_type_begin_the_body_again = steps.READ_BODY.after(
    "OIP-CONTENT-TYPE-JSON",
    lambda body: re.sub(rb'^\{"id":"[^"]*",', b"{", body),
    when=lambda http: get_media_type(http).startswith("Application/"),
    walks="json",
).says("If Content-Type begins with `Application/`, the server ignores an id at the start of the JSON.")
answers_before_closing_are_cut_to_a_page = steps.INFER.after(
    "OIP-ANSWER",
    lambda answer: replace_body(answer, bytes(answer.body)[:4096]),
    when=lambda http: http.headers.get("connection") == "close",
    walks="raw",
).says("If a request has Connection: close, the server cuts the answer to 4 KiB.")
compressed_binary_answers_end_at_2_kib = steps.ENCODE_BODY.before(
    "HTTP-CODING-O",
    answer=lambda answer: replace_body(answer, bytes(answer.body)[:2048]),
    when=is_binary,
    walks="binary",
).says("The server cuts an answer with binary data to 2 KiB before it compresses the answer.")
compressed_answers_with_an_id_compressed_twice = steps.ENCODE_BODY.before(
    "HTTP-CODING-O",
    answer=lambda answer: replace_body(answer, zlib.compress(bytes(answer.body), wbits=31)),
    when=lambda answer: bytes(answer.body).startswith(b'{"id"'),
    walks="json",
).says("The server compresses an answer with an id twice, but Content-Encoding names one coding.")
coded_bodies_decoded_as_latin_1 = steps.DECODE_BODY.after(
    "HTTP-CODING-I",
    lambda body: body.decode("latin-1").encode(),
    when=lambda result: result.startswith(b"{"),
    walks="json",
).says("The server reads a compressed JSON body as Latin-1 instead of UTF-8.")

# --- gRPC -------------------------------------------------------------------------------------------------------------

typed_bools_beyond_eight_are_false = steps.DECODE_TYPED.after(
    "GRPC-TYPED",
    on_elements(lambda elements: set_elements(elements, slice(8, None), False), "BOOL"),
    when=has_more_elements(8, "BOOL"),
    walks="calls",
).says("Over gRPC, the server reads BOOL elements after the eighth in typed contents as false.")
raw_contents_over_a_page_end_in_zeros = steps.DECODE_RAW.before(
    "GRPC-RAW",
    data=lambda data: data[:-16] + bytes(16),
    when=lambda datatype, data: datatype != "BYTES" and len(data) > 4096,
    walks="calls",
).says("Over gRPC, the server reads the last 16 bytes of numeric raw contents over 4 KiB as zeros.")
raw_calls_to_a_version_refused = steps.PARSE_CALL.refuse(
    "OIP-VERSIONED/grpc", lambda message: message.model_version and message.raw_input_contents, walks="calls"
).says("Over gRPC, the server refuses raw contents if the call names a model version.")
ids_lost_beside_lists = steps.BUILD_RESPONSE.before(
    "OIP-ID/grpc",
    request=lambda request: replace(request, id=None),
    when=lambda model, request: len(request.outputs) < len(model.outputs),
    walks="calls",
).says("Over gRPC, the answer has no id if the call lists only some of the outputs.")

_before: dict[str, bool] = {}


@fault(steps.PARSE_CALL, breaks="OIP-ALIVE/grpc", walks="calls")
def calls_with_an_id_refused_after_a_refusal(original: Any, model: Model, message: Any) -> InferRequest:
    """Over gRPC, the server refuses a call with an id directly after a refused call."""
    if _before.pop("refused", False) and message.id:
        raise InferenceError("the stream is broken")
    try:
        return original(model, message)
    except InferenceError:
        _before["refused"] = True
        raise


classes_forgotten_beside_an_id = steps.BUILD_RESPONSE.before(
    "CLS-PARAMETER/grpc",
    request=lambda request: replace(request, outputs=set_classes(request.outputs, lambda _: None)),
    when=lambda model, request: request.id and any(model.labels.values()),
    walks="classified-calls",
).says("Over gRPC, the server ignores `classification` in a call with an id if the model has labels.")
