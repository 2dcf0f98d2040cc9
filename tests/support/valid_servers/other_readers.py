"""Servers that read requests in other valid ways, or refuse what no document requires."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.faults.edits import find_json_end
from reference_server.framing import HEADER
from reference_server.tensors import Tensor

MAX_SEARCHED_BYTES = 2**20  # the end of larger JSON is found too slowly


@variation("strict_json.parse_object", breaks="OIP-MEMBERS")
def undefined_members_refused_at_each_level(original: Any, data: Any) -> Any:
    """The server refuses undefined members in the request, its inputs and its outputs."""
    found = original(data)
    known = {"id", "parameters", "inputs", "outputs", "name", "shape", "datatype", "data"}
    entries = [found, *(found.get("inputs") or []), *(found.get("outputs") or [])]
    if any(isinstance(entry, dict) and entry.keys() - known for entry in entries):
        raise InferenceError("unknown members")
    return found


def _refuse_names(found: Any, pattern: str) -> Any:
    """Refuse parameters with names other than these."""
    entries = [found, *(found.get("inputs") or []), *(found.get("outputs") or [])]
    given = [entry.get("parameters") for entry in entries if isinstance(entry, dict)]
    names = [name for each in given if isinstance(each, dict) for name in each]
    if not all(re.fullmatch(pattern, name, re.DOTALL) for name in names):
        raise InferenceError("the name of a parameter is not supported")
    return found


@variation("strict_json.parse_object")
def names_of_parameters_are_identifiers(original: Any, data: Any) -> Any:
    """The server refuses names of parameters other than 1 to 64 letters and digits of ASCII, `.`, `_` and `-`."""
    return _refuse_names(original(data), "[A-Za-z0-9._-]{1,64}")


@variation("strict_json.parse_object")
def parameters_named_proto_are_refused(original: Any, data: Any) -> Any:
    """The server refuses names of parameters that pollute prototypes in JavaScript, as parsers of its frameworks do."""
    return _refuse_names(original(data), "(?!(__proto__|constructor|prototype)$).*")


@variation("strict_json.parse_object")
def numbers_of_more_digits_than_doubles_are_refused(original: Any, data: Any) -> Any:
    """The server refuses JSON with a fraction of more digits than a double can hold."""
    if re.search(rb"(?=[0-9]*\.)[1-9](?:\.?[0-9]){17,}", bytes(data)):
        raise InferenceError("more than this reader holds")
    return original(data)


@variation("app.Application.find_endpoint")
def server_metadata_are_at_a_path_with_a_slash(original: Any, application: Any, http: Request) -> Any:
    """The server has its metadata at `v2/`, and redirects from `v2`, as routers of frameworks do."""
    if http.scope["path"] == "/v2":
        raise HTTPException(307, headers={"Location": "/v2/"})
    if http.scope["path"] == "/v2/":
        http.scope["path"] = "/v2"
    return original(application, http)


@variation("app.Service.infer", surveyed=True)
async def inference_without_a_version_is_refused(original: Any, service: Any, http: Request) -> Response:
    """The server refuses inference requests without a version, and describes models without one."""
    if "version" not in http.path_params:
        raise InferenceError("which version?", status=404)
    answer: Response = await original(service, http)
    return answer


@variation("app.Service.find_model")
def no_paths_with_a_version(original: Any, service: Any, http: Any) -> Any:
    """The server has no paths with a version, although the model metadata list one."""
    if "version" in http.path_params:
        raise InferenceError("no such path", status=404)
    return original(service, http)


@variation("app.answer_routing_error", breaks="OIP-ERROR-ELSEWHERE")
async def errors_of_http_in_plain_text(_original: Any, _http: Any, exception: Any) -> Response:
    """The server refuses unknown paths and methods in plain text."""
    return PlainTextResponse(str(exception.detail), exception.status_code)


@variation("tensors.decode_json")
def integers_need_no_point(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server refuses integers that are written with a decimal point or an exponent."""
    if "INT" in datatype and re.search(r"[0-9][.eE]", json.dumps(data)):
        raise InferenceError("integers have no point")
    found: Tensor = original(datatype, shape, data)
    return found


