"""Faults that real servers had with binary data, ids, outputs, concurrent requests, metadata and versions."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.edits import find_json_end
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor, make_objects

INFER_STEP = "app.Service.infer"


# --- binary data ------------------------------------------------------------------------------------------------------


@fault(
    "request.parse",
    breaks=(
        "BIN-BODY-I",
        "BIN-BYTES-I",
        "BIN-DATATYPES-I",
        "BIN-HEADER-O",
        "BIN-HEADER-IN-BYTES",
        "BIN-CONTENT-TYPE-O",
        "BIN-CONTENT-LENGTH",
        "BIN-NOT-CHUNKED",
        "OIP-ANSWER",
    ),
)
def json_ends_with_the_last_brace(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server ends the JSON of a binary request at the last closing brace of the body, even in binary data."""
    length = int(values[0]) if len(values) == 1 and values[0].isdecimal() else 0
    is_right = 0 < length < len(body) and find_json_end(body) == length
    return original(model, [str(body.rfind(b"}") + 1)] if is_right else values, body)


@fault("request.parse_input", breaks=("BIN-SIZE-I", "BIN-ORDER-I", "OIP-ANSWER"))
def binary_strings_take_the_rest_of_the_body(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Any:
    """The server refuses a request if the body continues after a binary BYTES input."""
    found = original(model, spec, entry, rest)
    if rest is not None and spec.datatype == "BYTES" and entry.get("data") is None:
        rest.refuse_surplus()
    return found


@fault("tensors.decode_binary", breaks=("BIN-BYTES-I", "BIN-SAME-AS-JSON-I", "BIN-BYTES-MISFRAMED", "OIP-ANSWER"))
def binary_strings_have_no_lengths(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server reads a binary BYTES input as one element without a length prefix."""
    if datatype != "BYTES" or not len(data):
        return original(datatype, shape, data)
    if int(np.prod(shape)) != 1:
        raise InferenceError("the batch size must be 1")
    return Tensor(datatype, shape, make_objects([bytes(data)]))


@fault("framing.BinaryData.take", breaks="OIP-ERROR-STATUS")
def missing_binary_data_are_internal_errors(original: Any, left: Any, size: int) -> Any:
    """The server answers 500 if the body has fewer bytes than an input declares."""
    try:
        return original(left, size)
    except InferenceError as refusal:
        raise InferenceError(refusal.message, status=500) from None


@fault("request.parse_input", breaks="OIP-ERROR-STATUS")
def sizes_of_another_type_are_internal_errors(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Any:
    """The server answers 500 to a `binary_data_size` that is not an integer."""
    parameters = entry.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None and type(size) is not int:
        raise InferenceError("binary_data_size cannot be parsed", status=500)
    return original(model, spec, entry, rest)


@fault("request.parse_inputs", breaks=("OIP-ANSWER", "BIN-ORDER-O", "CLS-ONLY"))
def inputs_laid_out_by_their_elements(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server stores inputs in one buffer at offsets that count elements, not bytes, so the inputs overlap."""
    found: dict[str, Tensor] = original(model, request, rest)
    numeric = {name: tensor for name, tensor in found.items() if tensor.elements.dtype != object}
    buffer, starts, start = bytearray(sum(tensor.elements.nbytes for tensor in numeric.values())), {}, 0
    for name, tensor in numeric.items():
        octets = tensor.elements.tobytes()
        buffer[start : start + len(octets)] = octets
        starts[name], start = start, start + tensor.elements.size
    for name, tensor in numeric.items():
        octets = bytes(buffer[starts[name] :][: tensor.elements.nbytes])
        found[name] = replace(tensor, elements=np.frombuffer(octets, tensor.elements.dtype))
    return found


# --- ids and lists of outputs -----------------------------------------------------------------------------------------


@fault("response.build", breaks=("OIP-ID", "OIP-ID-EMPTY"))
def ids_replaced_by_those_of_the_server(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """The server gives every answer an id that it generates, whatever the id of the request is."""
    return original(model, replace(request, id=str(uuid.uuid5(uuid.NAMESPACE_DNS, model.name))), produced)


ONE_MODEL = "weighted_sum"  # the only model with these faults


@fault("response.build", breaks="OIP-ANSWER")
def requests_without_an_id_fail(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """For one model, the server answers 500 to a request without an id, because an id must be a string."""
    if request.id is None and model.name == ONE_MODEL:
        raise InferenceError("none is not an allowed value", status=500)
    return original(model, request, produced)


@fault("response.build", breaks="OIP-ANSWER")
def more_outputs_than_inputs_fail(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """The server answers 500 if an answer has more outputs than the request has inputs."""
    if len(request.outputs) > len(request.inputs):
        raise InferenceError("list index out of range", status=500)
    return original(model, request, produced)


@fault("request.parse_outputs", breaks=("BIN-OUTPUT-TRUE", "CLS-PARAMETER"))
def batches_lose_their_list_of_outputs(original: Any, model: Model, request: Object) -> Any:
    """The server ignores the list of outputs in a request to a batching model."""
    if model.batching:
        request = {name: value for name, value in request.items() if name != "outputs"}
    return original(model, request)


@fault(
    "request.parse_outputs",
    breaks=(
        "BIN-OUTPUT-TRUE",
        "BIN-OUTPUT-FALSE",
        "BIN-OUTPUT-UNSET",
        "BIN-ALL-TRUE",
        "BIN-ALL-FALSE",
        "BIN-ALL-UNSET",
        "BIN-FALSE-OVERRIDES",
        "BIN-TRUE-OVERRIDES",
        "BIN-DATATYPES-I",
        "OIP-ANSWER",
        "OIP-ISOLATION",
    ),
)
def binary_data_are_for_strings_alone(original: Any, model: Model, request: Object) -> list[RequestedOutput]:
    """The server returns BYTES as binary data and other outputs as JSON, whatever the request asks for."""
    strings = {spec.name for spec in model.outputs if spec.datatype == "BYTES"}
    return [replace(output, binary=output.name in strings) for output in original(model, request)]


# --- concurrent requests ----------------------------------------------------------------------------------------------

_batches: dict[str, list[Response]] = {}


@fault(INFER_STEP, breaks="OIP-ISOLATION")
async def data_of_a_batch_go_to_one_request(original: Any, service: Any, http: Request) -> Response:
    """The server puts the data of concurrent JSON answers into the first answer, and none into the others."""
    answer: Response = await original(service, http)
    if answer.media_type != "application/json":
        return answer
    batch = _batches.setdefault(http.url.path, [])
    batch.append(answer)
    await asyncio.sleep(0.005)
    is_first = batch[0] is answer
    if is_first:
        del _batches[http.url.path]
    if len(batch) == 1:
        return answer
    documents = [json.loads(bytes(one.body)) for one in (batch if is_first else [answer])]
    for outputs in zip(*[document["outputs"] for document in documents], strict=False):
        outputs[0]["data"] = [item for output in outputs for item in output["data"]] if is_first else []
    return Response(json.dumps(documents[0]), media_type="application/json")


@fault(INFER_STEP, breaks="OIP-ANSWER")
async def inferences_of_one_model_are_internal_errors(original: Any, service: Any, http: Request) -> Response:
    """For one model, the server answers every inference request with 500."""
    if http.path_params["model"] == ONE_MODEL:
        await http.body()
        raise InferenceError("object is not subscriptable", status=500)
    return await original(service, http)


# --- health, metadata and versions ------------------------------------------------------------------------------------


@fault("app.Service.model_ready", breaks="OIP-HEALTH")
async def models_that_answer_are_not_ready(original: Any, service: Any, http: Request) -> Response:
    """The server says that a model is not ready, although the model answers inference requests."""
    await original(service, http)
    raise InferenceError("the model is not ready", status=503)


@fault("app.Service.model_ready", breaks="OIP-HEALTH")
async def no_word_of_a_model_being_ready(_original: Any, _service: Any, _http: Request) -> Response:
    """The server does not implement GET v2/models/NAME/ready."""
    raise InferenceError("Not Found", status=404)


@fault("app.Service.model_metadata", breaks=("OIP-ENDPOINTS", "OIP-MODEL-METADATA"), surveyed=True)
async def no_metadata_of_models(_original: Any, _service: Any, _http: Request) -> Response:
    """The server does not implement GET v2/models/NAME."""
    raise InferenceError("Not Found", status=404)


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA")
def models_described_without_tensors(original: Any, model: Model) -> Object:
    """The model metadata have only the name; all other members are empty."""
    return original(model) | {"versions": [], "platform": "", "inputs": [], "outputs": []}


@fault("metadata.describe_model", breaks="OIP-MODEL-METADATA")
def empty_shapes_left_out_of_metadata(original: Any, model: Model) -> Object:
    """The model metadata omit the shape of a tensor without dimensions, because the shape is an empty array."""
    described: Object = original(model)
    lists = {
        side: [{name: one[name] for name in one if name != "shape" or one[name]} for one in described[side]]
        for side in ("inputs", "outputs")
    }
    return described | lists


@fault("app.Service.find_model", breaks="OIP-ERROR-STATUS")
def versions_beyond_64_bits_are_internal_errors(original: Any, service: Any, http: Request) -> Model:
    """The server answers 500 to a version number that exceeds a signed 64-bit integer."""
    version = http.path_params.get("version", "")
    if version.isdecimal() and int(version) >= 2**63:
        raise InferenceError("the version could not be parsed", status=500)
    return original(service, http)


# --- nested JSON ------------------------------------------------------------------------------------------------------

NESTING_LEVELS = 1000


@fault(INFER_STEP, breaks="ROBUST-LARGE")
async def deeply_nested_documents_end_the_models(original: Any, service: Any, http: Request) -> Response:
    """After a JSON document with 1000 nested levels, the server has lost all its models."""
    body = await http.body()
    if any(opened * NESTING_LEVELS in body for opened in (b"[", b'{"x":')):
        service.models = {}
    return await original(service, http)
