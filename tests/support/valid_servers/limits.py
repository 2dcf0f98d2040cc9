"""Limits of valid servers: elements, batches, ids, strings, bodies, headers, concurrent requests, classes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from starlette.responses import Response

from reference_server import app
from reference_server.errors import InferenceError
from reference_server.faults import fault as variation

SHAPE = "models.Model.check_shape"
LIMIT = 64 * 1024


def _refuse(is_over: bool, what: str, status: int = 400) -> None:
    if is_over:
        raise InferenceError(f"{what} over the limit", status=status)


# --- elements and shapes ----------------------------------------------------------------------------------------------


def _elements(most: int, status: int) -> Callable[..., None]:
    def body(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
        original(model, spec, shape)
        _refuse(math.prod(shape) > most, f"{math.prod(shape)} elements are", status)

    return body


@variation(SHAPE)
def more_than_1000_elements_are_refused(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses an input of more than 1000 elements with 400."""
    _elements(1000, 400)(original, model, spec, shape)


@variation(SHAPE, breaks="OIP-ERROR-STATUS")
def more_than_1000_elements_raise(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses an input of more than 1000 elements with 500, as frameworks answer an exception."""
    _elements(1000, 500)(original, model, spec, shape)


@variation(SHAPE)
def more_than_1000_elements_are_too_large(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses an input of more than 1000 elements with 413."""
    _elements(1000, 413)(original, model, spec, shape)


@variation(SHAPE)
def more_than_100_elements_are_refused(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses an input of more than 100 elements with 422."""
    _elements(100, 422)(original, model, spec, shape)


@variation(SHAPE)
def more_than_10000_elements_are_refused(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses an input of more than 10000 elements with 400."""
    _elements(10_000, 400)(original, model, spec, shape)


@variation(SHAPE)
def dimensions_over_128_are_refused(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses an input with a dimension above 128."""
    original(model, spec, shape)
    _refuse(max(shape, default=0) > 128, f"a dimension of {shape}")


@variation(SHAPE)
def batches_over_4_are_refused(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses a batch of more than four items with 400."""
    original(model, spec, shape)
    _refuse(model.batching and shape[0] > 4, f"a batch of {shape[:1]}")


@variation(SHAPE)
def batches_over_2_are_refused(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses a batch of more than two items with 422."""
    original(model, spec, shape)
    _refuse(model.batching and shape[0] > 2, f"a batch of {shape[:1]}", 422)


@variation("request.parse_inputs")
def more_than_500_elements_together_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses a request whose inputs have more than 500 elements together."""
    found = original(*arguments)
    _refuse(sum(math.prod(tensor.shape) for tensor in found.values()) > 500, "the elements are")
    return found


@variation("models.Model.run")
def more_than_1000_elements_of_an_output_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses a request for an output of more than 1000 elements."""
    found = original(*arguments)
    _refuse(any(math.prod(tensor.shape) > 1000 for tensor in found.values()), "an output is")
    return found


@variation("request.parse_json")
def json_over_16_kib_is_refused(original: Any, data: memoryview, rest: Any) -> Any:
    """The server refuses JSON of more than 16 KiB with 400 (RFC 8259, 9 allows such limits)."""
    _refuse(len(data) > 16 * 1024, "the JSON is")
    return original(data, rest)


# --- ids and strings --------------------------------------------------------------------------------------------------


def _long_ids(original: Any, arguments: tuple[Any, ...], most: int, status: int) -> Any:
    found = original(*arguments)
    _refuse(len(found.id or "") > most, "the id is", status)
    return found


@variation("request.parse")
def ids_over_64_characters_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses an id of more than 64 characters with 400."""
    return _long_ids(original, arguments, 64, 400)


@variation("request.parse")
def ids_over_36_characters_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses an id of more than 36 characters with 422."""
    return _long_ids(original, arguments, 36, 422)


@variation("request.parse")
def ids_over_200_bytes_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses an id of more than 200 bytes with 413."""
    found = original(*arguments)
    _refuse(len((found.id or "").encode()) > 200, "the id is", 413)
    return found


def _long_strings(original: Any, arguments: tuple[Any, ...], most: int, status: int = 400) -> Any:
    found = original(*arguments)
    texts = found.elements.tolist() if found.datatype == "BYTES" else ()
    _refuse(any(len(text) > most for text in texts), "a string is", status)
    return found


@variation("request.parse", "grpc_request.parse")
def ids_of_letters_and_digits_alone(original: Any, *arguments: Any) -> Any:
    """The server refuses an id with characters other than ASCII letters, digits, hyphens and underscores."""
    found = original(*arguments)
    if not re.fullmatch("[A-Za-z0-9_-]*", found.id or ""):
        raise InferenceError("the id has characters that are not allowed")
    return found


@variation("grpc_request.parse")
def grpc_ids_of_letters_and_digits_alone(original: Any, *arguments: Any) -> Any:
    """The server refuses an id with characters other than ASCII letters, digits, hyphens and underscores."""
    found = original(*arguments)
    if not re.fullmatch("[A-Za-z0-9_-]*", found.id or ""):
        raise InferenceError("the id has characters that are not allowed")
    return found


@variation("request.parse_input")
def strings_over_1024_bytes_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses a BYTES element of more than 1024 bytes."""
    return _long_strings(original, arguments, 1024)


@variation("request.parse_input")
def strings_over_100_bytes_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses a BYTES element of more than 100 bytes with 413."""
    return _long_strings(original, arguments, 100, 413)


# --- bytes ------------------------------------------------------------------------------------------------------------


@variation("request.parse")
def bodies_over_64_kib_are_bad_requests(original: Any, *arguments: Any) -> Any:
    """The server refuses a body of more than 64 KiB with 400."""
    _refuse(len(arguments[2]) > LIMIT, "the body is")
    return original(*arguments)


@variation("request.parse")
def bodies_over_256_kib_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses a body of more than 256 KiB with 422."""
    _refuse(len(arguments[2]) > 4 * LIMIT, "the body is", 422)
    return original(*arguments)


@variation("request.parse_json")
def json_over_64_kib_is_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses JSON of more than 64 KiB."""
    _refuse(len(arguments[0]) > LIMIT, "the JSON is")
    return original(*arguments)


@variation("request.parse_inputs")
def inputs_over_20000_bytes_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses inputs that take more than 20000 bytes of memory."""
    found = original(*arguments)
    sizes = (
        sum(map(len, tensor.elements.tolist())) if tensor.datatype == "BYTES" else tensor.elements.nbytes
        for tensor in found.values()
    )
    _refuse(sum(sizes) > 20_000, "the inputs are")
    return found


@variation("response.frame")
def answers_over_64_kib_are_refused(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server refuses a request whose answer would be longer than 64 KiB."""
    _refuse(len(head) + sum(map(len, binary)) > LIMIT, "the answer is")
    found: Response = original(head, binary)
    return found


@variation("strict_json.check_depth")
def json_deeper_than_8_is_refused(original: Any, value: Any) -> None:
    """The server refuses JSON that is nested more than eight levels deep."""
    level = [value]
    for _ in range(8):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    _refuse(any(isinstance(found, dict | list) for found in level), "the nesting is")
    original(value)


# --- HTTP -------------------------------------------------------------------------------------------------------------


@variation("app.Service.infer")
async def headers_over_1_kib_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses headers of more than 1024 bytes with 431."""
    _refuse(sum(len(name) + len(value) for name, value in http.headers.raw) > 1024, "the headers are", 431)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer")
async def headers_over_4_kib_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses headers of more than 4096 bytes with 431."""
    _refuse(sum(len(name) + len(value) for name, value in http.headers.raw) > 4096, "the headers are", 431)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer")
async def more_than_16_headers_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses more than sixteen headers with 431."""
    _refuse(len(http.headers.raw) > 16, "the headers are", 431)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer")
async def paths_over_80_characters_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses a path of more than eighty characters with 414."""
    _refuse(len(http.url.path) > 80, "the path is", 414)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer", breaks="OIP-ERROR-ELSEWHERE")
async def curl_and_requests_are_refused_by_name(original: Any, service: app.Service, http: Any) -> Response:
    """A gateway answers 403 and a page to clients that call themselves curl or python-requests."""
    if http.headers.get("User-Agent", "").startswith(("curl/", "python-requests/")):
        return Response("<h1>403 Forbidden</h1>", 403, media_type="text/html")
    found: Response = await original(service, http)
    return found


_at_work: list[int] = []


async def _in_turn(original: Any, service: app.Service, http: Any, most: int, status: int, work: float) -> Response:
    import asyncio

    _refuse(len(_at_work) >= most, "the number of requests is", status)
    _at_work.append(1)
    try:
        await asyncio.sleep(work)
        found: Response = await original(service, http)
    finally:
        _at_work.pop()
    return found


@variation("app.Service.infer")
async def more_than_4_at_a_time_are_too_many(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses more than four concurrent requests with 429."""
    return await _in_turn(original, service, http, 4, 429, 0.001)


@variation("app.Service.infer")
async def more_than_1_at_a_time_are_unavailable(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses more than one concurrent request with 503."""
    return await _in_turn(original, service, http, 1, 503, 0.001)


@variation("app.Service.infer")
async def requests_in_flight_are_turned_away(original: Any, service: app.Service, http: Any) -> Response:
    """The server works for 20 ms on each request, and refuses the third of three concurrent requests with 503."""
    return await _in_turn(original, service, http, 2, 503, 0.02)


@variation("response.frame")
def connections_end_after_3_answers(original: Any, head: bytes, binary: Sequence[Any]) -> Response:
    """The server sends `Connection: close` with every third answer."""
    found: Response = original(head, binary)
    _answers.append(1)
    if len(_answers) % 3 == 0:
        found.headers["Connection"] = "close"
    return found


_answers: list[int] = []


@variation("http_protocol.OipHttpProtocol.on_headers_complete")
def connections_end_after_5_requests(original: Any, protocol: Any) -> None:
    """The server closes a connection after the fifth answer, without `Connection: close`."""
    original(protocol)
    protocol.requests_of_this_connection = getattr(protocol, "requests_of_this_connection", 0) + 1
    if protocol.requests_of_this_connection >= 5:
        protocol.cycle.keep_alive = False


@variation("http_protocol.OipHttpProtocol.on_headers_complete")
def idle_connections_end_soon(original: Any, protocol: Any) -> None:
    """The server closes a connection that is idle for 0.1 s, without `Connection: close`."""
    original(protocol)
    protocol.timeout_keep_alive = 0.1


# --- classes ----------------------------------------------------------------------------------------------------------

CLASSIFY = "classification.classify"


def _ranks_only(original: Any, arguments: tuple[Any, ...], *datatypes: str, status: int = 400) -> Any:
    if arguments[0].datatype not in datatypes:
        raise InferenceError(f"{arguments[0].datatype} is not ranked", status=status)
    return original(*arguments)


@variation(CLASSIFY)
def floats_alone_are_ranked(original: Any, *arguments: Any) -> Any:
    """The server classifies only FP32 and FP64."""
    return _ranks_only(original, arguments, "FP32", "FP64")


@variation(CLASSIFY)
def fp32_alone_is_ranked(original: Any, *arguments: Any) -> Any:
    """The server classifies only FP32, and refuses other datatypes with 422."""
    return _ranks_only(original, arguments, "FP32", status=422)


@variation(CLASSIFY)
def floats_and_int32_are_ranked(original: Any, *arguments: Any) -> Any:
    """The server classifies only FP32, FP64, INT32 and INT64, and refuses other datatypes with 404."""
    return _ranks_only(original, arguments, "FP32", "FP64", "INT32", "INT64", status=404)


@variation(CLASSIFY)
def unsigned_outputs_are_not_ranked(original: Any, *arguments: Any) -> Any:
    """The server refuses to classify unsigned integers."""
    if arguments[0].datatype.startswith("UINT"):
        raise InferenceError("unsigned integers are not ranked")
    return original(*arguments)


@variation(CLASSIFY)
def integers_of_8_bits_are_not_ranked(original: Any, *arguments: Any) -> Any:
    """The server refuses to classify INT8 and UINT8."""
    if arguments[0].datatype in ("INT8", "UINT8"):
        raise InferenceError(f"classification does not support {arguments[0].datatype}")
    return original(*arguments)


@variation(CLASSIFY)
def more_than_100_classes_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses more than 100 classes of an output."""
    _refuse(arguments[1] > 100, "the number of classes is")
    return original(*arguments)


@variation(CLASSIFY)
def more_than_2_classes_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses more than two classes of an output, the largest number in the documents."""
    _refuse(arguments[1] > 2, "the number of classes is")
    return original(*arguments)


@variation(CLASSIFY)
def outputs_of_several_dimensions_are_not_ranked(original: Any, *arguments: Any) -> Any:
    """The server classifies vectors and batches of vectors, and refuses outputs of more dimensions."""
    tensor, _, batching, *_ = arguments
    if len(tensor.shape) > (2 if batching else 1):
        raise InferenceError(f"an output of shape {tensor.shape} is not ranked")
    return original(*arguments)


@variation(CLASSIFY)
def infinities_are_not_ranked(original: Any, *arguments: Any) -> Any:
    """The server refuses to classify an output with an infinity or NaN."""
    scores = arguments[0].elements
    if scores.dtype.kind == "f" and not np.isfinite(scores).all():
        raise InferenceError("a score is not finite")
    return original(*arguments)


# --- gRPC -------------------------------------------------------------------------------------------------------------


def _over_grpc(original: Any, arguments: tuple[Any, ...], most: int) -> Any:
    _refuse(math.prod(arguments[1]) > most, "the elements are")
    return original(*arguments)


@variation("grpc_contents.decode_typed", "grpc_contents.decode_raw")
def grpc_more_than_100_elements_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses an input of more than 100 elements."""
    return _over_grpc(original, arguments, 100)


@variation("grpc_contents.decode_typed", "grpc_contents.decode_raw", "grpc_server.get_status")
def grpc_more_than_100_elements_exhaust_the_server(original: Any, *arguments: Any) -> Any:
    """The server refuses an input of more than 100 elements with RESOURCE_EXHAUSTED."""
    if len(arguments) > 1:
        return _over_grpc(original, arguments, 100)
    from grpc import StatusCode

    code, text = original(*arguments)
    return (StatusCode.RESOURCE_EXHAUSTED if "over the limit" in text else code), text


@variation("grpc_contents.decode_typed", "grpc_contents.decode_raw", "grpc_server.get_status")
def grpc_more_than_1000_elements_raise(original: Any, *arguments: Any) -> Any:
    """The server refuses an input of more than 1000 elements with UNKNOWN, as gRPC libraries answer an exception."""
    if len(arguments) > 1:
        return _over_grpc(original, arguments, 1000)
    from grpc import StatusCode

    code, text = original(*arguments)
    return (StatusCode.UNKNOWN if "over the limit" in text else code), text


@variation("grpc_contents.decode_typed", "grpc_contents.decode_raw", "grpc_server.get_status")
def grpc_more_than_1000_elements_are_out_of_range(original: Any, *arguments: Any) -> Any:
    """The server refuses an input of more than 1000 elements with OUT_OF_RANGE."""
    if len(arguments) > 1:
        return _over_grpc(original, arguments, 1000)
    from grpc import StatusCode

    code, text = original(*arguments)
    return (StatusCode.OUT_OF_RANGE if "over the limit" in text else code), text


@variation("grpc_request.parse_input")
def grpc_batches_over_2_are_refused(original: Any, model: Any, spec: Any, *arguments: Any) -> Any:
    """The server refuses a batch of more than two items."""
    found = original(model, spec, *arguments)
    _refuse(model.batching and found.shape[0] > 2, "the batch is")
    return found


@variation("grpc_request.parse")
def grpc_ids_over_36_characters_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses an id of more than 36 characters."""
    return _long_ids(original, arguments, 36, 400)


@variation("grpc_request.parse_input")
def grpc_strings_over_100_bytes_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses a BYTES element of more than 100 bytes."""
    return _long_strings(original, arguments, 100)


@variation("grpc_response.classify_output")
def grpc_floats_alone_are_ranked(original: Any, model: Any, wish: Any, tensor: Any) -> Any:
    """The server classifies only FP32 and FP64."""
    if wish.classes is not None and tensor.datatype not in ("FP32", "FP64"):
        raise InferenceError(f"{tensor.datatype} is not ranked")
    return original(model, wish, tensor)


@variation("grpc_response.classify_output")
def grpc_more_than_100_classes_are_refused(original: Any, model: Any, wish: Any, tensor: Any) -> Any:
    """The server refuses more than 100 classes of an output."""
    _refuse((wish.classes or 0) > 100, "the number of classes is")
    return original(model, wish, tensor)


@variation("grpc_response.classify_output")
def grpc_more_than_2_classes_are_refused(original: Any, model: Any, wish: Any, tensor: Any) -> Any:
    """The server refuses more than two classes of an output, the largest number in the documents."""
    _refuse((wish.classes or 0) > 2, "the number of classes is")
    return original(model, wish, tensor)


@variation("grpc_response.classify_output")
def grpc_finite_vectors_alone_are_ranked(original: Any, model: Any, wish: Any, tensor: Any) -> Any:
    """The server refuses to classify an output of several dimensions, and one with an infinity or NaN."""
    is_finite = tensor.elements.dtype.kind != "f" or np.isfinite(tensor.elements).all()
    if wish.classes is not None and (len(tensor.shape) > 1 + model.batching or not is_finite):
        raise InferenceError("the output is not ranked")
    return original(model, wish, tensor)
