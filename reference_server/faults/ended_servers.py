"""Faults where a request crashes the server or a model, or is never answered.

After a crash, a supervisor restarts the server at once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.framing import HEADER

INFER_STEP = "app.Service.infer"
MAX_INT = 2**31 - 1
NESTING_LEVELS = 10_000  # nested arrays or objects
MAX_JSON_BYTES = 4_000_000
MAX_DECODED_BYTES = 8 * 1024 * 1024
Document = Any


class CrashResponse(Response):
    """A response that only closes the connection, as if the server process had crashed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Close the connection."""
        cycle: Any = send.__self__  # type: ignore[attr-defined]
        cycle.disconnected = True
        cycle.transport.close()


class SilentResponse(Response):
    """A response that sends nothing and leaves the connection open."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Wait until the client disconnects."""
        while (await receive())["type"] != "http.disconnect":
            pass


async def _answer_unless_fatal(
    is_fatal: Callable[[Document], bool], original: Any, service: Any, http: Request
) -> Response:
    """Answer a request, or close the connection without an answer if `is_fatal` is true for the request's JSON."""
    return CrashResponse() if is_fatal(await read_document(http)) else await original(service, http)


async def read_document(http: Request) -> Document:
    """Return the JSON of a request, or an empty object if the JSON is invalid."""
    body, length = await http.body(), http.headers.get(HEADER, "")
    try:
        return json.loads(body[: int(length)] if length.isdecimal() else body)
    except ValueError:
        return {}


def list_inputs(document: Document) -> list[Any]:
    """Return those inputs of a request that are JSON objects."""
    inputs = document.get("inputs") if isinstance(document, dict) else None
    return [item for item in inputs if isinstance(item, dict)] if isinstance(inputs, list) else []


def list_dimensions(item: Document) -> list[int]:
    """Return the shape of an input, or an empty list if the shape is not a list of integers."""
    shape = item.get("shape")
    return shape if isinstance(shape, list) and all(type(extent) is int for extent in shape) else []


def iterate_elements(data: Any) -> Iterator[Any]:
    """Yield the elements of JSON data, flat or nested."""
    if isinstance(data, list):
        for item in data:
            yield from iterate_elements(item)
    else:
        yield data


# --- shapes and elements ----------------------------------------------------------------------------------------------


@fault(INFER_STEP, breaks=("OIP-SIGNATURE-SAFE", "OIP-ERROR"))
async def negative_dimensions_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if an input has a dimension of -1."""

    def is_fatal(document: Document) -> bool:
        return any(-1 in list_dimensions(item) for item in list_inputs(document))

    return await _answer_unless_fatal(is_fatal, original, service, http)


@fault(INFER_STEP, breaks=("OIP-REFUSAL", "OIP-ERROR"))
async def elements_beyond_the_shape_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if JSON data have more elements than the shape, as in a buffer overflow."""

    def is_fatal(document: Document) -> bool:
        return any(_has_surplus_elements(item) for item in list_inputs(document))

    return await _answer_unless_fatal(is_fatal, original, service, http)


def _has_surplus_elements(item: Document) -> bool:
    shape, data = list_dimensions(item), item.get("data")
    is_read = bool(shape) and min(shape) > 0 and isinstance(data, list)
    return is_read and sum(1 for _ in iterate_elements(data)) > math.prod(shape)


@fault(INFER_STEP, broad=True)
async def inputs_without_elements_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if an input has a dimension of 0."""

    def is_fatal(document: Document) -> bool:
        return any(0 in list_dimensions(item) for item in list_inputs(document))

    return await _answer_unless_fatal(is_fatal, original, service, http)


@fault(INFER_STEP, broad=True)
async def integers_in_json_beyond_31_bits_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if an integer in JSON data has a magnitude above 2^31 - 1, even in an INT64 input."""

    def is_fatal(document: Document) -> bool:
        return any(
            type(element) is int and not -MAX_INT <= element <= MAX_INT
            for item in list_inputs(document)
            if "INT" in str(item.get("datatype"))
            for element in iterate_elements(item.get("data"))
        )

    return await _answer_unless_fatal(is_fatal, original, service, http)


# --- members ----------------------------------------------------------------------------------------------------------


@fault(INFER_STEP, breaks=("OIP-MEMBER-MISSING", "OIP-ERROR"))
async def missing_members_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if a request lacks `inputs`, or an input lacks `name`, `shape` or `datatype`."""

    def is_fatal(document: Document) -> bool:
        if not isinstance(document, dict) or not document:
            return False
        needed = {"name", "shape", "datatype"}
        return "inputs" not in document or any(needed - item.keys() for item in list_inputs(document))

    return await _answer_unless_fatal(is_fatal, original, service, http)


@fault(INFER_STEP, breaks=("OIP-MEMBER-MISSING", "OIP-ERROR"))
async def shapes_that_are_no_arrays_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if the `shape` of an input is not an array."""

    def is_fatal(document: Document) -> bool:
        return any("shape" in item and not isinstance(item["shape"], list) for item in list_inputs(document))

    return await _answer_unless_fatal(is_fatal, original, service, http)