@variation("framing.parse_json_length")
def leading_zeros_in_the_header_refused(original: Any, values: Any, body_length: int) -> Any:
    """The server refuses an inference header with a leading zero."""
    if any(re.match("0[0-9]", value) for value in values):
        raise InferenceError(f"{HEADER} is not a number")
    return original(values, body_length)


@variation(
    "request.parse",
    breaks=(
        "BIN-HEADER-TOO-LONG",
        "BIN-HEADER-WRONG",
        "BIN-HEADER-WRONG-ON-JSON",
        "BIN-HEADER-SPELLING",
        "BIN-HEADER-TWICE",
    ),
)
def header_value_ignored(original: Any, model: Any, values: Sequence[str], body: bytes) -> Any:
    """The server reads the inference header only for 0; the JSON and its sizes have to fill the body exactly."""
    end = find_json_end(body) if len(body) <= MAX_SEARCHED_BYTES else 0
    if not values or "0" in values or not end:
        return original(model, values, body)
    try:
        parameters = [item.get("parameters") or {} for item in json.loads(body[:end]).get("inputs") or ()]
        start = len(body) - sum(found.get("binary_data_size") or 0 for found in parameters)
    except (AttributeError, TypeError, ValueError):
        return original(model, [str(end)], body)
    if not end <= start <= len(body) or body[end:start].strip():
        raise InferenceError("the sizes do not fill the body")
    return original(model, [str(start)], body)


@variation("request.parse_outputs", breaks="OIP-TWICE")
def outputs_listed_twice_count_once(original: Any, model: Any, request: Any) -> Any:
    """The server returns an output once if the request lists it twice."""
    listed = request.get("outputs")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        return original(model, request)
    names = [entry.get("name") for entry in listed]
    once = [entry for index, entry in enumerate(listed) if entry.get("name") not in names[:index]]
    return original(model, {**request, "outputs": once})


@variation("request.parse_input", breaks="OIP-MEMBER-MISSING")
def datatype_of_an_input_may_be_absent(original: Any, model: Any, spec: Any, entry: Any, rest: Any) -> Any:
    """The server gives an input without a datatype the datatype of the model."""
    return original(model, spec, {"datatype": spec.datatype, **entry}, rest)


@variation("request.parse_inputs")
def requests_read_by_name_from_sorted_inputs(original: Any, model: Any, request: Any, rest: Any) -> Any:
    """The server reads the inputs of a JSON request in alphabetical order of their names."""
    inputs = request.get("inputs")
    if rest is None and isinstance(inputs, list) and all(isinstance(entry, dict) for entry in inputs):
        inputs = sorted(inputs, key=lambda entry: str(entry.get("name")))
        request = {**request, "inputs": inputs}
    return original(model, request, rest)


@variation("tensors.encode_json", breaks="OIP-NUMBER-EXACT")
def floats_in_scientific_notation(original: Any, tensor: Tensor) -> list[Any]:
    """The server rounds FP64 in JSON to fifteen digits."""
    items: list[Any] = original(tensor)
    return [float(f"{item:.15g}") for item in items] if tensor.datatype == "FP64" else items


@variation("app.Service.infer")
async def header_not_looked_at_for_json(original: Any, service: Any, http: Any) -> Response:
    """The server ignores the inference header of an application/json request whose body is JSON alone."""
    kind = http.headers.get("content-type", "")
    body = await http.body()
    if kind.startswith("application/json") and http.headers.get(HEADER, "0") != "0" and _is_json(body):
        kept = [item for item in http.scope["headers"] if item[0].decode().lower() != HEADER.lower()]
        http = Request({**http.scope, "headers": kept}, http.receive)
        http._body = body
    answer: Response = await original(service, http)
    return answer


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
