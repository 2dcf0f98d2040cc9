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


@fault("app.error", breaks=("OIP-ERROR", "OIP-ERROR-ELSEWHERE"))
def errors_under_the_member_detail(_original: Any, message: str, status: int, _headers: Any = None) -> Response:
    """The text of an error is the member `detail`, as a web framework has it."""
    return JSONResponse({"detail": message}, status)


@fault("app.error", breaks="OIP-JSON")
def error_text_in_latin_1(_original: Any, message: str, status: int, _headers: Any = None) -> Response:
    """Errors are in a Western language and in Latin-1."""
    text = json.dumps({"error": f"Ungültig: {message}"}, ensure_ascii=False)
    return Response(text.encode("latin-1", "replace"), status, media_type="application/json")


@fault("app.refused", breaks="OIP-ERROR-STATUS")
async def refusals_with_status_500(_original: Any, _request: Any, exception: InferenceError) -> Response:
    """Every refusal is an internal error."""
    return JSONResponse({"error": exception.message}, 500)


@fault("app.refused", breaks="OIP-ERROR-STATUS")
async def texts_of_refusals_are_formats(original: Any, _request: Any, exception: InferenceError) -> Response:
    """The text of a refusal is a format, so that a percent sign in a name that it repeats is an internal error."""
    try:
        exception.message % ()
    except (TypeError, ValueError):
        return JSONResponse({"error": "not enough arguments for format string"}, 500)
    answer: Response = await original(_request, exception)
    return answer


@fault("strict_json.parse_object", breaks="OIP-ERROR-STATUS")
def malformed_json_with_status_500(original: Any, data: memoryview) -> Object:
    """An exception of the JSON reader ends as an internal error."""
    try:
        request: Object = original(data)
    except InferenceError as error:
        raise InferenceError(error.message, 500) from None
    return request


@fault("app.not_routed", breaks="OIP-ERROR-ELSEWHERE")
async def unknown_path_answered_with_detail(original: Any, http: Any, exception: Any) -> Response:
    """An unknown path is answered with an object of another form."""
    if exception.status_code == 404:
        return PlainTextResponse('{"detail":"Not Found"}', 404, media_type="application/json")
    return await original(http, exception)


# --- requests that cannot be executed ---------------------------------------------------------------------------------


@fault("request.parse_outputs", "app.refused", breaks="OIP-REFUSAL")
def error_of_unknown_outputs_with_status_200(original: Any, *arguments: Any) -> Any:
    """That an output is unknown is said under status 200, since the model ran."""
    if isinstance(arguments[-1], InferenceError):
        return original(*arguments)
    try:
        return original(*arguments)
    except InferenceError as error:
        raise InferenceError(error.message, 200 if "no such output" in error.message else error.status) from None


@fault("app.Service.find", breaks=("OIP-REFUSAL", "OIP-HEALTH", "OIP-VERSION-UNKNOWN"))
def unknown_model_replaced_by_a_default(original: Any, service: Any, http: Any) -> Model:
    """A request to an unknown model goes to a default model."""
    try:
        model: Model = original(service, http)
    except InferenceError:
        return service.models["identity_int32"]
    return model


