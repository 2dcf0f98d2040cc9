"""Malformed refusals, invalid requests that are accepted, and servers that do not recover from a refusal."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import Tensor

# --- the format of a refusal ------------------------------------------------------------------------------------------


@fault("app.make_error", breaks=("OIP-ERROR", "OIP-ERROR-ELSEWHERE"))
def errors_under_the_member_detail(_original: Any, message: str, status: int, _headers: Any = None) -> Response:
    """The server writes the text of an error into the member `detail` instead of `error`, like FastAPI."""
    return JSONResponse({"detail": message}, status)


@fault("app.make_error", breaks="OIP-JSON")
def error_text_in_latin_1(_original: Any, message: str, status: int, _headers: Any = None) -> Response:
    """The server encodes errors in Latin-1, and their text contains a non-ASCII letter."""
    text = json.dumps({"error": f"Ungültig: {message}"}, ensure_ascii=False)
    return Response(text.encode("latin-1", "replace"), status, media_type="application/json")


@fault("app.answer_refusal", breaks="OIP-ERROR-STATUS")
async def refusals_with_status_500(_original: Any, _request: Any, exception: InferenceError) -> Response:
    """The server answers refused requests with status 500."""
    return JSONResponse({"error": exception.message}, 500)


@fault("app.answer_refusal", breaks="OIP-ERROR-STATUS")
async def texts_of_refusals_are_formats(original: Any, _request: Any, exception: InferenceError) -> Response:
    """The server uses error texts as format strings: a name with a percent sign causes status 500."""
    try:
        exception.message % ()
    except (TypeError, ValueError):
        return JSONResponse({"error": "not enough arguments for format string"}, 500)
    answer: Response = await original(_request, exception)
    return answer


@fault("models.Model.check_shape", breaks="OIP-ERROR-STATUS")
def exceptions_for_more_than_10000_elements(original: Any, model: Model, spec: Any, shape: tuple[int, ...]) -> None:
    """The server answers 500 to an input of more than 10000 elements."""
    original(model, spec, shape)
    if math.prod(shape) > 10_000:
        raise InferenceError("cannot allocate", 500)


@fault("strict_json.parse_object", breaks="OIP-ERROR-STATUS")
def malformed_json_with_status_500(original: Any, data: memoryview) -> Object:
    """The server answers malformed JSON with status 500."""
    try:
        request: Object = original(data)
    except InferenceError as error:
        raise InferenceError(error.message, 500) from None
    return request


@fault("app.answer_routing_error", breaks="OIP-ERROR-ELSEWHERE")
async def unknown_path_answered_with_detail(original: Any, http: Any, exception: Any) -> Response:
    """The server answers an unknown path with an object that has `detail` instead of `error`."""
    if exception.status_code == 404:
        return PlainTextResponse('{"detail":"Not Found"}', 404, media_type="application/json")
    return await original(http, exception)


# --- invalid requests that are accepted -------------------------------------------------------------------------------


@fault("request.parse_outputs", "app.answer_refusal", breaks="OIP-REFUSAL")
def error_of_unknown_outputs_with_status_200(original: Any, *arguments: Any) -> Any:
    """The server answers a request for an unknown output with an error object, but with status 200."""
    if isinstance(arguments[-1], InferenceError):
        return original(*arguments)
    try:
        return original(*arguments)
    except InferenceError as error:
        raise InferenceError(error.message, 200 if "no such output" in error.message else error.status) from None


@fault("app.Service.find_model", breaks=("OIP-REFUSAL", "OIP-HEALTH", "OIP-VERSION-UNKNOWN"))
def unknown_model_replaced_by_a_default(original: Any, service: Any, http: Any) -> Model:
    """The server uses a default model if the model or the version in a path is unknown."""
    try:
        model: Model = original(service, http)
    except InferenceError:
        return service.models["identity_int32"]
    return model


@fault("request.parse_inputs", breaks="OIP-REFUSAL")
def missing_input_filled_with_zeros(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """The server treats inputs as optional and fills missing inputs with zeros."""
    inputs = request.get("inputs")
    if isinstance(inputs, list) and inputs and all(isinstance(item, dict) for item in inputs):
        given = {item.get("name") for item in inputs}
        absent = [spec.name for spec in model.inputs if spec.name not in given]
        zeros = [{**inputs[0], "name": name, "data": [0] * len(inputs[0].get("data") or [])} for name in absent]
        request = request | {"inputs": [*inputs, *zeros]}
    return original(model, request, rest)


@fault("request.parse_inputs", breaks=("OIP-SIGNATURE", "OIP-MEMBER-MISSING"))
def inputs_taken_by_position(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """The server takes an input with an unknown name for the first declared input that the request lacks."""
    inputs = request.get("inputs")
    if isinstance(inputs, list) and all(isinstance(item, dict) for item in inputs):
        names = [spec.name for spec in model.inputs]
        free = [name for name in names if name not in {item.get("name") for item in inputs}]
        named = [item if item.get("name") in names or not free else {**item, "name": free.pop(0)} for item in inputs]
        request = request | {"inputs": named}
    return original(model, request, rest)


@fault("request.parse_outputs", breaks=("OIP-REFUSAL", "OIP-MEMBER-MISSING"))
def unknown_outputs_left_out(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The server ignores requested outputs that the model does not have."""
    known = {spec.name for spec in model.outputs}
    outputs = request.get("outputs")
    if isinstance(outputs, list) and all(isinstance(item, dict) for item in outputs):
        request = request | {"outputs": [item for item in outputs if item.get("name") in known]}
    return original(model, request)


