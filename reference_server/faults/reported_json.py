"""JSON faults that real servers had: elements, members and errors in answers, and data of requests."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from starlette.responses import Response

from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import NUMPY, Tensor, TensorSpec, join_elements

Answer = Mapping[str, Any]


# --- strings in answers -----------------------------------------------------------------------------------------------

ENCODE_OUTPUT_STEP = "response.encode_output"


def _is_only_bytes_output(model: Model, output: RequestedOutput, tensor: Tensor) -> bool:
    """Whether an output is BYTES, is not classified, and is the only output of its model."""
    return output.classes is None and len(model.outputs) == 1 and tensor.datatype == "BYTES"


@fault(ENCODE_OUTPUT_STEP, breaks=("BIN-SAME-AS-JSON-O", "OIP-VALUE", "OIP-ANSWER"))
def strings_in_json_are_base64(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> Any:
    """The server writes BYTES elements of a model's only output into JSON as base64."""
    entry, binary = original(model, output, tensor)
    if "data" in entry and _is_only_bytes_output(model, output, tensor):
        entry["data"] = [base64.b64encode(item).decode() for item in tensor.elements.tolist()]
    return entry, binary


@fault(ENCODE_OUTPUT_STEP, breaks=("OIP-SHAPE", "OIP-ANSWER"))
def strings_in_json_are_one_with_lengths(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> Any:
    """The server joins BYTES elements of a model's only output, with length prefixes, into one JSON string."""
    entry, binary = original(model, output, tensor)
    if entry.get("data") and _is_only_bytes_output(model, output, tensor):
        entry["data"] = [join_elements(tensor.elements.tolist()).decode("latin-1")]
    return entry, binary


@fault(
    ENCODE_OUTPUT_STEP,
    breaks=("OIP-ANSWER", "BIN-DATATYPES-I", "BIN-SAME-AS-JSON-I", "BIN-SAME-AS-JSON-O", "OIP-DATA", "OIP-VALUE"),
)
def strings_in_json_are_joined(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> Any:
    """The server writes BYTES elements of a model's only output as one joined string instead of an array."""
    entry, binary = original(model, output, tensor)
    if "data" in entry and _is_only_bytes_output(model, output, tensor):
        entry["data"] = "".join(entry["data"])
    return entry, binary


@fault(
    ENCODE_OUTPUT_STEP,
    breaks=(
        "OIP-ANSWER",
        "BIN-DATA-WITHOUT-SIZE",
        "BIN-SAME-AS-JSON-I",
        "BIN-SAME-AS-JSON-O",
        "OIP-DATA",
        "OIP-VALUE",
        "OIP-ERROR-STATUS",
    ),
)
def strings_in_json_answers_fail(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> Any:
    """The server answers 500 if the only output of a model is BYTES in JSON, because it decodes a string twice."""
    if not output.binary and _is_only_bytes_output(model, output, tensor):
        raise InferenceError("decoding str is not supported", status=500)
    return original(model, output, tensor)


@fault(ENCODE_OUTPUT_STEP, breaks="OIP-OUTPUT-MEMBERS")
def strings_have_no_datatype(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> Any:
    """The server writes the datatype of a model's only output as null if the output is BYTES."""
    entry, binary = original(model, output, tensor)
    return entry | ({"datatype": None} if _is_only_bytes_output(model, output, tensor) else {}), binary


# --- other elements and members of answers ----------------------------------------------------------------------------


def _change_outputs(answer: Answer, change: Any) -> Answer:
    """Return an answer in which `change` has replaced each output."""
    return {**answer, "outputs": [change(one) for one in answer["outputs"]]} if "outputs" in answer else answer


@fault(ENCODE_OUTPUT_STEP, breaks="OIP-OUTPUT-MEMBERS")
def datatype_in_camel_case(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> Any:
    """The server writes the member `dataType` instead of `datatype`, except for classifications."""
    entry, binary = original(model, output, tensor)
    if output.classes is None:
        entry = {"dataType" if name == "datatype" else name: entry[name] for name in entry}
    return entry, binary


@fault("response.encode", breaks="OIP-NULL")
def absent_members_are_null(original: Any, answer: Answer) -> bytes:
    """The server writes absent optional members as null: the id, parameters, and data of binary outputs."""
    absent = {"data": None, "parameters": None}
    return original({"id": None, "parameters": None, **_change_outputs(answer, lambda one: absent | one)})


@fault(ENCODE_OUTPUT_STEP, breaks=("BIN-FP16-IN-JSON", "OIP-ANSWER"))
def half_floats_have_no_data_in_json(original: Any, model: Model, output: RequestedOutput, tensor: Tensor) -> Any:
    """The server omits `data` of an FP16 output in JSON, because it cannot write FP16."""
    if tensor.datatype != "FP16" or output.binary or output.classes is not None:
        return original(model, output, tensor)
    return {"name": output.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}, None


@fault(ENCODE_OUTPUT_STEP, breaks=("OIP-ANSWER", "BIN-DATATYPES-I", "OIP-DATA"))
def outputs_of_one_dimension_become_columns(original: Any, model: Model, output: Any, tensor: Tensor) -> Any:
    """The server returns the shape [n, 1] instead of [n] from models that compute a weighted sum."""
    entry, binary = original(model, output, tensor)
    if output.classes is None and len(tensor.shape) == 1 and model.compute == "weighted_sum":
        entry["shape"] = [*tensor.shape, 1]
    return entry, binary


@fault("tensors.encode_json", "response.encode", breaks="OIP-JSON")
def numbers_that_are_not_finite_are_not_written(original: Any, given: Any) -> Any:
    """The server writes nothing for NaN and infinities in JSON data, only the commas between elements."""
    if isinstance(given, Tensor):
        return given.elements.tolist() if given.datatype in ("FP32", "FP64") else original(given)
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"(?<=[\[,])-?(NaN|Infinity)(?=[\],])", "", text).encode()


@fault("app.make_error", breaks=("OIP-ERROR", "OIP-ERROR-ELSEWHERE"))
def errors_are_pages(_original: Any, message: str, status: int, headers: Any = None) -> Response:
    """The server returns errors as HTML pages."""
    return Response(f"<html><title>{status}: {message}</title></html>", status, headers, "text/html")


# --- data of requests -------------------------------------------------------------------------------------------------


@fault(
    "tensors.decode_json",
    breaks=(
        "OIP-ANSWER",
        "OIP-VALUE",
        "OIP-DATA",
        "BIN-SAME-AS-JSON-I",
        "BIN-MIXED-I",
        "BIN-BYTES-O",
        "BIN-PACKED-O",
        "BIN-ORDER-O",
    ),
)
def numbers_in_json_written_as_bytes(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server writes each number of JSON data as one byte into the buffer of the tensor."""
    tensor: Tensor = original(datatype, shape, data)
    if datatype in ("BYTES", "BOOL", "FP16", "BF16") or not tensor.elements.size:
        return tensor
    with np.errstate(all="ignore"):
        octets = tensor.elements.astype(np.int64).astype(np.uint8).tobytes()
    filled = octets.ljust(tensor.elements.nbytes, b"\0")
    return Tensor(datatype, tensor.shape, np.frombuffer(filled, NUMPY[datatype]))


@fault(
    "request.parse_input",
    breaks=(
        "OIP-ANSWER",
        "OIP-VALUE",
        "OIP-BOOL",
        "BIN-SIZE-O",
        "BIN-BOOL-O",
        "BIN-SAME-AS-JSON-I",
        "BIN-SAME-AS-JSON-O",
    ),
)
def booleans_in_json_refused(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Tensor:
    """The server refuses BOOL data in JSON for a model's only input, because its parser reads only numbers."""
    if spec.datatype == "BOOL" and len(model.inputs) == 1 and entry.get("data") is not None:
        raise InferenceError("the input could not be parsed")
    return original(model, spec, entry, rest)


@fault("tensors.decode_json", "tensors.decode_binary", breaks=("OIP-ANSWER", "OIP-DATA"))
def string_inputs_lose_their_dimensions(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server flattens the shape of a BYTES input to one dimension."""
    tensor: Tensor = original(datatype, shape, data)
    return Tensor(datatype, (tensor.elements.size,), tensor.elements) if datatype == "BYTES" else tensor


@fault("tensors.decode_json", breaks="OIP-REFUSAL")
def strings_in_json_not_counted(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """For BYTES in JSON, the server ignores a shape of one dimension and counts the elements instead."""
    if datatype == "BYTES" and len(shape) == 1 and isinstance(data, list):
        shape = (len(data),)
    return original(datatype, shape, data)


# --- whole requests ---------------------------------------------------------------------------------------------------


@fault("request.parse_inputs", breaks=("OIP-ANSWER", "BIN-ORDER-O", "OIP-OUTPUTS-ALL"))
def last_json_input_alone_kept(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server keeps only the last input of a JSON request to a model with two inputs."""
    inputs = request.get("inputs")
    if rest is None and isinstance(inputs, list) and len(model.inputs) == 2:
        request = request | {"inputs": inputs[-1:]}
    return original(model, request, rest)


@fault(
    "strict_json.parse_object",
    breaks=(
        "OIP-ANSWER",
        "BIN-HEADER-OPTIONAL",
        "BIN-HEADER-IN-BYTES",
        "BIN-HEADER-ON-JSON-O",
        "BIN-CONTENT-TYPE-OF-JSON",
        "BIN-NOT-CHUNKED",
        "BIN-SIZE-O",
        "BIN-ORDER-O",
        "BIN-FALSE-OVERRIDES",
        "BIN-TRUE-OVERRIDES",
        "BIN-OUTPUT-TRUE",
        "OIP-OUTPUTS-LISTED",
        "OIP-OUTPUTS-ALL",
    ),
)
def parameters_of_requests_refused(original: Any, data: Any) -> Object:
    """The server refuses a request with top-level `parameters`: it expects the JSON encoding of protobuf."""
    found: Object = original(data)
    if found.get("parameters"):
        raise InferenceError("cannot read a number into an InferParameter")
    return found


@fault("members.get_shape", breaks="OIP-ERROR-STATUS")
def negative_dimensions_are_internal_errors(original: Any, owner: Object) -> Any:
    """The server answers 500 to a negative dimension, because it reads dimensions as unsigned integers."""
    shape = owner.get("shape")
    if isinstance(shape, list) and any(type(extent) is int and extent < 0 for extent in shape):
        raise InferenceError("the value is not an unsigned integer", status=500)
    return original(owner)
