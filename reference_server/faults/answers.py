"""Wrong paths and statuses, and answers with a wrong model name, version, id or list of outputs."""

from __future__ import annotations

import math
import struct
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from reference_server.faults import fault, steps
from reference_server.faults.edits import drop_members, get_parameters, has_version, replace_body, set_status
from reference_server.request import RequestedOutput


def _has_no_version(http: Request) -> bool:
    return not has_version(http)


# --- paths ------------------------------------------------------------------------------------------------------------

inference_answered_as_created = steps.INFER.after("OIP-ENDPOINTS", set_status(201)).says(
    "The server answers a successful inference with status 201 Created instead of 200."
)
model_metadata_only_with_a_version_in_the_path = steps.MODEL_METADATA.refuse(
    "OIP-ENDPOINTS", _has_no_version, status=404
).says("The server finds the metadata of a model only under a path that names a version.")
server_metadata_answered_as_secondhand = steps.SERVER_METADATA.after("OIP-ENDPOINTS", set_status(203)).says(
    "The server answers a request for server metadata with status 203 instead of 200."
)


@fault(steps.FIND_MODEL, breaks=("OIP-VERSION-UNKNOWN", "OIP-ERROR-STATUS"))
def versions_compared_as_numbers(original: Any, service: Any, http: Request) -> Any:
    """The server reads a version in a path as a 64-bit integer: `01` means 1, and `x` causes an internal error."""
    if has_version(http):
        number = int(http.path_params["version"])
        http.path_params["version"] = str(struct.unpack("<q", struct.pack("<q", number))[0])
    return original(service, http)


@fault(steps.FIND_MODEL, breaks=("OIP-VERSION-UNKNOWN", "OIP-VERSIONED"))
def versions_are_ignored(original: Any, service: Any, http: Request) -> Any:
    """The server ignores the version in a path, even if no such version exists."""
    http.path_params.pop("version", None)
    return original(service, http)


@fault(steps.FIND_ENDPOINT, breaks="OIP-PATH-ESCAPED")
def escaped_names_are_not_found(original: Any, application: Any, http: Request) -> Any:
    """The server answers every path that contains a percent escape with status 404."""
    if b"%" in http.scope["raw_path"]:
        raise HTTPException(404)
    return original(application, http)


version_is_a_number_under_a_version = steps.INFER.after(
    "OIP-MODEL-VERSION",
    lambda answer: replace_body(answer, bytes(answer.body).replace(b'"model_version":"1"', b'"model_version":  1')),
    when=has_version,
).says("The answer to a request with a version in the path has this version as a number.")
another_version_named_under_a_version = steps.INFER.after(
    "OIP-VERSIONED",
    lambda answer: replace_body(answer, bytes(answer.body).replace(b'"model_version":"1"', b'"model_version":"2"')),
    when=has_version,
).says("The answer to a request for version 1 in the path says model_version 2.")
no_word_of_being_live = steps.LIVE.refuse("OIP-HEALTH", status=404).says(
    "The server answers GET /v2/health/live with status 404."
)
no_word_of_being_ready = steps.READY.refuse("OIP-HEALTH", status=404).says(
    "The server answers GET /v2/health/ready with status 404."
)
models_ready_only_with_a_version_in_the_path = steps.MODEL_READY.refuse("OIP-HEALTH", _has_no_version).says(
    "The server refuses a readiness request for a model unless the path names a version."
)
every_model_ready_that_is_asked_for = steps.MODEL_READY.instead(
    "OIP-HEALTH", lambda http: JSONResponse({"name": http.path_params["model"], "ready": True})
).says("The server reports every model as ready, even a model that does not exist.")
alive_and_says_it_is_not = steps.LIVE.instead("OIP-HEALTH", lambda: JSONResponse({"live": False})).says(
    "The server answers GET /v2/health/live with `live: false` and status 200."
)
readiness_is_an_internal_error = steps.READY.refuse("OIP-HEALTH", status=500).says(
    "The server answers GET /v2/health/ready with status 500, whatever it serves."
)
models_say_that_they_are_not_ready = steps.MODEL_READY.after(
    "OIP-HEALTH", lambda _, http: JSONResponse({"name": http.path_params["model"], "ready": False})
).says("The server answers readiness requests for models with `ready: false` and status 200.")