def _parse_leniently(original: Any, data: memoryview, read: Any) -> Object:
    """Return the JSON object; if strict parsing fails, parse the text with the lenient function."""
    try:
        request: Object = original(data)
    except InferenceError:
        try:
            value = read(str(data, "utf-8"))
        except (ValueError, SyntaxError):
            value = None
        if not isinstance(value, dict):
            raise
        return value
    return request


@fault("strict_json.parse_object", breaks="OIP-JSON-STRICT")
def text_behind_the_json_ignored(original: Any, data: memoryview) -> Object:
    """The server ignores text after the JSON object."""
    return _parse_leniently(original, data, lambda text: json.JSONDecoder().raw_decode(text)[0])


@fault("strict_json.parse_object", breaks="OIP-JSON-STRICT")
def quotes_of_the_wrong_kind_taken(original: Any, data: memoryview) -> Object:
    """The server accepts Python literals as JSON, for example strings in single quotes."""
    return _parse_leniently(original, data, ast.literal_eval)


@fault("strict_json.parse_object", breaks="OIP-JSON-STRICT")
def comment_in_front_of_the_json_skipped(original: Any, data: memoryview) -> Object:
    """The server skips a comment before the JSON object."""
    return _parse_leniently(original, data, lambda text: json.loads(text.rpartition("*/")[2]))


@fault("strict_json.parse_object", breaks="OIP-REFUSAL")
def missing_closing_brace_added(original: Any, data: memoryview) -> Object:
    """The server adds a missing closing brace to the JSON."""
    return _parse_leniently(original, data, lambda text: json.loads(text + "}"))


