"""Requests that are never answered: they end the server, which a supervisor starts again at once, or are forgotten."""

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

INFERS = "app.Service.infer"
MAX_INT = 2**31 - 1
DEEP = 10_000  # arrays or objects in each other
MAX_JSON = 4_000_000  # bytes
MAX_UNPACKED = 8 * 1024 * 1024  # bytes
Document = Any


class NoAnswer(Response):
    """An answer that never comes, since the process that would write it has ended: the connection is closed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Close the connection."""
        cycle: Any = send.__self__  # type: ignore[attr-defined]
        cycle.disconnected = True
        cycle.transport.close()


class ForgottenAnswer(Response):
    """An answer that never comes, since it is forgotten: the connection stays open."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Wait until the client disconnects."""
        while (await receive())["type"] != "http.disconnect":
            pass


async def _end_where(ends: Callable[[Document], bool], original: Any, service: Any, http: Request) -> Response:
    """Answer a request, or end with it where its JSON says so."""
    return NoAnswer() if ends(await read_document(http)) else await original(service, http)


async def read_document(http: Request) -> Document:
    """Return the JSON of a request, an empty object where there is none."""
    body, length = await http.body(), http.headers.get(HEADER, "")
    try:
        return json.loads(body[: int(length)] if length.isdecimal() else body)
    except ValueError:
        return {}


def list_inputs(document: Document) -> list[Any]:
    """Return the inputs of a request that are objects."""
    inputs = document.get("inputs") if isinstance(document, dict) else None
    return [item for item in inputs if isinstance(item, dict)] if isinstance(inputs, list) else []


def list_dimensions(item: Document) -> list[int]:
    """Return the shape of an input, an empty one where it is none."""
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


@fault(INFERS, breaks=("OIP-SIGNATURE-SAFE", "OIP-ERROR"))
async def negative_dimensions_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """A dimension of -1 is handed on to the model, which ends with it."""

    def ends(document: Document) -> bool:
        return any(-1 in list_dimensions(item) for item in list_inputs(document))

    return await _end_where(ends, original, service, http)


@fault(INFERS, breaks=("OIP-REFUSAL", "OIP-ERROR"))
async def elements_beyond_the_shape_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """JSON data with more elements than the shape has are written past the end of their buffer."""

    def ends(document: Document) -> bool:
        return any(_has_more_than_its_shape(item) for item in list_inputs(document))

    return await _end_where(ends, original, service, http)


def _has_more_than_its_shape(item: Document) -> bool:
    shape, data = list_dimensions(item), item.get("data")
    is_read = bool(shape) and min(shape) > 0 and isinstance(data, list)
    return is_read and sum(1 for _ in iterate_elements(data)) > math.prod(shape)


@fault(INFERS, broad=True)
async def inputs_without_elements_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """An input without elements has no address, which the model does not take."""

    def ends(document: Document) -> bool:
        return any(0 in list_dimensions(item) for item in list_inputs(document))

    return await _end_where(ends, original, service, http)


@fault(INFERS, broad=True)
async def integers_in_json_beyond_31_bits_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """Integers of JSON data are read as signed ones of 32 bits, whatever the datatype; a larger one ends the server."""

    def ends(document: Document) -> bool:
        return any(
            type(element) is int and not -MAX_INT <= element <= MAX_INT
            for item in list_inputs(document)
            if "INT" in str(item.get("datatype"))
            for element in iterate_elements(item.get("data"))
        )

    return await _end_where(ends, original, service, http)


# --- members ----------------------------------------------------------------------------------------------------------


@fault(INFERS, breaks=("OIP-MEMBER-MISSING", "OIP-ERROR"))
async def missing_members_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """A request without inputs, or an input without its name, shape or datatype, fails an assertion."""

    def ends(document: Document) -> bool:
        if not isinstance(document, dict) or not document:
            return False
        needed = {"name", "shape", "datatype"}
        return "inputs" not in document or any(needed - item.keys() for item in list_inputs(document))

    return await _end_where(ends, original, service, http)


