"""Content types of requests taken for what they are not; inference headers given twice; the headers of errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.answer_headers import set_header
from reference_server.faults.headers import OCTET_STREAM
from reference_server.framing import HEADER

FORM = "application/x-www-form-urlencoded"

# --- the content type of a request -----------------------------------------------------------------------------------


@fault("app.Service.read_body", breaks="OIP-CONTENT-TYPE-OTHER")
async def raw_forms_cut_at_their_first_ampersand(original: Any, service: Any, http: Request) -> bytes:
    """Of a raw request with the type of a form, only the first field of the form is read."""
    body: bytes = await original(service, http)
    is_form = http.headers.get("content-type") == FORM and http.headers.get(HEADER) == "0"
    return body.partition(b"&")[0] if is_form else body


@fault("app.Service.infer", breaks="OIP-CONTENT-TYPE-OTHER")
async def form_answered_with_an_empty_object(original: Any, service: Any, http: Request) -> Response:
    """A form is an empty request to the web framework, and is answered with an empty object."""
    if (http.headers.get("content-type") or "").startswith("multipart/"):
        await http.body()
        return Response(b"{}", media_type="application/json")
    answer: Response = await original(service, http)
    return answer


@fault("app.Service.infer", breaks="RAW-CONTENT-TYPE-OTHER")
async def raw_request_needs_its_type(original: Any, service: Any, http: Request) -> Response:
    """A raw request of another type than application/octet-stream is refused."""
    if http.headers.get(HEADER) == "0" and http.headers.get("content-type") != OCTET_STREAM:
        raise InferenceError("a raw request is of type application/octet-stream", status=415)
    answer: Response = await original(service, http)
    return answer


# --- two inference headers -------------------------------------------------------------------------------------------


@fault("framing.json_length", breaks="BIN-HEADER-TWICE")
def last_inference_header_counts(original: Any, values: Sequence[str], body_length: int) -> Any:
    """Of two inference headers the last counts."""
    return original(values[-1:], body_length)


@fault("framing.json_length", breaks=("BIN-HEADER-TWICE-SAFE", "BIN-HEADER-TWICE"))
def two_inference_headers_read_as_no_number(original: Any, values: Sequence[str], body_length: int) -> Any:
    """Two inference headers are joined by a comma, which reads as no number, and so as 0."""
    return original(values if len(values) < 2 else ["0"], body_length)


# --- the headers of errors -------------------------------------------------------------------------------------------


@fault("app.refused", breaks="BIN-HEADER-ON-JSON-O")
async def errors_keep_the_inference_header(original: Any, http: Request, exception: InferenceError) -> Response:
    """The error of a request with an inference header has that header."""
    answer: Response = await original(http, exception)
    return set_header(answer, HEADER, http.headers[HEADER]) if HEADER in http.headers else answer


@fault("app.refused", breaks="BIN-CONTENT-TYPE-OF-JSON")
async def errors_called_plain_text(original: Any, http: Request, exception: InferenceError) -> Response:
    """The error object is sent as text/plain."""
    answer: Response = await original(http, exception)
    return set_header(answer, "Content-Type", "text/plain; charset=utf-8")
