"""Other refusals: with another status, of another form, or of requests that not every server accepts."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from reference_server import app
from reference_server.errors import InferenceError
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.edits import get_entries, has_version, is_chunked, set_headers
from reference_server.framing import HEADER


def refuse_with(status: int, breaks: str = "") -> Fault:
    """Return a server that refuses bad requests with another status."""
    return steps.MAKE_ERROR.before(breaks or (), status=lambda given: status if given == 400 else given)


refused_with_422 = refuse_with(422).says("The server refuses bad requests with 422.")
refused_with_404 = refuse_with(404).says("The server refuses bad requests with 404.")
refused_with_500 = refuse_with(500, "OIP-ERROR-STATUS").says("The server refuses bad requests with 500.")


@variation(steps.MAKE_ERROR)
def errors_with_more(_: Any, message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """The server adds members to the error object, and non-ASCII characters to the message."""
    return JSONResponse({"code": status, "error": f"{message}; ü", "details": [], "trace": None}, status, headers)


@variation(steps.FIND_ENDPOINT, breaks="OIP-PATH-ESCAPED")
def escaped_letters_in_paths_are_refused(original: Any, application: Any, http: Any) -> Any:
    """The server refuses a path with an unnecessary escape, of a letter, a digit or one of -._~, with 400."""
    if re.search(b"%(2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)", http.scope["raw_path"], re.IGNORECASE):
        raise HTTPException(400)
    return original(application, http)


errors_close_the_connection = steps.MAKE_ERROR.after((), set_headers(Connection="close")).says(
    "The server closes the connection after an error, with `Connection: close`."
)
errors_with_another_content_type = steps.MAKE_ERROR.after(
    (), set_headers(content_type="application/problem+json")
).says("The server sends errors with the Content-Type application/problem+json.")

LIMIT = 65_536
KNOWN_PARAMETERS = {"binary_data_size", "binary_data", "binary_data_output", "classification"}

large_bodies_are_refused = steps.INFER.refuse(when=lambda body: len(body) >= LIMIT, status=413).says(
    "The server refuses a body of 64 KiB or more with 413."
)
large_bodies_are_refused_by_a_gateway = steps.INFER.instead(
    "OIP-ERROR-ELSEWHERE",
    lambda: HTMLResponse("<h1>413 Request Entity Too Large</h1>", 413),
    when=lambda body: len(body) >= LIMIT,
).says("The server is behind a gateway that refuses a body of 64 KiB or more with 413 and an HTML page.")
chunked_binary_data_are_bad_requests = steps.INFER.refuse(
    when=lambda http: is_chunked(http) and HEADER in http.headers
).says("The server refuses chunked binary data with 400, since the extension gives requests a Content-Length.")
chunked_bodies_are_refused = steps.INFER.refuse(when=is_chunked, status=411).says(
    "The server refuses chunked bodies with 411."
)
inferences_in_http_1_0_are_refused = steps.INFER.refuse(when=lambda http: http.scope["http_version"] == "1.0").says(
    "The server refuses every inference request in HTTP/1.0 with 400."
)
inputs_without_elements_are_refused = steps.CHECK_SHAPE.refuse(when=lambda shape: 0 in shape).says(
    "The server refuses an input without elements."
)
outputs_without_elements_are_refused = steps.RUN.refuse(
    when=lambda result: any(0 in tensor.shape for tensor in result.values())
).says("The server refuses a request if an output of the model has no elements.")
unknown_parameters_are_refused = steps.GET_PARAMETERS.refuse(when=lambda result: set(result) - KNOWN_PARAMETERS).says(
    "The server refuses parameters that no document defines."
)
members_that_are_null_are_refused = steps.PARSE_OBJECT.refuse(
    when=lambda result: any(
        item.get(name, "") is None
        for item in (result, *get_entries(result, "inputs"), *get_entries(result, "outputs"))
        for name in ("id", "parameters", "inputs", "outputs", "name", "shape", "datatype", "data")
    )
).says("The server refuses null for any member that the protocol defines.")
parameters_that_are_no_integers_are_refused = steps.GET_PARAMETERS.refuse(
    when=lambda result: any(isinstance(result[name], float) for name in set(result) - KNOWN_PARAMETERS)
).says("The server refuses an unknown parameter that is a number with a fraction, as Triton 2.39 did.")

_at_work: list[int] = []


@variation(steps.INFER)
async def busy_is_a_refusal(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses more than eight concurrent requests with 503."""
    if len(_at_work) >= 8:
        raise InferenceError("busy", status=503)
    _at_work.append(1)
    try:
        await asyncio.sleep(0.001)
        found: Response = await original(service, http)
    finally:
        _at_work.pop()
    return found


_loaded: set[str] = set()


@variation(steps.INFER)
async def models_are_loaded_when_they_are_asked_for(original: Any, service: app.Service, http: Any) -> Response:
    """The server answers the first request to each model with 503, because it loads models on demand."""
    name = http.path_params["model"]
    if name in service.models and name not in _loaded:
        _loaded.add(name)
        raise InferenceError("the model is being loaded", status=503)
    found: Response = await original(service, http)
    return found


MAX_LOADED_MODELS = 8
_in_memory: list[str] = []


@variation(steps.INFER)
async def eight_models_fit_into_memory(original: Any, service: app.Service, http: Any) -> Response:
    """The server keeps eight models in memory, and answers the first request to another one with 503."""
    name = http.path_params["model"]
    is_loaded = name in _in_memory
    if name in service.models:
        _in_memory[:] = [*[one for one in _in_memory if one != name], name][-MAX_LOADED_MODELS:]
        if not is_loaded:
            await http.body()
            raise InferenceError("the model is being loaded", status=503)
    found: Response = await original(service, http)
    return found


THROTTLE_S = 0.02
_last_refusal: list[float] = [0.0]


@variation(steps.INFER)
async def requests_after_a_refusal_are_throttled(original: Any, service: app.Service, http: Any) -> Response:
    """The server answers 429 for 20 ms after it refused an inference request."""
    if time.monotonic() < _last_refusal[-1] + THROTTLE_S:
        await http.body()
        raise InferenceError("too many bad requests", status=429)
    try:
        found: Response = await original(service, http)
    except InferenceError:
        _last_refusal[:] = [time.monotonic()]
        raise
    return found


versions_in_paths_are_refused = steps.FIND_MODEL.refuse(when=has_version, status=404).says(
    "The server finds no model at a path with a version, even a version that the metadata list."
)
unknown_credentials_are_refused = steps.INFER.refuse(
    when=lambda http: "authorization" in http.headers, status=401
).says("The server refuses any request with credentials with 401.")

OWN_TYPES = ("application/json", "application/octet-stream")

other_content_types_are_refused = steps.INFER.refuse(
    when=lambda http: http.headers.get("content-type", OWN_TYPES[0]).partition(";")[0].strip().lower() not in OWN_TYPES,
    status=415,
).says("The server refuses a Content-Type other than JSON and octet-stream, with or without parameters, with 415.")
binary_data_need_their_type = steps.INFER.refuse(
    ("BIN-CONTENT-TYPE-OTHER", "RAW-CONTENT-TYPE-OTHER", "BIN-HEADER-ON-JSON-I"),
    lambda http: HEADER in http.headers and http.headers.get("content-type") != OWN_TYPES[1],
    status=415,
).says("The server refuses an inference header if the Content-Type is not application/octet-stream.")