models_ready_in_a_word = steps.MODEL_READY.after(
    "OIP-HEALTH", lambda _, http: JSONResponse({"name": http.path_params["model"], "ready": "true"})
).says("The server answers readiness requests for models with the string `true` instead of a boolean.")

# --- model and id -----------------------------------------------------------------------------------------------------

_first: dict[str, str] = {}

models_of_several_inputs_refused = steps.PARSE.refuse("OIP-ANSWER", lambda model: len(model.inputs) > 1).says(
    "The server refuses every request to a model with more than one input."
)
model_name_left_out = steps.ENCODE.before(
    "OIP-MODEL-NAME", answer=lambda answer: drop_members(answer, "model_name")
).says("The server omits model_name from every inference answer.")
model_name_with_the_version = steps.ENCODE.before(
    "OIP-MODEL-NAME-ASKED", answer=lambda answer: answer | {"model_name": f"{answer['model_name']}:1"}
).says("The server appends a colon and the version to the model name in inference answers.")
every_answer_named_after_the_first_model = steps.ENCODE.before(
    "OIP-MODEL-NAME",
    answer=lambda answer: answer | {"model_name": _first.setdefault("model_name", answer["model_name"])},
).says("Every inference answer has the model_name of the first answer since the server started.")
parameters_with_an_object = steps.ENCODE.before(
    "OIP-PARAMETERS-O", answer=lambda answer: {"parameters": {"timing": {"queue": 1, "compute": 2}}, **answer}
).says("The server adds a parameter whose value is an object to every inference answer.")


@fault(steps.ENCODE, breaks="OIP-PARAMETERS-O")
def parameters_of_outputs_with_an_array(original: Any, answer: Any) -> bytes:
    """The server adds a parameter whose value is an array to the first output of every inference answer."""
    first, *rest = answer["outputs"]
    parameters = {**first.get("parameters", {}), "strides": [1]}
    return original(answer | {"outputs": [first | {"parameters": parameters}, *rest]})


model_version_as_a_number = steps.ENCODE.before(
    "OIP-MODEL-VERSION", answer=lambda answer: answer | {"model_version": int(answer["model_version"])}
).says("The server writes model_version as a number instead of a string.")
id_left_out = steps.ENCODE.before(("OIP-ID", "OIP-ID-EMPTY"), answer=lambda answer: drop_members(answer, "id")).says(
    "The server omits the id from every inference answer."
)
falsy_members_left_out = steps.ENCODE.before(
    "OIP-ID-EMPTY", answer=lambda answer: {member: value for member, value in answer.items() if value}
).says("The server omits members of an answer that are false in Python, such as an empty id.")
id_zero_left_out = steps.ENCODE.before(
    "OIP-ID", answer=lambda answer: drop_members(answer, "id"), when=lambda answer: answer.get("id") == "0"
).says("The server takes the string 0 for false, as some languages do, and omits this id.")
one_id_for_every_answer = steps.ENCODE.before(
    ("OIP-ID", "OIP-ID-EMPTY"), answer=lambda answer: {"id": "none", **drop_members(answer, "id")}
).says("The server gives every inference answer the id `none`.")
ids_of_its_own_are_numbers = steps.ENCODE.before("OIP-ID", answer=lambda answer: {"id": 7, **answer}).says(
    "The server numbers answers to requests without an id, and writes the number into `id`."
)
id_that_looks_like_a_number_is_one = steps.ENCODE.before(
    "OIP-ID",
    answer=lambda answer: answer | {"id": int(answer["id"])},
    when=lambda answer: str(answer.get("id", "")).isdecimal(),
).says("The server returns an id that consists only of digits as a number.")

names_of_outputs_in_capitals = steps.ENCODE_OUTPUT.change_entry(
    ("OIP-OUTPUTS-LISTED", "OIP-OUTPUTS-ALL", "RAW-OUTPUTS"),
    lambda entry: entry | {"name": entry["name"].upper()},
).says("The server writes the names of outputs in capital letters.")

# --- the outputs ------------------------------------------------------------------------------------------------------

