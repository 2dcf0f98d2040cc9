"""Other refusals: with another status, of another form, or of requests that not every server accepts."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from reference_server import app
from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.framing import HEADER


def _with_status(original: Any, status: int, arguments: tuple[Any, ...]) -> Response:
    message, given, *rest = arguments
    found: Response = original(message, status if given == 400 else given, *rest)
    return found


@variation("app.make_error")
def refused_with_422(original: Any, *arguments: Any) -> Response:
    """The server refuses bad requests with 422."""
    return _with_status(original, 422, arguments)


@variation("app.make_error")
def refused_with_404(original: Any, *arguments: Any) -> Response:
    """The server refuses bad requests with 404."""
    return _with_status(original, 404, arguments)


@variation("app.make_error", breaks="OIP-ERROR-STATUS")
def refused_with_500(original: Any, *arguments: Any) -> Response:
    """The server refuses bad requests with 500."""
    return _with_status(original, 500, arguments)


@variation("app.make_error")
def errors_with_more(_: Any, message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    """The server adds members to the error object, and non-ASCII characters to the message."""
    return JSONResponse({"code": status, "error": f"{message}; ü", "details": [], "trace": None}, status, headers)


@variation("app.Application.find_endpoint", breaks="OIP-PATH-ESCAPED")
def escaped_letters_in_paths_are_refused(original: Any, application: Any, http: Any) -> Any:
    """The server refuses a path with an unnecessary escape, of a letter, a digit or one of -._~, with 400."""
    if re.search(b"%(2[DE]|3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|7E)", http.scope["raw_path"], re.IGNORECASE):
        raise HTTPException(400)
    return original(application, http)


@variation("app.make_error")
def errors_close_the_connection(original: Any, *arguments: Any) -> Response:
    """The server closes the connection after an error, with `Connection: close`."""
    found: Response = original(*arguments)
    found.headers["Connection"] = "close"
    return found


@variation("app.make_error")
def errors_with_another_content_type(original: Any, *arguments: Any) -> Response:
    """The server sends errors with the Content-Type application/problem+json."""
    found: Response = original(*arguments)
    found.headers["content-type"] = "application/problem+json"
    return found


LIMIT = 65_536


@variation("app.Service.infer")
async def large_bodies_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses a body of 64 KiB or more with 413."""
    if len(await http.body()) >= LIMIT:
        raise InferenceError("the body is over the limit", status=413)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer", breaks="OIP-ERROR-ELSEWHERE")
async def large_bodies_are_refused_by_a_gateway(original: Any, service: app.Service, http: Any) -> Response:
    """The server is behind a gateway that refuses a body of 64 KiB or more with 413 and an HTML page."""
    if len(await http.body()) >= LIMIT:
        return HTMLResponse("<h1>413 Request Entity Too Large</h1>", 413)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer")
async def chunked_binary_data_are_bad_requests(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses chunked binary data with 400, since the extension gives requests a Content-Length."""
    if "transfer-encoding" in http.headers and HEADER in http.headers:
        raise InferenceError("a Content-Length is needed", status=400)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer")
async def chunked_bodies_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses chunked bodies with 411."""
    if "transfer-encoding" in http.headers:
        raise InferenceError("a Content-Length is needed", status=411)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer")
async def inferences_in_http_1_0_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses every inference request in HTTP/1.0 with 400."""
    if http.scope["http_version"] == "1.0":
        raise InferenceError("HTTP/1.1 is needed", status=400)
    found: Response = await original(service, http)
    return found


@variation("models.Model.check_shape")
def inputs_without_elements_are_refused(original: Any, model: Any, spec: Any, shape: Sequence[int]) -> None:
    """The server refuses an input without elements."""
    if 0 in shape:
        raise InferenceError(f"shape {list(shape)} has no elements")
    original(model, spec, shape)


@variation("models.Model.run")
def outputs_without_elements_are_refused(original: Any, *arguments: Any) -> Any:
    """The server refuses a request if an output of the model has no elements."""
    found = original(*arguments)
    if any(0 in tensor.shape for tensor in found.values()):
        raise InferenceError("an output has no elements")
    return found


KNOWN_PARAMETERS = {"binary_data_size", "binary_data", "binary_data_output", "classification"}


@variation("members.get_parameters")
def unknown_parameters_are_refused(original: Any, entry: Any) -> Any:
    """The server refuses parameters that no document defines."""
    found = original(entry)
    if unknown := set(found) - KNOWN_PARAMETERS:
        raise InferenceError(f"unknown parameters {sorted(unknown)}")
    return found


@variation("members.get_parameters")
def parameters_that_are_no_integers_are_refused(original: Any, entry: Any) -> Any:
    """The server refuses an unknown parameter that is a number with a fraction, as Triton 2.39 did."""
    found = original(entry)
    if any(isinstance(found[name], float) for name in set(found) - KNOWN_PARAMETERS):
        raise InferenceError("a parameter is neither an integer, nor a boolean, nor a string")
    return found


_at_work: list[int] = []


@variation("app.Service.infer")
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


@variation("app.Service.infer")
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


@variation("app.Service.infer")
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


@variation("app.Service.infer")
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


@variation("app.Service.find_model")
def versions_in_paths_are_refused(original: Any, service: app.Service, http: Any) -> Any:
    """The server finds no model at a path with a version, even a version that the metadata list."""
    if "version" in http.path_params:
        raise InferenceError("models are served without versions", status=404)
    return original(service, http)


@variation("app.Service.infer")
async def unknown_credentials_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses any request with credentials with 401."""
    if "authorization" in http.headers:
        raise InferenceError("nobody has these credentials", status=401)
    found: Response = await original(service, http)
    return found


OWN_TYPES = ("application/json", "application/octet-stream")


@variation("app.Service.infer")
async def other_content_types_are_refused(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses a Content-Type other than JSON and octet-stream, with or without parameters, with 415."""
    if http.headers.get("content-type", OWN_TYPES[0]).partition(";")[0].strip().lower() not in OWN_TYPES:
        raise InferenceError("no such type is read", status=415)
    found: Response = await original(service, http)
    return found


@variation("app.Service.infer", breaks=("BIN-CONTENT-TYPE-OTHER", "RAW-CONTENT-TYPE-OTHER", "BIN-HEADER-ON-JSON-I"))
async def binary_data_need_their_type(original: Any, service: app.Service, http: Any) -> Response:
    """The server refuses an inference header if the Content-Type is not application/octet-stream."""
    if HEADER in http.headers and http.headers.get("content-type") != OWN_TYPES[1]:
        raise InferenceError("binary data are application/octet-stream", status=415)
    found: Response = await original(service, http)
    return found