@fault("request.parse_inputs", breaks="OIP-REFUSAL")
def missing_input_filled_with_zeros(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """An input that is missing is taken for zeros, as if it were optional."""
    inputs = request.get("inputs")
    if isinstance(inputs, list) and inputs and all(isinstance(item, dict) for item in inputs):
        given = {item.get("name") for item in inputs}
        absent = [spec.name for spec in model.inputs if spec.name not in given]
        zeros = [{**inputs[0], "name": name, "data": [0] * len(inputs[0].get("data") or [])} for name in absent]
        request = request | {"inputs": [*inputs, *zeros]}
    return original(model, request, rest)


@fault("request.parse_inputs", breaks=("OIP-SIGNATURE", "OIP-MEMBER-MISSING"))
def inputs_taken_by_position(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """An input with an unknown name is taken for the next one that the model declares."""
    inputs = request.get("inputs")
    if isinstance(inputs, list) and all(isinstance(item, dict) for item in inputs):
        names = [spec.name for spec in model.inputs]
        free = [name for name in names if name not in {item.get("name") for item in inputs}]
        named = [item if item.get("name") in names or not free else {**item, "name": free.pop(0)} for item in inputs]
        request = request | {"inputs": named}
    return original(model, request, rest)


@fault("request.parse_outputs", breaks=("OIP-REFUSAL", "OIP-MEMBER-MISSING"))
def unknown_outputs_left_out(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """A listed output that the model does not have is left out of the answer."""
    known = {spec.name for spec in model.outputs}
    outputs = request.get("outputs")
    if isinstance(outputs, list) and all(isinstance(item, dict) for item in outputs):
        request = request | {"outputs": [item for item in outputs if item.get("name") in known]}
    return original(model, request)


def _parse_leniently(original: Any, data: memoryview, read: Any) -> Object:
    """Return the JSON object; if strict parsing fails, parse it with the laxer `read`."""
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
    """The JSON reader stops behind the object, whatever follows."""
    return _parse_leniently(original, data, lambda text: json.JSONDecoder().raw_decode(text)[0])


@fault("strict_json.parse_object", breaks="OIP-JSON-STRICT")
def quotes_of_the_wrong_kind_taken(original: Any, data: memoryview) -> Object:
    """The JSON reader is one for a scripting language, which has single quotes as well."""
    return _parse_leniently(original, data, ast.literal_eval)


@fault("strict_json.parse_object", breaks="OIP-JSON-STRICT")
def comment_in_front_of_the_json_skipped(original: Any, data: memoryview) -> Object:
    """The JSON reader skips a comment in front of the object."""
    return _parse_leniently(original, data, lambda text: json.loads(text.rpartition("*/")[2]))


@fault("strict_json.parse_object", breaks="OIP-REFUSAL")
def missing_closing_brace_added(original: Any, data: memoryview) -> Object:
    """The JSON reader adds missing closing braces and brackets."""
    return _parse_leniently(original, data, lambda text: json.loads(text + "}"))


@fault("tensors.flatten", breaks="OIP-REFUSAL")
def missing_elements_taken_for_zero(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Data with fewer elements than the shape says are filled up, the tensor being allocated first."""
    short = math.prod(shape) - len(data) if not any(isinstance(item, list) for item in data) else 0
    filler = "" if data and isinstance(data[0], str) else 0
    return original([*data, *[filler] * max(0, short)], shape)


@fault("tensors.flatten", breaks="OIP-REFUSAL")
def surplus_elements_dropped(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Data with more elements than the shape says are cut off."""
    return original(data[: math.prod(shape)] if data and not isinstance(data[0], list) else data, shape)


@fault("tensors.decode_json", breaks=("OIP-COERCE", "OIP-RANGE"))
def text_taken_for_zero(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """A string among INT32 data counts 0, as `atoi` has it."""
    numbers = [0 if isinstance(item, str) else item for item in data] if datatype == "INT32" else data
    return original(datatype, shape, numbers)


@fault("strict_json.parse_object", breaks="OIP-REFUSAL")
def first_of_an_array_taken(original: Any, data: memoryview) -> Object:
    """An array of requests is taken for its first one."""
    return _parse_leniently(original, data, lambda text: json.loads(text)[0])


# --- inputs that contradict the metadata ------------------------------------------------------------------------------


@fault("request.parse_inputs", breaks="OIP-SIGNATURE")
def unknown_inputs_ignored(original: Any, model: Model, request: Object, rest: Any) -> dict[str, Tensor]:
    """An input that the model does not have is ignored beside those that it needs."""
    known = {spec.name for spec in model.inputs}
    inputs = request.get("inputs")
    if isinstance(inputs, list) and known <= {item.get("name") for item in inputs if isinstance(item, dict)}:
        request = request | {"inputs": [item for item in inputs if item.get("name") in known]}
    return original(model, request, rest)


def _as_declared(original: Any, model: Model, spec: Any, entry: Object, rest: Any, datatype: object) -> Tensor:
    """Read an input of the datatype `datatype` as if it had the declared one."""
    if entry.get("datatype") == datatype:
        entry = {**entry, "datatype": spec.datatype}
    return original(model, spec, entry, rest)


@fault("request.parse_input", breaks="OIP-SIGNATURE")
def datatype_in_any_case_taken(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Tensor:
    """The datatype is compared without regard to case."""
    return _as_declared(original, model, spec, entry, rest, spec.datatype.lower())


@fault("request.parse_input", breaks="OIP-SIGNATURE")
def wider_integers_taken(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Tensor:
    """JSON data of INT64 are taken for the model's INT32."""
    return _as_declared(original, model, spec, entry, rest, "INT64" if "data" in entry else None)


@fault("request.parse_input", breaks="OIP-SIGNATURE")
def unknown_datatype_taken(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Tensor:
    """A datatype that the server does not know is not compared with the model's."""
    return _as_declared(original, model, spec, entry, rest, "INTEGER")


@fault("models.Model.check_shape", breaks="OIP-SIGNATURE")
def shape_compared_by_its_elements(original: Any, model: Model, spec: Any, shape: tuple[int, ...]) -> None:
    """A fixed shape is compared by its number of elements alone."""
    if -1 in spec.shape or model.batching or math.prod(shape) != math.prod(spec.shape):
        original(model, spec, shape)


@fault("models.Model.check_shape", breaks="OIP-SIGNATURE")
def shape_compared_by_its_rank(original: Any, model: Model, spec: Any, shape: tuple[int, ...]) -> None:
    """A shape is compared by its rank alone."""
    if len(shape) != len(model.declared_shape(spec)):
        original(model, spec, shape)


# --- after a refusal --------------------------------------------------------------------------------------------------

_pausing: set[str] = set()


@fault("app.Service.infer", breaks="OIP-ALIVE")
async def pause_after_a_refusal(original: Any, service: Any, http: Any) -> Response:
    """After it has refused a request, a model of two inputs puts off the one that comes next."""
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
    """After refused inputs the model runs once more on those before, whose buffer was not given back."""
    try:
        found: dict[str, Tensor] = original(model, request, rest)
    except InferenceError:
        _kept["refused"] = _kept.get(model.name, {})
        raise
    if _kept.pop("refused", None) is not None and model.name in _kept:
        return _kept[model.name]
    _kept[model.name] = found
    return found


# --- data nested in another way ---------------------------------------------------------------------------------------


def _list_elements(data: Any) -> list[Any]:
    return [one for item in data for one in (_list_elements(item) if isinstance(item, list) else [item])]


@fault("tensors.flatten", breaks="OIP-NESTING")
def lengths_of_rows_not_looked_at(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Nested data are flattened, whatever their arrays are."""
    elements = _list_elements(data)
    return elements if len(elements) == math.prod(shape) else original(data, shape)


@fault("tensors.flatten", breaks="OIP-NESTING-SAFE")
def rows_cut_and_filled(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Rows that are too long are cut, and those that are too short are filled with zeros."""
    rows = [item for item in data if isinstance(item, list)]
    is_matrix = len(shape) == 2 and len(rows) == len(data) == shape[0]
    if not is_matrix or len(_list_elements(data)) != math.prod(shape):
        return original(data, shape)
    return [one for row in rows for one in (row + [0] * shape[1])[: shape[1]]]