@fault(INFER_STEP, breaks=("BIN-SIZE-FALSE-SAFE", "BIN-SIZE-FALSE", "OIP-ERROR"))
async def sizes_beyond_31_bits_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if the binary_data_size of an input exceeds 31 bits."""

    def is_fatal(document: Document) -> bool:
        sizes = [(item.get("parameters") or {}).get("binary_data_size") for item in list_inputs(document)]
        return any(type(size) is int and size > MAX_INT for size in sizes)

    return await _answer_unless_fatal(is_fatal, original, service, http)


# --- headers ----------------------------------------------------------------------------------------------------------


@fault(
    INFER_STEP,
    breaks=(
        "BIN-HEADER-TOO-LONG-SAFE",
        "BIN-HEADER-TOO-LONG",
        "BIN-HEADER-WRONG-ON-JSON-SAFE",
        "BIN-HEADER-SPELLING-SAFE",
        "OIP-ERROR",
    ),
)
async def inference_headers_beyond_31_bits_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if Inference-Header-Content-Length exceeds 31 bits."""
    digits = re.match(r"[+-]?[0-9]+", http.headers.get(HEADER, "").strip())
    if digits and not -MAX_INT <= int(digits[0]) <= MAX_INT:
        return CrashResponse()
    return await original(service, http)


# --- large requests that crash their model for good -------------------------------------------------------------------


def crash_model(service: Any, http: Request) -> None:
    """Remove the model that a request names from the service, as if the model had crashed."""
    service.models = {name: model for name, model in service.models.items() if name != http.path_params["model"]}


@fault(INFER_STEP, breaks="ROBUST-LARGE")
async def deep_data_end_the_model(original: Any, service: Any, http: Request) -> Response:
    """After JSON `data` with 10,000 nested arrays, the server no longer has the model, as in a stack overflow."""
    data = (await http.body()).partition(b'"data"')[2]
    if b"[" * NESTING_LEVELS in data:
        crash_model(service, http)
    return await original(service, http)


@fault(INFER_STEP, breaks="ROBUST-LARGE")
async def deep_documents_end_the_model(original: Any, service: Any, http: Request) -> Response:
    """After JSON with 10,000 nested levels, the server no longer has the model, as in a stack overflow."""
    body = await http.body()
    if b"[" * NESTING_LEVELS in body or b'{"x":' * NESTING_LEVELS in body:
        crash_model(service, http)
    return await original(service, http)


@fault("app.Service.read_body", breaks="ROBUST-BOMB")
async def packed_bodies_end_the_model(original: Any, service: Any, http: Request) -> bytes:
    """After a compressed body that is refused or exceeds 8 MiB decoded, the server no longer has the model."""
    try:
        body: bytes = await original(service, http)
    except InferenceError:
        if "content-encoding" in http.headers:
            crash_model(service, http)
        raise
    if "content-encoding" in http.headers and len(body) > MAX_DECODED_BYTES:
        crash_model(service, http)
    return body


@fault(INFER_STEP, breaks="OIP-ERROR")
async def megabytes_of_json_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The server crashes if a JSON body exceeds 4,000,000 bytes."""
    is_large = len(await http.body()) > MAX_JSON_BYTES and HEADER not in http.headers
    return CrashResponse() if is_large else await original(service, http)


# --- requests that are never answered ---------------------------------------------------------------------------------


@fault("app.answer_refusal", broad=True)
async def refused_requests_are_never_answered(_original: Any, _request: Any, _exception: Exception) -> Response:
    """The server never answers a request that it should refuse; the connection stays open."""
    return SilentResponse()


@fault("app.answer_routing_error", breaks="OIP-ERROR-ELSEWHERE")
async def unknown_paths_are_never_answered(_original: Any, _request: Any, _exception: Exception) -> Response:
    """The server never answers a request with an unknown path or method; the connection stays open."""
    return SilentResponse()


@fault("app.Service.infer_coded", breaks="OIP-REQUEST-HEADERS")
async def several_accepted_codings_are_read_for_ever(original: Any, service: Any, http: Request) -> Response:
    """The server never answers an inference request whose Accept-Encoding contains a comma."""
    return SilentResponse() if "," in http.headers.get("Accept-Encoding", "") else await original(service, http)
