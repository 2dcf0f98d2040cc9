"""Faults that servers really had in the binary data of requests, their models and versions, and what runs together."""

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
from reference_server.faults.request_headers import find_json_end
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import InferRequest, RequestedOutput
from reference_server.tensors import Tensor, make_objects

ANSWER = "app.Service.infer"


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
    ),
)
def json_ends_with_the_last_brace(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The JSON of a binary request ends with the last closing brace of the body, also where that is among the data."""
    length = int(values[0]) if len(values) == 1 and values[0].isdecimal() else 0
    is_right = 0 < length < len(body) and find_json_end(body) == length
    return original(model, [str(body.rfind(b"}") + 1)] if is_right else values, body)


@fault("request.parse_input", breaks=("BIN-SIZE-I", "BIN-ORDER-I", "OIP-ANSWER"))
def binary_strings_take_the_rest_of_the_body(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Any:
    """A binary BYTES input takes all that is left of the body, and is refused where that is more than its size."""
    found = original(model, spec, entry, rest)
    if rest is not None and spec.datatype == "BYTES" and entry.get("data") is None:
        rest.finish()
    return found


@fault("tensors.decode_binary", breaks=("BIN-BYTES-I", "BIN-SAME-AS-JSON-I", "BIN-BYTES-MISFRAMED", "OIP-ANSWER"))
def binary_strings_have_no_lengths(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """A binary BYTES input is one element without a length in front."""
    if datatype != "BYTES" or not len(data):
        return original(datatype, shape, data)
    if int(np.prod(shape)) != 1:
        raise InferenceError("the batch size is 1")
    return Tensor(datatype, shape, make_objects([bytes(data)]))


@fault("framing.BinaryData.take", breaks="OIP-ERROR-STATUS")
def missing_binary_data_are_internal_errors(original: Any, left: Any, size: int) -> Any:
    """That the body has fewer bytes than an input declares is said with status 500."""
    try:
        return original(left, size)
    except InferenceError as refusal:
        raise InferenceError(refusal.message, status=500) from None


@fault("request.parse_input", breaks="OIP-ERROR-STATUS")
def sizes_of_another_type_are_internal_errors(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Any:
    """A binary_data_size that is no integer is refused with status 500."""
    parameters = entry.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None and type(size) is not int:
        raise InferenceError("binary_data_size cannot be parsed", status=500)
    return original(model, spec, entry, rest)


@fault("request.parse_inputs", breaks=("OIP-ANSWER", "BIN-ORDER-O", "CLS-ONLY"))
def inputs_laid_out_by_their_elements(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """Inputs share a buffer, in which each begins as many bytes behind the one before as that has elements."""
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
    """Every answer has an id of the server's own, whatever id the request has."""
    return original(model, replace(request, id=str(uuid.uuid5(uuid.NAMESPACE_DNS, model.name))), produced)


ONE_MODEL = "weighted_sum"  # the model that a runtime of its own serves


@fault("response.build", breaks="OIP-ANSWER")
def requests_without_an_id_fail(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """For one model the answer to a request without an id is an internal error, since its id is not a string."""
    if request.id is None and model.name == ONE_MODEL:
        raise InferenceError("none is not an allowed value", status=500)
    return original(model, request, produced)


@fault("response.build", breaks="OIP-ANSWER")
def more_outputs_than_inputs_fail(original: Any, model: Model, request: InferRequest, produced: Any) -> Any:
    """An answer with more outputs than the request has inputs is an internal error: it is written input by input."""
    if len(request.outputs) > len(request.inputs):
        raise InferenceError("list index out of range", status=500)
    return original(model, request, produced)


@fault("request.parse_outputs", breaks=("BIN-OUTPUT-TRUE", "CLS-PARAMETER"))
def batches_lose_their_list_of_outputs(original: Any, model: Model, request: Object) -> Any:
    """Requests to a batching model are put together without their lists of outputs."""
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
    """BYTES outputs come as binary data and all others as JSON, whatever the request says of them."""
    strings = {spec.name for spec in model.outputs if spec.datatype == "BYTES"}
    return [replace(wish, binary=wish.name in strings) for wish in original(model, request)]


# --- requests in flight together --------------------------------------------------------------------------------------

_batches: dict[str, list[Response]] = {}


@fault(ANSWER, breaks="OIP-ISOLATION")
async def data_of_a_batch_go_to_one_request(original: Any, service: Any, http: Request) -> Response:
    """Of JSON answers to requests in flight together, the first has the data of all, and the others have none."""
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


@fault(ANSWER, breaks="OIP-ANSWER")
async def inferences_of_one_model_are_internal_errors(original: Any, service: Any, http: Request) -> Response:
    """Every inference of one model is an internal error, since the request is not of the type that the model takes."""
    if http.path_params["model"] == ONE_MODEL:
        await http.body()
        raise InferenceError("object is not subscriptable", status=500)
    return await original(service, http)


# --- health, metadata and versions ------------------------------------------------------------------------------------


@fault("app.Service.model_ready", breaks="OIP-HEALTH")
async def models_that_answer_are_not_ready(original: Any, service: Any, http: Request) -> Response:
    """A model answers inference requests before it says that it is ready."""
    await original(service, http)
    raise InferenceError("the model is not ready", status=503)


@fault("app.Service.model_ready", breaks="OIP-HEALTH")
async def no_word_of_a_model_being_ready(_original: Any, _service: Any, _http: Request) -> Response:
    """There is no v2/models/NAME/ready."""
    raise InferenceError("Not Found", status=404)


@fault("app.Service.model_metadata", breaks=("OIP-ENDPOINTS", "OIP-MODEL-METADATA"), surveyed=True)
async def no_metadata_of_models(_original: Any, _service: Any, _http: Request) -> Response:
    """There is no v2/models/NAME."""
    raise InferenceError("Not Found", status=404)


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def models_described_without_tensors(original: Any, model: Model) -> Object:
    """Model metadata have the name, and nothing in their other members."""
    return original(model) | {"versions": [], "platform": "", "inputs": [], "outputs": []}


@fault("metadata.describe", breaks="OIP-MODEL-METADATA")
def empty_shapes_left_out_of_metadata(original: Any, model: Model) -> Object:
    """A tensor without dimensions has no shape in model metadata: empty arrays are left out."""
    described: Object = original(model)
    lists = {
        side: [{name: one[name] for name in one if name != "shape" or one[name]} for one in described[side]]
        for side in ("inputs", "outputs")
    }
    return described | lists


@fault("app.Service.find", breaks="OIP-ERROR-STATUS")
def versions_beyond_64_bits_are_internal_errors(original: Any, service: Any, http: Request) -> Model:
    """A version with more digits than 64 bits hold is refused with status 500."""
    version = http.path_params.get("version", "")
    if version.isdecimal() and int(version) >= 2**63:
        raise InferenceError("the version could not be parsed", status=500)
    return original(service, http)


# --- documents --------------------------------------------------------------------------------------------------------

DEEP = 1000  # levels


@fault(ANSWER, breaks="ROBUST-LARGE")
async def deeply_nested_documents_end_the_models(original: Any, service: Any, http: Request) -> Response:
    """A document that is nested very deeply ends the server, whose reader calls itself for each level."""
    body = await http.body()
    if any(opened * DEEP in body for opened in (b"[", b'{"x":')):
        service.models = {}
    return await original(service, http)
