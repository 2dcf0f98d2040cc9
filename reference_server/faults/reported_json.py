"""JSON faults that real servers had: elements, members and errors in answers, and data of requests."""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import numpy as np
from starlette.responses import Response

from reference_server.faults import fault, steps
from reference_server.faults.edits import change_members, dump_json, has_listed_objects
from reference_server.faults.input_conflicts import has_integer_shape
from reference_server.faults.json_text import write_as_they_are
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import NUMPY, Tensor, join_elements

# --- strings in answers -----------------------------------------------------------------------------------------------


def is_only_bytes_output(model: Model, output: RequestedOutput, tensor: Tensor) -> bool:
    """Whether an output is BYTES, is not classified, and is the only output of its model."""
    return output.classes is None and len(model.outputs) == 1 and tensor.datatype == "BYTES"


def is_only_bytes_output_in_json(model: Model, output: RequestedOutput, tensor: Tensor) -> bool:
    """Whether such an output is in JSON."""
    return not output.binary and is_only_bytes_output(model, output, tensor)


strings_in_json_are_base64 = steps.ENCODE_OUTPUT.change_entry(
    "OIP-ANSWER",
    lambda entry, tensor: entry | {"data": [base64.b64encode(item).decode() for item in tensor.elements.tolist()]},
    when=is_only_bytes_output_in_json,
).says("The server writes BYTES elements of a model's only output into JSON as base64.")
strings_in_json_are_one_with_lengths = steps.ENCODE_OUTPUT.change_entry(
    ("OIP-SHAPE", "OIP-ANSWER"),
    lambda entry, tensor: entry | {"data": [join_elements(tensor.elements.tolist()).decode("latin-1")]},
    when=lambda model, output, tensor: tensor.elements.size > 0 and is_only_bytes_output_in_json(model, output, tensor),
).says("The server joins BYTES elements of a model's only output, with length prefixes, into one JSON string.")
strings_in_json_are_joined = steps.ENCODE_OUTPUT.change_entry(
    ("OIP-ANSWER", "BIN-DATATYPES-I", "OIP-DATA", "OIP-VALUE"),
    lambda entry: entry | {"data": "".join(entry["data"])},
    when=is_only_bytes_output_in_json,
).says("The server writes BYTES elements of a model's only output as one joined string instead of an array.")
strings_in_json_answers_fail = steps.ENCODE_OUTPUT.refuse(
    ("OIP-ANSWER", "OIP-ERROR-STATUS"), is_only_bytes_output_in_json, status=500
).says("The server answers 500 if the only output of a model is BYTES in JSON, because it decodes a string twice.")
strings_have_no_datatype = steps.ENCODE_OUTPUT.change_entry(
    "OIP-OUTPUT-MEMBERS", lambda entry: entry | {"datatype": None}, when=is_only_bytes_output
).says("The server writes the datatype of a model's only output as null if the output is BYTES.")

# --- other elements and members of answers ----------------------------------------------------------------------------

datatype_in_camel_case = steps.ENCODE_OUTPUT.change_entry(
    "OIP-OUTPUT-MEMBERS",
    lambda entry: {"dataType" if name == "datatype" else name: entry[name] for name in entry},
    when=lambda output: output.classes is None,
).says("The server writes the member `dataType` instead of `datatype`, except for classifications.")


def _write_absent_members(answer: Any) -> Any:
    absent = {"data": None, "parameters": None}
    return {"id": None, "parameters": None, **change_members(answer, lambda output: absent | output, "outputs")}


absent_members_are_null = steps.ENCODE.before("OIP-NULL", answer=_write_absent_members).says(
    "The server writes absent optional members as null: the id, parameters, and data of binary outputs."
)
half_floats_have_no_data_in_json = steps.ENCODE_OUTPUT.instead(
    ("BIN-FP16-IN-JSON", "OIP-ANSWER"),
    lambda output, tensor: ({"name": output.name, "datatype": "FP16", "shape": list(tensor.shape)}, None),
    when=lambda output, tensor: tensor.datatype == "FP16" and not output.binary and output.classes is None,
).says("The server omits `data` of an FP16 output in JSON, because it cannot write FP16.")
outputs_of_one_dimension_become_columns = steps.ENCODE_OUTPUT.change_entry(
    ("OIP-ANSWER", "BIN-DATATYPES-I", "OIP-DATA"),
    lambda entry: entry | {"shape": [*entry["shape"], 1]},
    when=lambda model, output, tensor: (
        output.classes is None and len(tensor.shape) == 1 and model.compute == "weighted_sum"
    ),
).says("The server returns the shape [n, 1] instead of [n] from models that compute a weighted sum.")
numbers_that_are_not_finite_are_not_written = write_as_they_are(
    "OIP-JSON", lambda answer: re.sub(r"(?<=[\[,])-?(NaN|Infinity)(?=[\],])", "", dump_json(answer)).encode()
).says("The server writes nothing for NaN and infinities in JSON data, only the commas between elements.")


