"""Malformed refusals, invalid requests that are accepted, and servers that do not recover from a refusal."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import get_entries, has_listed_objects
from reference_server.members import Object
from reference_server.models import Model
from reference_server.tensors import Tensor


def refuse_with(status: int) -> Callable[[InferenceError], NoReturn]:
    """Return a function that refuses with another status."""

    def answer(error: InferenceError) -> NoReturn:
        raise InferenceError(error.message, status) from None

    return answer


# --- the format of a refusal ------------------------------------------------------------------------------------------

errors_under_the_member_detail = steps.MAKE_ERROR.instead(
    ("OIP-ERROR", "OIP-ERROR-ELSEWHERE"), lambda message, status: JSONResponse({"detail": message}, status)
).says("The server writes the text of an error into the member `detail` instead of `error`, like FastAPI.")


@fault(steps.MAKE_ERROR, breaks="OIP-JSON")
def error_text_in_latin_1(_original: Any, message: str, status: int, _headers: Any = None) -> Response:
    """The server encodes errors in Latin-1, and their text contains a non-ASCII letter."""
    text = json.dumps({"error": f"Ungültig: {message}"}, ensure_ascii=False)
    return Response(text.encode("latin-1", "replace"), status, media_type="application/json")


refusals_with_status_500 = steps.ANSWER_REFUSAL.instead(
    "OIP-ERROR-STATUS", lambda exception: JSONResponse({"error": exception.message}, 500)
).says("The server answers refused requests with status 500.")


@fault(steps.ANSWER_REFUSAL, breaks="OIP-ERROR-STATUS")
async def texts_of_refusals_are_formats(original: Any, request: Any, exception: InferenceError) -> Response:
    """The server uses error texts as format strings: a name with a percent sign causes status 500."""
    try:
        exception.message % ()
    except (TypeError, ValueError):
        return JSONResponse({"error": "not enough arguments for format string"}, 500)
    return await original(request, exception)


malformed_json_with_status_500 = steps.PARSE_OBJECT.on_refusal("OIP-ERROR-STATUS", refuse_with(500)).says(
    "The server answers malformed JSON with status 500."
)
chunks_refused_with_a_page = steps.INFER.instead(
    "OIP-ERROR",
    lambda: HTMLResponse("<h1>411 Length Required</h1>", 411),
    when=lambda http: "transfer-encoding" in http.headers,
).says("The server refuses chunked bodies with 411 and an HTML page.")
codings_refused_without_a_body = steps.INFER.instead(
    "OIP-ERROR", lambda: Response(status_code=415), when=lambda http: "content-encoding" in http.headers
).says("The server refuses compressed bodies with 415 and an empty body.")
unknown_path_answered_with_detail = steps.ANSWER_ROUTING_ERROR.instead(
    "OIP-ERROR-ELSEWHERE",
    lambda: PlainTextResponse('{"detail":"Not Found"}', 404, media_type="application/json"),
    when=lambda exception: exception.status_code == 404,
).says("The server answers an unknown path with an object that has `detail` instead of `error`.")


# --- invalid requests that are accepted -------------------------------------------------------------------------------


@fault(steps.PARSE_OUTPUTS, steps.ANSWER_REFUSAL, breaks="OIP-REFUSAL")
def error_of_unknown_outputs_with_status_200(original: Any, *arguments: Any) -> Any:
    """The server answers a request for an unknown output with an error object, but with status 200."""
    if isinstance(arguments[-1], InferenceError):
        return original(*arguments)
    try:
        return original(*arguments)
    except InferenceError as error:
        raise InferenceError(error.message, 200 if "no such output" in error.message else error.status) from None


unknown_model_replaced_by_a_default = steps.FIND_MODEL.on_refusal(
    ("OIP-REFUSAL", "OIP-HEALTH", "OIP-VERSION-UNKNOWN"), lambda _, self: self.models["identity_int32"]
).says("The server uses a default model if the model or the version in a path is unknown.")


def _has_inputs(request: Object) -> bool:
    return has_listed_objects(request, "inputs")


def _fill_missing_inputs(request: Object, model: Model) -> Object:
    inputs = request["inputs"]
    given = {item.get("name") for item in inputs}
    absent = [spec.name for spec in model.inputs if spec.name not in given]
    zeros = [{**inputs[0], "name": name, "data": [0] * len(inputs[0].get("data") or [])} for name in absent]
    return request | {"inputs": [*inputs, *zeros]}


def _name_by_position(request: Object, model: Model) -> Object:
    names = [spec.name for spec in model.inputs]
    free = [name for name in names if name not in {item.get("name") for item in request["inputs"]}]
    named = [
        item if item.get("name") in names or not free else {**item, "name": free.pop(0)} for item in request["inputs"]
    ]
    return request | {"inputs": named}


missing_input_filled_with_zeros = steps.PARSE_INPUTS.before(
    "OIP-REFUSAL", request=_fill_missing_inputs, when=_has_inputs
).says("The server treats inputs as optional and fills missing inputs with zeros.")
inputs_taken_by_position = steps.PARSE_INPUTS.before(
    ("OIP-SIGNATURE", "OIP-MEMBER-MISSING"), request=_name_by_position, when=_has_inputs
).says("The server takes an input with an unknown name for the first declared input that the request lacks.")
unknown_outputs_left_out = steps.PARSE_OUTPUTS.before(
    ("OIP-REFUSAL", "OIP-MEMBER-MISSING"),
    request=lambda request, model: request | {"outputs": _select_known(request["outputs"], model.outputs)},
    when=lambda request: has_listed_objects(request, "outputs"),
).says("The server ignores requested outputs that the model does not have.")


def _select_known(entries: list[Object], specs: Any) -> list[Object]:
    known = {spec.name for spec in specs}
    return [item for item in entries if item.get("name") in known]


def parse_leniently(breaks: str, read: Callable[[str], Any]) -> Fault:
    """Return a fault: if strict parsing fails, the server parses the JSON of a request with a lenient function."""

    def answer(error: InferenceError, data: memoryview) -> Object:
        try:
            value = read(str(data, "utf-8"))
        except (ValueError, SyntaxError):
            value = None
        if not isinstance(value, dict):
            raise error
        return value

    return steps.PARSE_OBJECT.on_refusal(breaks, answer)


text_behind_the_json_ignored = parse_leniently(
    "OIP-JSON-STRICT", lambda text: json.JSONDecoder().raw_decode(text)[0]
).says("The server ignores text after the JSON object.")
quotes_of_the_wrong_kind_taken = parse_leniently("OIP-JSON-STRICT", ast.literal_eval).says(
    "The server accepts Python literals as JSON, for example strings in single quotes."
)
comment_in_front_of_the_json_skipped = parse_leniently(
    "OIP-JSON-STRICT", lambda text: json.loads(text.rpartition("*/")[2])
).says("The server skips a comment before the JSON object.")
missing_closing_brace_added = parse_leniently("OIP-REFUSAL", lambda text: json.loads(text + "}")).says(
    "The server adds a missing closing brace to the JSON."
)


def _fill_elements(data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    filler = "" if data and isinstance(data[0], str) else 0
    return [*data, *[filler] * max(0, math.prod(shape) - len(data))]


missing_elements_taken_for_zero = steps.FLATTEN.before(
    "OIP-REFUSAL", data=_fill_elements, when=lambda data: not any(isinstance(item, list) for item in data)
).says("If flat JSON data have too few elements, the server adds zeros or empty strings.")
surplus_elements_dropped = steps.FLATTEN.before(
    "OIP-REFUSAL",
    data=lambda data, shape: data[: math.prod(shape)],
    when=lambda data: data and not isinstance(data[0], list),
).says("The server ignores surplus elements of flat JSON data.")
text_taken_for_zero = steps.DECODE_JSON.before(
    ("OIP-COERCE", "OIP-RANGE"),
    data=lambda data: [0 if isinstance(item, str) else item for item in data],
    when=lambda datatype, data: datatype == "INT32" and isinstance(data, list),
).says("The server reads a string in INT32 JSON data as 0.")
first_of_an_array_taken = parse_leniently("OIP-REFUSAL", lambda text: json.loads(text)[0]).says(
    "The server accepts an array of requests and answers only the first request."
)


# --- inputs that contradict the metadata ------------------------------------------------------------------------------


def _has_all_inputs(request: Object, model: Model) -> bool:
    return {spec.name for spec in model.inputs} <= {item.get("name") for item in get_entries(request, "inputs")}


unknown_inputs_ignored = steps.PARSE_INPUTS.before(
    "OIP-SIGNATURE",
    request=lambda request, model: request | {"inputs": _select_known(get_entries(request, "inputs"), model.inputs)},
    when=_has_all_inputs,
).says("The server ignores additional inputs that the model does not have.")


@fault(steps.PARSE_INPUTS, breaks="OIP-REFUSAL")
def inputs_under_unknown_names_read_as_zeros(
    original: Any, model: Model, request: Object, rest: Any
) -> dict[str, Tensor]:
    """The server ignores JSON inputs under unknown names, and computes with zeros in place of the absent inputs."""
    listed = get_entries(request, "inputs")
    known = {spec.name for spec in model.inputs}
    absent = list(known - {item.get("name") for item in listed})
    unknown = [item for item in listed if isinstance(item.get("name"), str) and item["name"] not in known]
    if absent and len(absent) == len(unknown) and all(isinstance(item.get("data"), list) for item in unknown):
        for name, item in zip(absent, unknown, strict=True):
            filler = "" if item.get("datatype") == "BYTES" else 0
            listed.append({**item, "name": name, "data": [filler] * math.prod(item["shape"])})
        request = request | {"inputs": [item for item in listed if item not in unknown]}
    return original(model, request, rest)


def accept_datatype(is_accepted: Callable[..., bool]) -> Fault:
    """Return a fault: the server accepts some datatype of an input in place of the one that the model declares."""
    return steps.PARSE_INPUT.before(
        "OIP-SIGNATURE", entry=lambda entry, spec: {**entry, "datatype": spec.datatype}, when=is_accepted
    )


datatype_in_any_case_taken = accept_datatype(lambda entry, spec: entry.get("datatype") == spec.datatype.lower()).says(
    "The server accepts the datatype of an input in lower case."
)
wider_integers_taken = accept_datatype(lambda entry: entry.get("datatype") == "INT64" and "data" in entry).says(
    "The server accepts JSON inputs with the datatype INT64, whatever datatype the model declares."
)
unknown_datatype_taken = accept_datatype(lambda entry: entry.get("datatype") == "INTEGER").says(
    "The server accepts the undefined datatype INTEGER whatever datatype the model declares."
)
shape_compared_by_its_elements = steps.CHECK_SHAPE.instead(
    "OIP-SIGNATURE",
    lambda: None,
    when=lambda self, spec, shape: (
        -1 not in spec.shape and not self.batching and math.prod(shape) == math.prod(spec.shape)
    ),
).says("For a fixed shape without batching, the server compares only the number of elements.")
shape_compared_by_its_rank = steps.CHECK_SHAPE.instead(
    "OIP-SIGNATURE", lambda: None, when=lambda self, spec, shape: len(shape) == len(self.get_declared_shape(spec))
).says("The server compares only the number of dimensions of a shape.")

# --- after a refusal --------------------------------------------------------------------------------------------------

_pausing: set[str] = set()


@fault(steps.INFER, breaks="OIP-ALIVE")
async def pause_after_a_refusal(original: Any, service: Any, http: Any) -> Response:
    """After a refused request to model `add_sub`, the server refuses the next request to this model with 429."""
    name = http.path_params["model"]
    if name in _pausing:
        _pausing.remove(name)
        raise InferenceError("the model is being restarted", status=429)
    try:
        response: Response = await original(service, http)
    except InferenceError:
        _pausing.update({name} & {"add_sub"})
        raise
    return response


_kept: dict[str, dict[str, Tensor]] = {}


@fault(steps.PARSE_INPUTS, breaks=("OIP-ISOLATION", "HTTP-PIPELINE"))
def inputs_before_a_refusal_used_again(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """After refused inputs, the server runs the next request on earlier inputs of the requested model."""
    try:
        found: dict[str, Tensor] = original(model, request, rest)
    except InferenceError:
        _kept["refused"] = _kept.get(model.name, {})
        raise
    if _kept.pop("refused", None) is not None and model.name in _kept:
        return _kept[model.name]
    _kept[model.name] = found
    return found


# --- data not nested like the shape -----------------------------------------------------------------------------------


def _list_elements(data: Any) -> list[Any]:
    return [one for item in data for one in (_list_elements(item) if isinstance(item, list) else [item])]


def _has_right_count(data: list[Any], shape: tuple[int, ...]) -> bool:
    return len(_list_elements(data)) == math.prod(shape)


lengths_of_rows_not_looked_at = steps.FLATTEN.instead("OIP-NESTING", _list_elements, when=_has_right_count).says(
    "The server compares only the total number of elements in nested data with the shape."
)


@fault(steps.FLATTEN, breaks="OIP-NESTING-SAFE")
def rows_cut_and_filled(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The server truncates rows of data that are too long and fills short rows with zeros."""
    rows = [item for item in data if isinstance(item, list)]
    is_matrix = len(shape) == 2 and len(rows) == len(data) == shape[0]
    if not is_matrix or not _has_right_count(data, shape):
        return original(data, shape)
    return [one for row in rows for one in (row + [0] * shape[1])[: shape[1]]]