@fault("tensors.flatten", breaks="OIP-REFUSAL")
def missing_elements_taken_for_zero(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """If flat JSON data have too few elements, the server adds zeros or empty strings."""
    short = math.prod(shape) - len(data) if not any(isinstance(item, list) for item in data) else 0
    filler = "" if data and isinstance(data[0], str) else 0
    return original([*data, *[filler] * max(0, short)], shape)


@fault("tensors.flatten", breaks="OIP-REFUSAL")
def surplus_elements_dropped(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The server ignores surplus elements of flat JSON data."""
    return original(data[: math.prod(shape)] if data and not isinstance(data[0], list) else data, shape)


@fault("tensors.decode_json", breaks=("OIP-COERCE", "OIP-RANGE"))
def text_taken_for_zero(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """The server reads a string in INT32 JSON data as 0."""
    numbers = [0 if isinstance(item, str) else item for item in data] if datatype == "INT32" else data
    return original(datatype, shape, numbers)


@fault("strict_json.parse_object", breaks="OIP-REFUSAL")
def first_of_an_array_taken(original: Any, data: memoryview) -> Object:
    """The server accepts an array of requests and answers only the first request."""
    return _parse_leniently(original, data, lambda text: json.loads(text)[0])


# --- inputs that contradict the metadata ------------------------------------------------------------------------------


@fault("request.parse_inputs", breaks="OIP-SIGNATURE")
def unknown_inputs_ignored(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """The server ignores additional inputs that the model does not have."""
    known = {spec.name for spec in model.inputs}
    inputs = request.get("inputs")
    if isinstance(inputs, list) and known <= {item.get("name") for item in inputs if isinstance(item, dict)}:
        request = request | {"inputs": [item for item in inputs if item.get("name") in known]}
    return original(model, request, rest)


def _accept_datatype(original: Any, model: Model, spec: Any, entry: Object, rest: Any, datatype: object) -> Tensor:
    """Read an input; accept `datatype` in place of the datatype that the model declares."""
    if entry.get("datatype") == datatype:
        entry = {**entry, "datatype": spec.datatype}
    return original(model, spec, entry, rest)


@fault("request.parse_input", breaks="OIP-SIGNATURE")
def datatype_in_any_case_taken(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Tensor:
    """The server accepts the datatype of an input in lower case."""
    return _accept_datatype(original, model, spec, entry, rest, spec.datatype.lower())


@fault("request.parse_input", breaks="OIP-SIGNATURE")
def wider_integers_taken(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Tensor:
    """The server accepts JSON inputs with the datatype INT64, whatever datatype the model declares."""
    return _accept_datatype(original, model, spec, entry, rest, "INT64" if "data" in entry else None)


@fault("request.parse_input", breaks="OIP-SIGNATURE")
def unknown_datatype_taken(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Tensor:
    """The server accepts the undefined datatype INTEGER whatever datatype the model declares."""
    return _accept_datatype(original, model, spec, entry, rest, "INTEGER")


@fault("models.Model.check_shape", breaks="OIP-SIGNATURE")
def shape_compared_by_its_elements(original: Any, model: Model, spec: Any, shape: tuple[int, ...]) -> None:
    """For a fixed shape without batching, the server compares only the number of elements."""
    if -1 in spec.shape or model.batching or math.prod(shape) != math.prod(spec.shape):
        original(model, spec, shape)


@fault("models.Model.check_shape", breaks="OIP-SIGNATURE")
def shape_compared_by_its_rank(original: Any, model: Model, spec: Any, shape: tuple[int, ...]) -> None:
    """The server compares only the number of dimensions of a shape."""
    if len(shape) != len(model.get_declared_shape(spec)):
        original(model, spec, shape)


# --- after a refusal --------------------------------------------------------------------------------------------------

_pausing: set[str] = set()


@fault("app.Service.infer", breaks="OIP-ALIVE")
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


@fault("request.parse_inputs", breaks=("OIP-ISOLATION", "HTTP-PIPELINE"))
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


@fault("tensors.flatten", breaks="OIP-NESTING")
def lengths_of_rows_not_looked_at(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The server compares only the total number of elements in nested data with the shape."""
    elements = _list_elements(data)
    return elements if len(elements) == math.prod(shape) else original(data, shape)


@fault("tensors.flatten", breaks="OIP-NESTING-SAFE")
def rows_cut_and_filled(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The server truncates rows of data that are too long and fills short rows with zeros."""
    rows = [item for item in data if isinstance(item, list)]
    is_matrix = len(shape) == 2 and len(rows) == len(data) == shape[0]
    if not is_matrix or len(_list_elements(data)) != math.prod(shape):
        return original(data, shape)
    return [one for row in rows for one in (row + [0] * shape[1])[: shape[1]]]
