"""Wrong paths and statuses, and answers with a wrong model name, version, id or list of outputs."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor

Answer = dict[str, Any]


def _drop_members(item: Mapping[str, Any], *members: str) -> Answer:
    """Return a JSON object without the given members."""
    return {member: value for member, value in item.items() if member not in members}


# --- paths ------------------------------------------------------------------------------------------------------------


@fault("app.Service.infer", breaks="OIP-ENDPOINTS")
async def inference_answered_as_created(original: Any, service: Any, http: Any) -> Response:
    """The server answers a successful inference with status 201 Created instead of 200."""
    response: Response = await original(service, http)
    response.status_code = 201
    return response


@fault("app.Service.model_metadata", breaks=("OIP-ENDPOINTS", "OIP-MODEL-METADATA"))
async def model_metadata_only_with_a_version_in_the_path(original: Any, service: Any, http: Any) -> Response:
    """The server finds the metadata of a model only under a path that names a version."""
    if "version" not in http.path_params:
        raise InferenceError("not found", status=404)
    return await original(service, http)


@fault("app.Service.server_metadata", breaks="OIP-ENDPOINTS")
async def server_metadata_answered_as_secondhand(original: Any, service: Any, http: Any) -> Response:
    """The server answers a request for server metadata with status 203 instead of 200."""
    response: Response = await original(service, http)
    response.status_code = 203
    return response


@fault("app.Service.find_model", breaks=("OIP-VERSION-UNKNOWN", "OIP-ERROR-STATUS"))
def versions_compared_as_numbers(original: Any, service: Any, http: Request) -> Any:
    """The server reads a version in a path as a 64-bit integer: `01` means 1, and `x` causes an internal error."""
    if "version" in http.path_params:
        number = int(http.path_params["version"])
        http.path_params["version"] = str(struct.unpack("<q", struct.pack("<q", number))[0])
    return original(service, http)


@fault("app.Service.find_model", breaks="OIP-VERSION-UNKNOWN")
def versions_are_ignored(original: Any, service: Any, http: Request) -> Any:
    """The server ignores the version in a path, even if no such version exists."""
    http.path_params.pop("version", None)
    return original(service, http)


@fault("app.Application.find_endpoint", breaks="OIP-PATH-ESCAPED")
def escaped_names_are_not_found(original: Any, application: Any, http: Request) -> Any:
    """The server answers every path that contains a percent escape with status 404."""
    if b"%" in http.scope["raw_path"]:
        raise HTTPException(404)
    return original(application, http)


@fault("app.Service.infer", breaks="OIP-VERSIONED")
async def another_version_named_under_a_version(original: Any, service: Any, http: Request) -> Response:
    """The answer to a request for version 1 in the path says model_version 2."""
    answer: Response = await original(service, http)
    if "/versions/" in http.url.path:
        answer.body = bytes(answer.body).replace(b'"model_version":"1"', b'"model_version":"2"')
    return answer


@fault("app.Service.live", breaks="OIP-HEALTH")
async def no_word_of_being_live(_original: Any, _service: Any, _http: Any) -> Response:
    """The server answers GET /v2/health/live with status 404."""
    raise InferenceError("not found", status=404)


@fault("app.Service.ready", breaks="OIP-HEALTH")
async def no_word_of_being_ready(_original: Any, _service: Any, _http: Any) -> Response:
    """The server answers GET /v2/health/ready with status 404."""
    raise InferenceError("not found", status=404)


@fault("app.Service.model_ready", breaks="OIP-HEALTH")
async def models_ready_only_with_a_version_in_the_path(original: Any, service: Any, http: Any) -> Response:
    """The server refuses a readiness request for a model unless the path names a version."""
    if "version" not in http.path_params:
        raise InferenceError("which version?", status=400)
    return await original(service, http)


@fault("app.Service.model_ready", breaks="OIP-HEALTH")
async def every_model_ready_that_is_asked_for(_original: Any, _service: Any, http: Any) -> Response:
    """The server reports every model as ready, even a model that does not exist."""
    return JSONResponse({"name": http.path_params["model"], "ready": True})


@fault("app.Service.live", breaks="OIP-HEALTH")
async def alive_and_says_it_is_not(_original: Any, _service: Any, _http: Any) -> Response:
    """The server answers GET /v2/health/live with `live: false` and status 200."""
    return JSONResponse({"live": False})


@fault("app.Service.ready", breaks="OIP-HEALTH")
async def readiness_is_an_internal_error(_original: Any, _service: Any, _http: Any) -> Response:
    """The server answers GET /v2/health/ready with status 500, whatever it serves."""
    raise InferenceError("internal error", status=500)


@fault("app.Service.model_ready", breaks="OIP-HEALTH")
async def models_say_that_they_are_not_ready(original: Any, service: Any, http: Any) -> Response:
    """The server answers readiness requests for models with `ready: false` and status 200."""
    await original(service, http)
    return JSONResponse({"name": http.path_params["model"], "ready": False})


# --- model and id -----------------------------------------------------------------------------------------------------


@fault("request.parse", breaks="OIP-ANSWER")
def models_of_several_inputs_refused(original: Any, model: Model, header: Sequence[str], body: bytes) -> InferRequest:
    """The server refuses every request to a model with more than one input."""
    if len(model.inputs) > 1:
        raise InferenceError(f"model {model.name} has {len(model.inputs)} inputs, but only one is supported")
    return original(model, header, body)


@fault("response.encode", breaks="OIP-MODEL-NAME")
def model_name_left_out(original: Any, answer: Answer) -> bytes:
    """The server omits model_name from every inference answer."""
    return original(_drop_members(answer, "model_name"))


_first: dict[str, str] = {}


@fault("response.encode", breaks="OIP-MODEL-NAME-ASKED")
def model_name_with_the_version(original: Any, answer: Answer) -> bytes:
    """The server appends a colon and the version to the model name in inference answers."""
    return original(answer | {"model_name": f"{answer['model_name']}:1"})


@fault("response.encode", breaks="OIP-MODEL-NAME")
def every_answer_named_after_the_first_model(original: Any, answer: Answer) -> bytes:
    """Every inference answer has the model_name of the first answer since the server started."""
    return original(answer | {"model_name": _first.setdefault("model_name", answer["model_name"])})


@fault("response.encode", breaks="OIP-PARAMETERS-O")
def parameters_with_an_object(original: Any, answer: Answer) -> bytes:
    """The server adds a parameter whose value is an object to every inference answer."""
    return original({"parameters": {"timing": {"queue": 1, "compute": 2}}, **answer})


@fault("response.encode", breaks="OIP-PARAMETERS-O")
def parameters_of_outputs_with_an_array(original: Any, answer: Answer) -> bytes:
    """The server adds a parameter whose value is an array to the first output of every inference answer."""
    first, *rest = answer["outputs"]
    parameters = {**first.get("parameters", {}), "strides": [1]}
    return original(answer | {"outputs": [first | {"parameters": parameters}, *rest]})


@fault("response.encode", breaks="OIP-MODEL-VERSION")
def model_version_as_a_number(original: Any, answer: Answer) -> bytes:
    """The server writes model_version as a number instead of a string."""
    return original(answer | {"model_version": int(answer["model_version"])})


@fault("response.encode", breaks=("OIP-ID", "OIP-ID-EMPTY"))
def id_left_out(original: Any, answer: Answer) -> bytes:
    """The server omits the id from every inference answer."""
    return original(_drop_members(answer, "id"))


@fault("response.encode", breaks="OIP-ID-EMPTY")
def falsy_members_left_out(original: Any, answer: Answer) -> bytes:
    """The server omits members of an answer that are false in Python, such as an empty id."""
    return original({member: value for member, value in answer.items() if value})


@fault("response.encode", breaks="OIP-ID")
def id_that_looks_like_a_number_is_one(original: Any, answer: Answer) -> bytes:
    """The server returns an id that consists only of digits as a number."""
    is_number = str(answer.get("id", "")).isdecimal()
    return original(answer | {"id": int(answer["id"])} if is_number else answer)


# --- the outputs ------------------------------------------------------------------------------------------------------


@fault("response.encode_output", breaks="OIP-NULL")
def data_of_a_binary_output_are_null(original: Any, *arguments: Any) -> tuple[Answer, Any]:
    """A binary output has the member `data`, which is null."""
    entry, data = original(*arguments)
    return {"data": None, **entry}, data


@fault("response.encode_output", breaks="OIP-NULL")
def size_of_an_output_in_json_is_null(original: Any, *arguments: Any) -> tuple[Answer, Any]:
    """An output in JSON has the parameter binary_data_size, which is null."""
    entry, data = original(*arguments)
    return {"parameters": {"binary_data_size": None}, **entry}, data


@fault("response.encode", breaks="OIP-OUTPUT-MEMBERS")
def one_output_without_its_array(original: Any, answer: Answer) -> bytes:
    """If an answer has one output, `outputs` is the object of that output instead of an array."""
    outputs = answer["outputs"]
    return original(answer | {"outputs": outputs[0] if len(outputs) == 1 else outputs})


@fault("response.encode", breaks="OIP-OUTPUT-MEMBERS")
def several_outputs_by_their_names(original: Any, answer: Answer) -> bytes:
    """If an answer has several outputs, `outputs` is an object with the names as keys instead of an array."""
    outputs = answer["outputs"]
    by_name = {output["name"]: output for output in outputs} if len(outputs) > 1 else outputs
    return original(answer | {"outputs": by_name})


@fault("response.encode_output", breaks="OIP-SHAPE")
def empty_outputs_with_their_declared_shape(original: Any, *arguments: Any) -> tuple[Answer, Any]:
    """In the shape of an output without elements, the server writes -1 in place of each 0."""
    entry, data = original(*arguments)
    empty = math.prod(entry["shape"]) == 0
    return entry | {"shape": [extent or -1 for extent in entry["shape"]] if empty else entry["shape"]}, data


@fault("response.encode_output", breaks="OIP-SHAPE")
def batch_missing_from_the_shape_of_json_data(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> tuple[Answer, Any]:
    """For a batch of two or more items, the shape of an output in JSON lacks the batch dimension."""
    entry, data = original(model, output, tensor)
    one_item = model.batching and not output.binary and output.classes is None and tensor.shape[0] > 1
    return entry | {"shape": entry["shape"][1:] if one_item else entry["shape"]}, data


@fault("response.encode_output", breaks="OIP-SHAPE")
def dimensions_of_json_data_as_strings(
    original: Any, model: Model, output: RequestedOutput, tensor: Tensor
) -> tuple[Answer, Any]:
    """The server writes dimensions of outputs in JSON as strings, as Protocol Buffers write 64-bit integers."""
    entry, data = original(model, output, tensor)
    strings = not output.binary and output.classes is None
    return entry | {"shape": [str(extent) if strings else extent for extent in entry["shape"]]}, data


@fault("response.encode_output", breaks="OIP-INTEGERS")
def dimensions_with_a_point(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> tuple[Answer, Any]:
    """The server writes the dimensions of every output as floating-point numbers, such as 3.0."""
    entry, data = original(model, output, tensor)
    return entry | {"shape": [float(extent) for extent in entry["shape"]]}, data


# --- which outputs ----------------------------------------------------------------------------------------------------


@fault("request.parse_outputs", breaks="OIP-OUTPUTS-ONLY")
def every_output_returned_whatever_is_listed(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The server returns every output of the model, even if the request lists only some of them."""
    requested: list[RequestedOutput] = original(model, request)
    listed = {output.name for output in requested}
    return [
        *requested,
        *(RequestedOutput(spec.name, binary=False) for spec in model.outputs if spec.name not in listed),
    ]


@fault("request.parse_outputs", breaks="OIP-OUTPUTS-ONLY")
def list_of_outputs_ignored_under_binary_data_output(
    original: Any, model: Model, request: Object
) -> list[RequestedOutput]:
    """If a request sets binary_data_output, the server returns every output, even if only some are listed."""
    requested: list[RequestedOutput] = original(model, request)
    if not (request.get("parameters") or {}).get("binary_data_output"):
        return requested
    given = {output.name: output for output in requested}
    return [given.get(spec.name, RequestedOutput(spec.name, binary=True)) for spec in model.outputs]


@fault("request.parse_outputs", breaks="OIP-OUTPUTS-LISTED")
def third_listed_output_dropped(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The server returns only the first two of the listed outputs."""
    requested: list[RequestedOutput] = original(model, request)
    return requested[:2] if request.get("outputs") else requested


@fault("request.parse_outputs", breaks="OIP-OUTPUTS-ALL")
def first_output_alone_when_none_is_listed(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """If a request lists no outputs, the server returns only the first output of the model."""
    requested: list[RequestedOutput] = original(model, request)
    return requested if request.get("outputs") else requested[:1]