@fault(steps.MAKE_ERROR, breaks=("OIP-ERROR", "OIP-ERROR-ELSEWHERE"))
def errors_are_pages(_original: Any, message: str, status: int, headers: Any = None) -> Response:
    """The server returns errors as HTML pages."""
    return Response(f"<html><title>{status}: {message}</title></html>", status, headers, "text/html")


# --- outputs, and answers as a whole ----------------------------------------------------------------------------------

shapes_of_batches_flattened = steps.ENCODE_OUTPUT.change_entry(
    (),
    lambda entry: entry | {"shape": [math.prod(entry["shape"])]},
    when=lambda model, output, tensor: (
        model.batching and output.classes is None and len(tensor.shape) > 1 and tensor.shape[0] > 1
    ),
    broad=True,
).says("The shape of an output for two or more items has one dimension, the number of all elements.")
outputs_named_after_the_inputs = steps.ENCODE_OUTPUT.change_entry(
    (), lambda entry, model: entry | {"name": model.inputs[0].name}, broad=True
).says("The server writes the name of the model's first input as the name of an output.")
outputs_of_several_dimensions_without_elements_fail = steps.RUN.refuse(
    (),
    lambda result: any(not tensor.elements.size and len(tensor.shape) > 1 for tensor in result.values()),
    status=500,
    broad=True,
).says("The server answers 500 if an output has several dimensions, and one of them is 0.")
answers_with_longer_strings_are_empty = steps.INFER.instead(
    (),
    lambda: Response(b"", media_type="application/json"),
    when=lambda result: re.search(rb'"[A-Za-z ]{19,}"', bytes(result.body)) is not None,
    broad=True,
).says("An answer with a string of 19 letters or more in its JSON has status 200 and an empty body.")


# --- data of requests -------------------------------------------------------------------------------------------------


def _write_as_bytes(tensor: Tensor) -> Tensor:
    if tensor.datatype in ("BYTES", "BOOL", "FP16", "BF16") or not tensor.elements.size:
        return tensor
    with np.errstate(all="ignore"):
        octets = tensor.elements.astype(np.int64).astype(np.uint8).tobytes()
    filled = octets.ljust(tensor.elements.nbytes, b"\0")
    return Tensor(tensor.datatype, tensor.shape, np.frombuffer(filled, NUMPY[tensor.datatype]))


numbers_in_json_written_as_bytes = steps.DECODE_JSON.after("OIP-ANSWER", _write_as_bytes).says(
    "The server writes each number of JSON data as one byte into the buffer of the tensor."
)
booleans_in_json_refused = steps.PARSE_INPUT.refuse(
    "OIP-ANSWER",
    lambda model, spec, entry: spec.datatype == "BOOL" and len(model.inputs) == 1 and entry.get("data") is not None,
).says("The server refuses BOOL data in JSON for a model's only input, because its parser reads only numbers.")


@fault(steps.DECODE_JSON, steps.DECODE_BINARY, breaks=("OIP-ANSWER", "OIP-DATA"))
def string_inputs_lose_their_dimensions(original: Any, datatype: str, shape: Any, data: Any) -> Tensor:
    """The server flattens the shape of a BYTES input to one dimension."""
    tensor: Tensor = original(datatype, shape, data)
    return Tensor(datatype, (tensor.elements.size,), tensor.elements) if datatype == "BYTES" else tensor


strings_in_json_not_counted = steps.DECODE_JSON.before(
    "OIP-REFUSAL",
    shape=lambda _, data: (len(data),),
    when=lambda datatype, shape, data: datatype == "BYTES" and len(shape) == 1 and isinstance(data, list),
).says("For BYTES in JSON, the server ignores a shape of one dimension and counts the elements instead.")

# --- whole requests ---------------------------------------------------------------------------------------------------

last_json_input_alone_kept = steps.PARSE_INPUTS.before(
    "OIP-ANSWER",
    request=lambda request: request | {"inputs": request["inputs"][-1:]},
    when=lambda model, request, rest: rest is None and len(model.inputs) == 2 and has_listed_objects(request, "inputs"),
).says("The server keeps only the last input of a JSON request to a model with two inputs.")
parameters_of_requests_refused = steps.PARSE_OBJECT.refuse(
    ("BIN-ALL-TRUE", "BIN-ALL-FALSE", "BIN-HEADER-OPTIONAL"), lambda result: result.get("parameters")
).says("The server refuses a request with top-level `parameters`: it expects the JSON encoding of protobuf.")
ids_of_requests_are_internal_errors = steps.PARSE_OBJECT.refuse(
    ("OIP-ID", "OIP-ERROR-STATUS"), lambda result: result.get("id"), status=500
).says("The server answers 500 if a request has an id, because it looks the id up in a table that is not there.")
listed_outputs_refused = steps.PARSE_OBJECT.refuse("OIP-OUTPUTS-LISTED", lambda result: result.get("outputs")).says(
    "The server refuses a request that lists outputs: it always returns all."
)
negative_dimensions_are_internal_errors = steps.GET_SHAPE.refuse(
    "OIP-ERROR-STATUS", lambda owner: has_integer_shape(owner) and min(owner["shape"], default=0) < 0, status=500
).says("The server answers 500 to a negative dimension, because it reads dimensions as unsigned integers.")
