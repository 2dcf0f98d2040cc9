"""Faults that appear only if a certain kind of request has a certain framing, content coding, path or transport."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server import http_body
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.request_bodies import replace_body
from reference_server.framing import HEADER
from reference_server.models import Model
from reference_server.request import InferRequest
from reference_server.tensors import Tensor

READ_BODY_STEP, INFER_STEP = "app.Service.read_body", "app.Service.infer"


def is_chunked(http: Request) -> bool:
    """Whether a request is chunked."""
    return "transfer-encoding" in http.headers


def is_raw(http: Request) -> bool:
    """Whether a request is a raw binary request."""
    return http.headers.get(HEADER) == "0"


def is_binary(answer: Response) -> bool:
    """Whether an answer contains binary data."""
    return HEADER in answer.headers


@fault(READ_BODY_STEP, breaks="HTTP-CHUNKED", walks="raw")
async def raw_body_in_chunks_taken_as_empty(original: Any, service: Any, http: Request) -> bytes:
    """The server reads the body of a chunked raw request as empty."""
    body: bytes = await original(service, http)
    return b"" if is_raw(http) and is_chunked(http) else body


@fault(READ_BODY_STEP, breaks="HTTP-CHUNKED", walks="raw")
async def raw_body_in_chunks_ends_at_4_kib(original: Any, service: Any, http: Request) -> bytes:
    """The server reads only the first 4 KiB of a chunked raw body."""
    body: bytes = await original(service, http)
    return body[:4096] if is_raw(http) and is_chunked(http) else body


@fault(READ_BODY_STEP, breaks="HTTP-CODING-I", walks="raw")
async def coded_raw_body_in_chunks_is_the_tensor(original: Any, service: Any, http: Request) -> bytes:
    """If a raw request is chunked and compressed, the server takes the compressed bytes as the tensor."""
    if is_raw(http) and is_chunked(http) and "content-encoding" in http.headers:
        return await http_body.read(http, service.limits)
    return await original(service, http)


@fault(READ_BODY_STEP, breaks="HTTP-CODING-I", walks="binary")
async def coded_binary_data_end_with_the_window(original: Any, service: Any, http: Request) -> bytes:
    """The server decodes only 1 KiB of a compressed body with binary data, and reads the rest as zeros."""
    body: bytes = await original(service, http)
    if "content-encoding" in http.headers and HEADER in http.headers and len(body) > 1024:
        return body[:1024] + bytes(len(body) - 1024)
    return body


@fault(READ_BODY_STEP, breaks="HTTP-CHUNKED", walks="json")
async def lines_lost_in_chunks(original: Any, service: Any, http: Request) -> bytes:
    """The server drops everything after the first CRLF line break in a chunked body."""
    body: bytes = await original(service, http)
    return body.partition(b"\r\n")[0] if is_chunked(http) else body


@fault(INFER_STEP, breaks="OIP-ENDPOINTS", walks="raw")
async def raw_requests_refused_under_a_version(original: Any, service: Any, http: Request) -> Response:
    """The server refuses a raw request if the path names a version."""
    if "/versions/" in http.url.path and is_raw(http):
        raise InferenceError("the body is not JSON")
    return await original(service, http)


@fault("app.Service.find_model", "classification.classify", breaks="OIP-ENDPOINTS", walks="classes")
def classes_of_scores_without_a_version_alone(original: Any, *arguments: Any) -> Any:
    """The server refuses to classify an output if the path names a version."""
    if isinstance(arguments[-1], Request):
        _path.append(arguments[-1].url.path)
        return original(*arguments)
    if _path and "/versions/" in _path[-1]:
        raise InferenceError("this version does not support classification")
    return original(*arguments)


_path: list[str] = []


@fault(INFER_STEP, breaks="OIP-ANSWER", walks="binary")
async def binary_answers_cut_for_http_1_0(original: Any, service: Any, http: Request) -> Response:
    """Over HTTP/1.0, the server omits the last 16 bytes of a binary answer, also from Content-Length."""
    answer: Response = await original(service, http)
    if http.scope["http_version"] == "1.0" and is_binary(answer):
        return replace_body(answer, bytes(answer.body)[:-16])
    return answer


@fault(INFER_STEP, breaks="OIP-ANSWER", walks="binary")
async def binary_data_refused_in_http_1_0(original: Any, service: Any, http: Request) -> Response:
    """Over HTTP/1.0, which nginx uses towards upstream servers by default, the server refuses binary data with 400."""
    if http.scope["http_version"] == "1.0" and HEADER in http.headers:
        raise InferenceError("the body is not JSON")
    return await original(service, http)


@fault(INFER_STEP, breaks="OIP-ANSWER", walks="json")
async def http_1_0_waits_for_ever(original: Any, service: Any, http: Request) -> Response:
    """The server never answers an HTTP/1.0 request with an id in the JSON."""
    if http.scope["http_version"] == "1.0" and b'"id"' in await http.body():
        await asyncio.sleep(3600)
    return await original(service, http)


@fault(READ_BODY_STEP, breaks="OIP-CONTENT-TYPE-OTHER", walks="json")
async def text_is_latin_1(original: Any, service: Any, http: Request) -> bytes:
    """If Content-Type begins with `text/`, the server reads the body as Latin-1, whatever the charset."""
    body: bytes = await original(service, http)
    return body.decode("latin-1").encode() if (http.headers.get("content-type") or "").startswith("text/") else body


@fault(READ_BODY_STEP, breaks="RAW-ENCODING", walks="raw")
async def raw_body_of_type_json_ends_at_1_kib(original: Any, service: Any, http: Request) -> bytes:
    """If a raw request has Content-Type application/json, the server reads all but the first 1 KiB as zeros."""
    body: bytes = await original(service, http)
    is_json = (http.headers.get("content-type") or "").startswith("application/json")
    return body[:1024] + bytes(max(0, len(body) - 1024)) if is_raw(http) and is_json else body


@fault(READ_BODY_STEP, breaks="OIP-CONTENT-TYPE-JSON", walks="json")
async def capitals_of_a_media_type_begin_the_body_again(original: Any, service: Any, http: Request) -> bytes:
    """If Content-Type begins with `Application/`, the server ignores an id at the start of the JSON."""
    body: bytes = await original(service, http)
    is_unknown = (http.headers.get("content-type") or "").startswith("Application/")
    return re.sub(rb'^\{"id":"[^"]*",', b"{", body) if is_unknown else body


@fault(INFER_STEP, breaks="OIP-ANSWER", walks="raw")
async def answers_before_closing_are_cut_to_a_page(original: Any, service: Any, http: Request) -> Response:
    """If a request has Connection: close, the server cuts the answer to 4 KiB."""
    answer: Response = await original(service, http)
    if http.headers.get("connection") == "close" and len(answer.body) > 4096:
        return replace_body(answer, bytes(answer.body)[:4096])
    return answer


@fault("http_body.encode", breaks="HTTP-CODING-O", walks="binary")
def compressed_binary_answers_end_at_2_kib(original: Any, answer: Response, coding: str) -> Response:
    """The server cuts an answer with binary data to 2 KiB before it compresses the answer."""
    if is_binary(answer) and len(answer.body) > 2048:
        replace_body(answer, bytes(answer.body)[:2048])
    return original(answer, coding)


@fault("http_body.encode", breaks="HTTP-CODING-O", walks="json")
def compressed_answers_with_an_id_compressed_twice(original: Any, answer: Response, coding: str) -> Response:
    """The server compresses an answer with an id twice, but Content-Encoding names one coding."""
    if bytes(answer.body).startswith(b'{"id"'):
        replace_body(answer, zlib.compress(bytes(answer.body), wbits=31))
    return original(answer, coding)


@fault("http_body.decode", breaks="HTTP-CODING-I", walks="json")
def coded_bodies_decoded_as_latin_1(original: Any, body: bytes, coding: str, limit: int) -> bytes:
    """The server reads a compressed JSON body as Latin-1 instead of UTF-8."""
    found: bytes = original(body, coding, limit)
    return found.decode("latin-1").encode() if found.startswith(b"{") else found


# --- gRPC -------------------------------------------------------------------------------------------------------------

_before: dict[str, bool] = {}


@fault("grpc_contents.decode_typed", breaks="GRPC-TYPED", walks="calls")
def typed_bools_beyond_eight_are_false(original: Any, datatype: str, shape: tuple[int, ...], contents: Any) -> Tensor:
    """Over gRPC, the server reads BOOL elements after the eighth in typed contents as false."""
    tensor: Tensor = original(datatype, shape, contents)
    if datatype != "BOOL" or tensor.elements.size <= 8:
        return tensor
    elements = tensor.elements.copy()
    elements[8:] = False
    return replace(tensor, elements=elements)


@fault("grpc_contents.decode_raw", breaks="GRPC-RAW", walks="calls")
def raw_contents_over_a_page_end_in_zeros(original: Any, datatype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    """Over gRPC, the server reads the last 16 bytes of numeric raw contents over 4 KiB as zeros."""
    if datatype != "BYTES" and len(data) > 4096:
        data = data[:-16] + bytes(16)
    return original(datatype, shape, data)


@fault("grpc_request.parse", breaks="OIP-VERSIONED/grpc", walks="calls")
def raw_calls_to_a_version_refused(original: Any, model: Model, message: Any) -> InferRequest:
    """Over gRPC, the server refuses raw contents if the call names a model version."""
    if message.model_version and message.raw_input_contents:
        raise InferenceError("raw contents need a call without a version")
    return original(model, message)


@fault("grpc_response.build", breaks="OIP-ID/grpc", walks="calls")
def ids_lost_beside_lists(original: Any, model: Model, request: InferRequest, produced: Mapping[str, Tensor]) -> Any:
    """Over gRPC, the answer has no id if the call lists only some of the outputs."""
    if len(request.outputs) < len(model.outputs):
        request = replace(request, id=None)
    return original(model, request, produced)


@fault("grpc_request.parse", breaks="OIP-ALIVE/grpc", walks="calls")
def calls_with_an_id_refused_after_a_refusal(original: Any, model: Model, message: Any) -> InferRequest:
    """Over gRPC, the server refuses a call with an id directly after a refused call."""
    if _before.pop("refused", False) and message.id:
        raise InferenceError("the stream is broken")
    try:
        return original(model, message)
    except InferenceError:
        _before["refused"] = True
        raise


@fault("grpc_response.build", breaks="CLS-PARAMETER/grpc", walks="classified-calls")
def classes_forgotten_beside_an_id(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """Over gRPC, the server ignores `classification` in a call with an id if the model has labels."""
    if request.id and any(model.labels.values()):
        request = replace(request, outputs=[replace(output, classes=None) for output in request.outputs])
    return original(model, request, produced)
