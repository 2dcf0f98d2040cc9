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
from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import get_entries, get_size
from reference_server.framing import HEADER

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


def crash_on_document(breaks: tuple[str, ...], is_fatal: Callable[[Document], bool], **options: Any) -> Fault:
    """Return a fault that closes the connection without an answer if `is_fatal` is true for the request's JSON."""
    return steps.INFER.instead(
        breaks, CrashResponse, when=lambda http, body: is_fatal(parse_document(http, body)), **options
    )


def crash_on_input(breaks: tuple[str, ...], is_fatal: Callable[[Document], bool], **options: Any) -> Fault:
    """Return a fault that closes the connection without an answer if `is_fatal` is true for an input."""
    return crash_on_document(breaks, lambda document: any(map(is_fatal, get_entries(document, "inputs"))), **options)


def parse_document(http: Request, body: bytes) -> Document:
    """Return the JSON of a request, or an empty object if the JSON is invalid."""
    length = http.headers.get(HEADER, "")
    try:
        return json.loads(body[: int(length)] if length.isdecimal() else body)
    except ValueError:
        return {}


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


def _has_surplus_elements(item: Document) -> bool:
    shape, data = list_dimensions(item), item.get("data")
    is_read = bool(shape) and min(shape) > 0 and isinstance(data, list)
    return is_read and sum(1 for _ in iterate_elements(data)) > math.prod(shape)


def _has_large_integers(item: Document) -> bool:
    elements = iterate_elements(item.get("data")) if "INT" in str(item.get("datatype")) else ()
    return any(type(element) is int and not -MAX_INT <= element <= MAX_INT for element in elements)


negative_dimensions_end_the_server = crash_on_input(("OIP-ERROR",), lambda item: -1 in list_dimensions(item)).says(
    "The server crashes if an input has a dimension of -1."
)
elements_beyond_the_shape_end_the_server = crash_on_input(("OIP-ERROR",), _has_surplus_elements).says(
    "The server crashes if JSON data have more elements than the shape, as in a buffer overflow."
)
inputs_without_elements_end_the_server = crash_on_input((), lambda item: 0 in list_dimensions(item), broad=True).says(
    "The server crashes if an input has a dimension of 0."
)
integers_in_json_beyond_31_bits_end_the_server = crash_on_input((), _has_large_integers, broad=True).says(
    "The server crashes if an integer in JSON data has a magnitude above 2^31 - 1, even in an INT64 input."
)

# --- members ----------------------------------------------------------------------------------------------------------


def _lacks_members(document: Document) -> bool:
    needed = {"name", "shape", "datatype"}
    is_object = isinstance(document, dict) and bool(document)
    return is_object and (
        "inputs" not in document or any(needed - item.keys() for item in get_entries(document, "inputs"))
    )


def _has_large_size(item: Document) -> bool:
    size = get_size(item)
    return type(size) is int and size > MAX_INT


missing_members_end_the_server = crash_on_document(("OIP-MEMBER-MISSING", "OIP-ERROR"), _lacks_members).says(
    "The server crashes if a request lacks `inputs`, or an input lacks `name`, `shape` or `datatype`."
)
shapes_that_are_no_arrays_end_the_server = crash_on_input(
    ("OIP-MEMBER-MISSING", "OIP-ERROR"), lambda item: "shape" in item and not isinstance(item["shape"], list)
).says("The server crashes if the `shape` of an input is not an array.")
sizes_beyond_31_bits_end_the_server = crash_on_input(("BIN-SIZE-FALSE", "OIP-ERROR"), _has_large_size).says(
    "The server crashes if the binary_data_size of an input exceeds 31 bits."
)


def _has_blanks_around_its_id(document: Document) -> bool:
    identifier = document.get("id") if isinstance(document, dict) else None
    return isinstance(identifier, str) and identifier != identifier.strip()


ids_with_blanks_at_their_ends_close_the_connection = crash_on_document(("OIP-ID",), _has_blanks_around_its_id).says(
    "The server writes the id into a header, and closes the connection if the id begins or ends with a blank."
)

# --- headers ----------------------------------------------------------------------------------------------------------


def _has_large_header(http: Request) -> bool:
    digits = re.match(r"[+-]?[0-9]+", http.headers.get(HEADER, "").strip())
    return digits is not None and not -MAX_INT <= int(digits[0]) <= MAX_INT


inference_headers_beyond_31_bits_end_the_server = steps.INFER.instead(
    ("BIN-HEADER-TOO-LONG", "OIP-ERROR"), CrashResponse, when=_has_large_header
).says("The server crashes if Inference-Header-Content-Length exceeds 31 bits.")


# --- large requests that crash their model for good -------------------------------------------------------------------


def crash_model(service: Any, http: Request) -> Any:
    """Remove the model that a request names from the service, as if the model had crashed; return the service."""
    service.models = {name: model for name, model in service.models.items() if name != http.path_params["model"]}
    return service


deep_data_end_the_model = steps.INFER.before(
    "ROBUST-LARGE", self=crash_model, when=lambda body: b"[" * NESTING_LEVELS in body.partition(b'"data"')[2]
).says("After JSON `data` with 10,000 nested arrays, the server no longer has the model, as in a stack overflow.")
deep_documents_end_the_model = steps.INFER.before(
    "ROBUST-LARGE",
    self=crash_model,
    when=lambda body: b"[" * NESTING_LEVELS in body or b'{"x":' * NESTING_LEVELS in body,
).says("After JSON with 10,000 nested levels, the server no longer has the model, as in a stack overflow.")


@fault(steps.READ_BODY, breaks="ROBUST-BOMB")
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


megabytes_of_json_end_the_server = steps.INFER.instead(
    "OIP-ERROR", CrashResponse, when=lambda http, body: len(body) > MAX_JSON_BYTES and HEADER not in http.headers
).says("The server crashes if a JSON body exceeds 4,000,000 bytes.")

# --- requests that are never answered ---------------------------------------------------------------------------------

refused_requests_are_never_answered = steps.ANSWER_REFUSAL.instead((), SilentResponse, broad=True).says(
    "The server never answers a request that it should refuse; the connection stays open."
)
unknown_paths_are_never_answered = steps.ANSWER_ROUTING_ERROR.instead("OIP-ERROR-ELSEWHERE", SilentResponse).says(
    "The server never answers a request with an unknown path or method; the connection stays open."
)
several_accepted_codings_are_read_for_ever = steps.INFER_CODED.instead(
    "OIP-REQUEST-HEADERS", SilentResponse, when=lambda http: "," in http.headers.get("Accept-Encoding", "")
).says("The server never answers an inference request whose Accept-Encoding contains a comma.")
accepted_compression_is_awaited_for_ever = steps.INFER_CODED.instead(
    "HTTP-CODING-O", SilentResponse, when=lambda http: "gzip" in http.headers.get("Accept-Encoding", "")
).says("The server never answers an inference request whose sender accepts gzip.")
