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
from reference_server.faults import Fault, steps
from reference_server.faults import fault as variation
from reference_server.faults.edits import find_json_end, get_entries, has_listed_objects, has_version, sort_inputs
from reference_server.faults.input_conflicts import drop_duplicates
from reference_server.faults.json_text import list_parameters
from reference_server.framing import HEADER
from tests.support.valid_servers.json_text import write_digits

MAX_SEARCHED_BYTES = 2**20  # the end of larger JSON is found too slowly


def refuse_names(pattern: str, breaks: str = "", *, status: int = 400) -> Fault:
    """Return a server that refuses parameters with names other than these."""
    return steps.PARSE_OBJECT.refuse(
        breaks or (),
        status=status,
        when=lambda result: (
            not all(re.fullmatch(pattern, name, re.DOTALL) for given in list_parameters(result) for name in given)
        ),
    )


def _has_undefined_members(result: Any) -> bool:
    known = {"id", "parameters", "inputs", "outputs", "name", "shape", "datatype", "data"}
    entries = [result, *get_entries(result, "inputs"), *get_entries(result, "outputs")]
    return any(entry.keys() - known for entry in entries)


undefined_members_refused_at_each_level = steps.PARSE_OBJECT.refuse("OIP-MEMBERS", _has_undefined_members).says(
    "The server refuses undefined members in the request, its inputs and its outputs."
)
names_of_parameters_are_identifiers = refuse_names("[A-Za-z0-9._-]{1,64}").says(
    "The server refuses names of parameters other than 1 to 64 letters and digits of ASCII, `.`, `_` and `-`."
)
parameters_named_proto_are_refused = refuse_names("(?!(__proto__|constructor|prototype)$).*").says(
    "The server refuses names of parameters that pollute prototypes in JavaScript, as parsers of its frameworks do."
)
parameters_with_nul_raise = refuse_names("[^\0]*", "OIP-ERROR-STATUS", status=500).says(
    "The server answers 500 if the name of a parameter has a NUL, at which strings of C end."
)
numbers_of_more_digits_than_doubles_are_refused = steps.PARSE_OBJECT.refuse(
    when=lambda data: re.search(rb"(?=[0-9]*\.)[1-9](?:\.?[0-9]){17,}", bytes(data))
).says("The server refuses JSON with a fraction of more digits than a double can hold.")


@variation(steps.FIND_ENDPOINT)
def server_metadata_are_at_a_path_with_a_slash(original: Any, application: Any, http: Request) -> Any:
    """The server has its metadata at `v2/`, and redirects from `v2`, as routers of frameworks do."""
    if http.scope["path"] == "/v2":
        raise HTTPException(307, headers={"Location": "/v2/"})
    if http.scope["path"] == "/v2/":
        http.scope["path"] = "/v2"
    return original(application, http)


inference_without_a_version_is_refused = steps.INFER.refuse(
    when=lambda http: not has_version(http), status=404, in_discovery=True
).says("The server refuses inference requests without a version, and describes models without one.")
no_paths_with_a_version = steps.FIND_MODEL.refuse(when=has_version, status=404).says(
    "The server has no paths with a version, although the model metadata list one."
)
errors_of_http_in_plain_text = steps.ANSWER_ROUTING_ERROR.instead(
    "OIP-ERROR-ELSEWHERE", lambda exception: PlainTextResponse(str(exception.detail), exception.status_code)
).says("The server refuses unknown paths and methods in plain text.")
integers_need_no_point = steps.DECODE_JSON.refuse(
    when=lambda datatype, data: "INT" in datatype and re.search(r"[0-9][.eE]", json.dumps(data))
).says("The server refuses integers that are written with a decimal point or an exponent.")
leading_zeros_in_the_header_refused = steps.PARSE_LENGTH.refuse(
    when=lambda values: any(re.match("0[0-9]", value) for value in values)
).says("The server refuses an inference header with a leading zero.")


@variation(
    steps.PARSE,
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


outputs_listed_twice_count_once = steps.PARSE_OUTPUTS.before(
    "OIP-TWICE",
    request=lambda request: {**request, "outputs": drop_duplicates(request["outputs"])},
    when=lambda request: has_listed_objects(request, "outputs"),
).says("The server returns an output once if the request lists it twice.")
datatype_of_an_input_may_be_absent = steps.PARSE_INPUT.before(
    "OIP-MEMBER-MISSING", entry=lambda entry, spec: {"datatype": spec.datatype, **entry}
).says("The server gives an input without a datatype the datatype of the model.")
requests_read_by_name_from_sorted_inputs = steps.PARSE_INPUTS.before(
    (),
    request=lambda request: sort_inputs(request, lambda entry: str(entry["name"])),
    when=lambda rest: rest is None,
).says("The server reads the inputs of a JSON request in alphabetical order of their names.")
floats_in_scientific_notation = write_digits("FP64", 15, "OIP-NUMBER-EXACT").says(
    "The server rounds FP64 in JSON to fifteen digits."
)


@variation(steps.INFER)
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