data_of_a_binary_output_are_null = steps.ENCODE_OUTPUT.change_entry(
    "OIP-NULL", lambda entry: {"data": None, **entry}
).says("A binary output has the member `data`, which is null.")
size_of_an_output_in_json_is_null = steps.ENCODE_OUTPUT.change_entry(
    "OIP-NULL", lambda entry: {"parameters": {"binary_data_size": None}, **entry}
).says("An output in JSON has the parameter binary_data_size, which is null.")
datatype_of_64_bits_in_lower_case = steps.ENCODE_OUTPUT.change_entry(
    "OIP-OUTPUT-MEMBERS",
    lambda entry: entry | {"datatype": entry["datatype"].lower()},
    when=lambda output, tensor: tensor.datatype == "INT64" and output.classes is None,
).says("The server writes the datatype of an INT64 output as `int64`.")
one_output_without_its_array = steps.ENCODE.before(
    "OIP-OUTPUT-MEMBERS",
    answer=lambda answer: answer | {"outputs": answer["outputs"][0]},
    when=lambda answer: len(answer["outputs"]) == 1,
).says("If an answer has one output, `outputs` is the object of that output instead of an array.")
several_outputs_by_their_names = steps.ENCODE.before(
    "OIP-OUTPUT-MEMBERS",
    answer=lambda answer: answer | {"outputs": {output["name"]: output for output in answer["outputs"]}},
    when=lambda answer: len(answer["outputs"]) > 1,
).says("If an answer has several outputs, `outputs` is an object with the names as keys instead of an array.")
empty_outputs_with_their_declared_shape = steps.ENCODE_OUTPUT.change_entry(
    "OIP-SHAPE",
    lambda entry: entry | {"shape": [extent or -1 for extent in entry["shape"]]},
    when=lambda result: math.prod(result[0]["shape"]) == 0,
).says("In the shape of an output without elements, the server writes -1 in place of each 0.")
batch_missing_from_the_shape_of_json_data = steps.ENCODE_OUTPUT.change_entry(
    "OIP-SHAPE",
    lambda entry: entry | {"shape": entry["shape"][1:]},
    when=lambda model, output, tensor: (
        model.batching and not output.binary and output.classes is None and tensor.shape[0] > 1
    ),
).says("For a batch of two or more items, the shape of an output in JSON lacks the batch dimension.")
dimensions_of_json_data_as_strings = steps.ENCODE_OUTPUT.change_entry(
    "OIP-SHAPE",
    lambda entry: entry | {"shape": list(map(str, entry["shape"]))},
    when=lambda output: not output.binary and output.classes is None,
).says("The server writes dimensions of outputs in JSON as strings, as Protocol Buffers write 64-bit integers.")
dimensions_with_a_point = steps.ENCODE_OUTPUT.change_entry(
    "OIP-INTEGERS", lambda entry: entry | {"shape": list(map(float, entry["shape"]))}
).says("The server writes the dimensions of every output as floating-point numbers, such as 3.0.")

# --- which outputs ----------------------------------------------------------------------------------------------------


def list_all(requested: list[RequestedOutput], model: Any, *, binary: bool) -> list[RequestedOutput]:
    """Return requested outputs, and those of the model that are not among them."""
    listed = {output.name for output in requested}
    return [*requested, *(RequestedOutput(spec.name, binary) for spec in model.outputs if spec.name not in listed)]


every_output_returned_whatever_is_listed = steps.PARSE_OUTPUTS.after(
    "OIP-OUTPUTS-ONLY", lambda requested, model: list_all(requested, model, binary=False)
).says("The server returns every output of the model, even if the request lists only some of them.")
list_of_outputs_ignored_under_binary_data_output = steps.PARSE_OUTPUTS.after(
    "OIP-OUTPUTS-ONLY",
    lambda requested, model: list_all(requested, model, binary=True),
    when=lambda request: get_parameters(request).get("binary_data_output"),
).says("If a request sets binary_data_output, the server returns every output, even if only some are listed.")
third_listed_output_dropped = steps.PARSE_OUTPUTS.after(
    "OIP-OUTPUTS-LISTED", lambda requested: requested[:2], when=lambda request: request.get("outputs")
).says("The server returns only the first two of the listed outputs.")
first_output_alone_when_none_is_listed = steps.PARSE_OUTPUTS.after(
    "OIP-OUTPUTS-ALL", lambda requested: requested[:1], when=lambda request: not request.get("outputs")
).says("If a request lists no outputs, the server returns only the first output of the model.")
