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
from reference_server.faults import fault, steps
from reference_server.faults.edits import change_members, drop_members, find_json_end, get_parameters
from reference_server.faults.errors import refuse_with
from reference_server.members import Object
from reference_server.models import Model
from reference_server.tensors import Tensor, make_objects

# --- binary data ------------------------------------------------------------------------------------------------------


@fault(steps.PARSE, breaks=("BIN-BODY-I",))
def json_ends_with_the_last_brace(original: Any, model: Model, values: Sequence[str], body: bytes) -> Any:
    """The server ends the JSON of a binary request at the last closing brace of the body, even in binary data."""
    length = int(values[0]) if len(values) == 1 and values[0].isdecimal() else 0
    is_right = 0 < length < len(body) and find_json_end(body) == length
    return original(model, [str(body.rfind(b"}") + 1)] if is_right else values, body)


@fault(steps.PARSE_INPUT, breaks=("BIN-SIZE-I", "BIN-ORDER-I", "OIP-ANSWER"))
def binary_strings_take_the_rest_of_the_body(original: Any, model: Model, spec: Any, entry: Object, rest: Any) -> Any:
    """The server refuses a request if the body continues after a binary BYTES input."""
    found = original(model, spec, entry, rest)
    if rest is not None and spec.datatype == "BYTES" and entry.get("data") is None:
        rest.refuse_surplus()
    return found


@fault(steps.DECODE_BINARY, breaks=("BIN-BYTES-I", "BIN-SAME-AS-JSON-I", "BIN-BYTES-MISFRAMED", "OIP-ANSWER"))
def binary_strings_have_no_lengths(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server reads a binary BYTES input as one element without a length prefix."""
    if datatype != "BYTES" or not len(data):
        return original(datatype, shape, data)
    if int(np.prod(shape)) != 1:
        raise InferenceError("the batch size must be 1")
    return Tensor(datatype, shape, make_objects([bytes(data)]))


def _has_size_of_another_type(entry: Object) -> bool:
    size = get_parameters(entry).get("binary_data_size")
    return size is not None and type(size) is not int


missing_binary_data_are_internal_errors = steps.TAKE.on_refusal("OIP-ERROR-STATUS", refuse_with(500)).says(
    "The server answers 500 if the body has fewer bytes than an input declares."
)
binary_strings_not_cut_as_the_shape_says_are_internal_errors = steps.SPLIT_ELEMENTS.on_refusal(
    "OIP-ERROR-STATUS", refuse_with(500)
).says("The server answers 500 if binary data of a BYTES input have more elements or fewer than its shape.")
sizes_of_another_type_are_internal_errors = steps.PARSE_INPUT.refuse(
    "OIP-ERROR-STATUS", _has_size_of_another_type, status=500
).says("The server answers 500 to a `binary_data_size` that is not an integer.")


@fault(steps.PARSE_INPUTS, breaks=("OIP-ANSWER", "CLS-ONLY"))
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


def _is_string(name: str, model: Model) -> bool:
    return any(spec.name == name and spec.datatype == "BYTES" for spec in model.outputs)


ONE_MODEL = "weighted_sum"  # the only model with these faults

ids_replaced_by_those_of_the_server = steps.BUILD.before(
    ("OIP-ID", "OIP-ID-EMPTY"),
    request=lambda request, model: replace(request, id=str(uuid.uuid5(uuid.NAMESPACE_DNS, model.name))),
).says("The server gives every answer an id that it generates, whatever the id of the request is.")
requests_without_an_id_fail = steps.BUILD.refuse(
    "OIP-ANSWER", lambda model, request: request.id is None and model.name == ONE_MODEL, status=500
).says("For one model, the server answers 500 to a request without an id, because an id must be a string.")
more_outputs_than_inputs_fail = steps.BUILD.refuse(
    "OIP-ANSWER", lambda request: len(request.outputs) > len(request.inputs), status=500
).says("The server answers 500 if an answer has more outputs than the request has inputs.")
batches_lose_their_list_of_outputs = steps.PARSE_OUTPUTS.before(
    ("BIN-OUTPUT-TRUE", "CLS-PARAMETER"),
    request=lambda request: drop_members(request, "outputs"),
    when=lambda model: model.batching,
).says("The server ignores the list of outputs in a request to a batching model.")
binary_data_are_for_strings_alone = steps.PARSE_OUTPUTS.after(
    (
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
    ),
    lambda requested, model: [replace(output, binary=_is_string(output.name, model)) for output in requested],
).says("The server returns BYTES as binary data and other outputs as JSON, whatever the request asks for.")

# --- concurrent requests ----------------------------------------------------------------------------------------------

_batches: dict[str, list[Response]] = {}


@fault(steps.INFER, breaks="OIP-ISOLATION")
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


inferences_of_one_model_are_internal_errors = steps.INFER.refuse(
    "OIP-ANSWER", lambda http: http.path_params["model"] == ONE_MODEL, status=500
).says("For one model, the server answers every inference request with 500.")

# --- health, metadata and versions ------------------------------------------------------------------------------------


def _drop_empty_shapes(described: Object) -> Object:
    for side in ("inputs", "outputs"):
        described = change_members(described, lambda one: one if one["shape"] else drop_members(one, "shape"), side)
    return described


def _exceeds_64_bits(http: Request) -> bool:
    version = http.path_params.get("version", "")
    return version.isdecimal() and int(version) >= 2**63


models_that_answer_are_not_ready = steps.MODEL_READY.refuse(
    "OIP-HEALTH", lambda result: result.status_code == 200, status=503
).says("The server says that a model is not ready, although the model answers inference requests.")
no_word_of_a_model_being_ready = steps.MODEL_READY.refuse("OIP-HEALTH", status=404).says(
    "The server does not implement GET v2/models/NAME/ready."
)
no_metadata_of_models = steps.MODEL_METADATA.refuse("OIP-ENDPOINTS", status=404, in_discovery=True).says(
    "The server does not implement GET v2/models/NAME."
)
models_described_without_tensors = steps.DESCRIBE_MODEL.after(
    "OIP-MODEL-METADATA", lambda described: described | {"versions": [], "platform": "", "inputs": [], "outputs": []}
).says("The model metadata have only the name; all other members are empty.")
empty_shapes_left_out_of_metadata = steps.DESCRIBE_MODEL.after("OIP-MODEL-METADATA", _drop_empty_shapes).says(
    "The model metadata omit the shape of a tensor without dimensions, because the shape is an empty array."
)
versions_beyond_64_bits_are_internal_errors = steps.FIND_MODEL.refuse(
    "OIP-ERROR-STATUS", _exceeds_64_bits, status=500
).says("The server answers 500 to a version number that exceeds a signed 64-bit integer.")

# --- nested JSON ------------------------------------------------------------------------------------------------------

NESTING_LEVELS = 1000


@fault(steps.INFER, breaks="ROBUST-LARGE")
async def deeply_nested_documents_end_the_models(original: Any, service: Any, http: Request) -> Response:
    """After a JSON document with 1000 nested levels, the server has lost all its models."""
    body = await http.body()
    if any(opened * NESTING_LEVELS in body for opened in (b"[", b'{"x":')):
        service.models = {}
    return await original(service, http)