@fault(INFERS, breaks=("OIP-MEMBER-MISSING", "OIP-ERROR"))
async def shapes_that_are_no_arrays_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """A shape that is no array fails an assertion of the JSON reader."""

    def ends(document: Document) -> bool:
        return any("shape" in item and not isinstance(item["shape"], list) for item in list_inputs(document))

    return await _end_where(ends, original, service, http)


@fault(INFERS, breaks=("BIN-SIZE-FALSE-SAFE", "BIN-SIZE-FALSE", "OIP-ERROR"))
async def sizes_beyond_31_bits_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """A size of binary data that does not fit 31 bits fails an assertion of the JSON reader."""

    def ends(document: Document) -> bool:
        sizes = [(item.get("parameters") or {}).get("binary_data_size") for item in list_inputs(document)]
        return any(type(size) is int and size > MAX_INT for size in sizes)

    return await _end_where(ends, original, service, http)


# --- headers ----------------------------------------------------------------------------------------------------------


@fault(
    INFERS,
    breaks=("BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-ON-JSON-SAFE", "BIN-HEADER-SPELLING-SAFE", "OIP-ERROR"),
)
async def inference_headers_beyond_31_bits_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """An inference header that does not fit 31 bits raises an uncaught exception."""
    digits = re.match(r"[+-]?[0-9]+", http.headers.get(HEADER, "").strip())
    if digits and not -MAX_INT <= int(digits[0]) <= MAX_INT:
        return NoAnswer()
    return await original(service, http)


# --- large requests, which end their model for good -------------------------------------------------------------------


def end_model(service: Any, http: Request) -> None:
    """Take the model that a request names away from its service."""
    service.models = {name: model for name, model in service.models.items() if name != http.path_params["model"]}


@fault(INFERS, breaks="ROBUST-LARGE")
async def deep_data_end_the_model(original: Any, service: Any, http: Request) -> Response:
    """Nested arrays of JSON data are read by recursion, which the stack ends."""
    data = (await http.body()).partition(b'"data"')[2]
    if b"[" * DEEP in data:
        end_model(service, http)
    return await original(service, http)


@fault(INFERS, breaks="ROBUST-LARGE")
async def deep_documents_end_the_model(original: Any, service: Any, http: Request) -> Response:
    """JSON is parsed by recursion, which the stack ends."""
    body = await http.body()
    if b"[" * DEEP in body or b'{"x":' * DEEP in body:
        end_model(service, http)
    return await original(service, http)


@fault("app.Service.read_body", breaks="ROBUST-BOMB")
async def packed_bodies_end_the_model(original: Any, service: Any, http: Request) -> bytes:
    """A body is unpacked however large it gets, until no memory is left."""
    try:
        body: bytes = await original(service, http)
    except InferenceError:
        if "content-encoding" in http.headers:
            end_model(service, http)
        raise
    if "content-encoding" in http.headers and len(body) > MAX_UNPACKED:
        end_model(service, http)
    return body


@fault(INFERS, breaks="OIP-ERROR")
async def megabytes_of_json_end_the_server(original: Any, service: Any, http: Request) -> Response:
    """The pieces of a body of 4 MB and more are listed on the stack, which ends."""
    is_large = len(await http.body()) > MAX_JSON and HEADER not in http.headers
    return NoAnswer() if is_large else await original(service, http)


# --- requests that are forgotten --------------------------------------------------------------------------------------


@fault("app.refused", broad=True)
async def refused_requests_are_never_answered(_original: Any, _request: Any, _exception: Exception) -> Response:
    """A connection is paused while its request is looked at, and goes on only if that is accepted."""
    return ForgottenAnswer()


@fault("app.not_routed", breaks="OIP-ERROR-ELSEWHERE")
async def unknown_paths_are_never_answered(_original: Any, _request: Any, _exception: Exception) -> Response:
    """What no endpoint takes is logged, and not answered."""
    return ForgottenAnswer()


@fault("app.Service.infer_coded", breaks="OIP-REQUEST-HEADERS")
async def several_accepted_codings_are_read_for_ever(original: Any, service: Any, http: Request) -> Response:
    """The reader of Accept-Encoding finds the first comma again and again."""
    return ForgottenAnswer() if "," in http.headers.get("Accept-Encoding", "") else await original(service, http)
