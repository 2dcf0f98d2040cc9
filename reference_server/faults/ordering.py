"""Tensors or their bytes in a wrong order, and faults where JSON and binary data meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reference_server import response, tensors
from reference_server.faults import fault, steps
from reference_server.faults.edits import get_size, has_named_inputs, sort_as_declared, sort_inputs
from reference_server.members import Object
from reference_server.models import Model
from reference_server.response import Octets
from reference_server.tensors import Tensor

# --- requests ---------------------------------------------------------------------------------------------------------


def _mixes_forms(request: Object, rest: Any) -> bool:
    inputs = request["inputs"] if rest is not None and has_named_inputs(request) else []
    sizes = [item for item in inputs if "binary_data_size" in (item.get("parameters") or {})]
    has_one_form_each = bool(sizes) and not any("data" in item for item in sizes)
    return has_one_form_each and 0 < sum("data" in item for item in inputs) < 4


inputs_read_in_declared_order = steps.PARSE_INPUTS.before(("BIN-ORDER-I", "OIP-ANSWER"), request=sort_as_declared).says(
    "The server reads binary inputs in the order of the model's declaration, not of the request."
)
inputs_read_in_alphabetical_order = steps.PARSE_INPUTS.before(
    ("BIN-ORDER-I", "OIP-ANSWER"), request=lambda request: sort_inputs(request, lambda item: str(item["name"]))
).says("The server reads binary inputs in alphabetical order of their names, because a map sorts them.")
first_of_several_inputs_read_last = steps.PARSE_INPUTS.before(
    ("BIN-ORDER-I", "OIP-ANSWER"),
    request=lambda request: request | {"inputs": [*request["inputs"][1:], request["inputs"][0]]},
    when=lambda request: has_named_inputs(request) and len(request["inputs"]) > 2,
).says("If a request has three or more inputs, the server reads the bytes of the first input last.")
strings_read_behind_numbers = steps.PARSE_INPUTS.before(
    ("BIN-ORDER-I", "BIN-SIZE-I", "OIP-ANSWER"),
    request=lambda request: sort_inputs(request, lambda item: item.get("datatype") == "BYTES"),
).says("The server expects the bytes of BYTES inputs after the bytes of all other inputs.")
inputs_of_one_datatype_taken_in_the_order_of_the_request = steps.RUN.before(
    ("BIN-ORDER-I", "OIP-ANSWER"),
    inputs=lambda inputs, self: dict(zip([spec.name for spec in self.inputs], inputs.values(), strict=True)),
    when=lambda inputs: len({tensor.datatype for tensor in inputs.values()}) == 1,
).says("The server ignores the names of inputs of the same datatype, and assigns them in the request's order.")
returned_inputs_of_one_datatype_taken_by_position = steps.RUN.before(
    "OIP-ANSWER",
    inputs=lambda inputs, self: dict(zip([spec.name for spec in self.inputs], inputs.values(), strict=True)),
    when=lambda inputs, self: (
        self.name != "add_sub" and len(inputs) > 1 and len({tensor.datatype for tensor in inputs.values()}) == 1
    ),
).says("The server assigns inputs of the same datatype to a model that returns them in the order of the request.")
json_inputs_beside_binary_ones_refused = steps.PARSE_INPUTS.refuse(("BIN-MIXED-I", "OIP-ANSWER"), _mixes_forms).says(
    "The server refuses a request that has both JSON inputs and binary inputs."
)
inputs_beside_an_empty_one_read_in_declared_order = steps.PARSE_INPUTS.before(
    "BIN-ORDER-I",
    request=sort_as_declared,
    when=lambda request, rest: (
        rest is not None and has_named_inputs(request) and any(get_size(entry) == 0 for entry in request["inputs"])
    ),
).says("If a binary input is empty, the server reads all inputs in the order of the model's declaration.")

# --- answers ----------------------------------------------------------------------------------------------------------

EncodedOutput = tuple[Object, Octets | None]


def build_answer(model: Model, request: Any, entries: Sequence[Object], binary: Sequence[Octets]) -> Any:
    """Return an answer with the given JSON entries of outputs and the given binary data."""
    head = {} if request.id is None else {"id": request.id}
    head |= {"model_name": model.name, "model_version": model.version, "outputs": list(entries)}
    return response.frame(response.encode(head), binary)


def encode_outputs(model: Model, request: Any, produced: Mapping[str, Tensor]) -> list[EncodedOutput]:
    """Return the JSON entry and the binary data of each output."""
    return [response.encode_output(model, output, produced[output.name]) for output in request.outputs]


def answer_in_declared_order(model: Model, request: Any, produced: Mapping[str, Tensor]) -> Any:
    """Return an answer whose binary data follow the declared outputs, and whose JSON follows the request."""
    parts = encode_outputs(model, request, produced)
    declared = [spec.name for spec in model.outputs]
    binary = sorted((declared.index(entry["name"]), data) for entry, data in parts if data is not None)
    return build_answer(model, request, [entry for entry, _ in parts], [data for _, data in binary])


binary_outputs_in_reverse = steps.JOIN.before("BIN-ORDER-O", binary=lambda binary: list(binary)[::-1]).says(
    "The server sends binary data of outputs in the reverse of the order in the JSON."
)
binary_outputs_in_declared_order = steps.BUILD.instead("BIN-ORDER-O", answer_in_declared_order).says(
    "The server sends binary data in the order of the declared outputs, but the JSON in the requested order."
)


@fault(steps.JOIN, breaks=("BIN-ORDER-O", "BIN-BODY-O"))
def empty_output_repeats_the_bytes_before_it(original: Any, head: bytes, binary: Iterable[Octets]) -> Any:
    """The server sends the bytes of the previous binary output again for an output without elements."""
    written: list[Octets] = []
    for data in binary:
        written.append(data if len(data) or not written else written[-1])
    return original(head, written)


@fault(steps.BUILD, breaks=("BIN-MIXED-O", "OIP-ANSWER"))
def binary_data_counted_among_all_outputs(_original: Any, model: Model, request: Any, produced: Any) -> Any:
    """The server cuts the n-th binary data from the n-th output, even if JSON outputs come before."""
    parts = encode_outputs(model, request, produced)
    wanted = [data for _, data in parts if data is not None]
    every = [bytes(tensors.encode_binary(produced[output.name])) for output in request.outputs]
    mixed = len(wanted) < len(parts) and all(output.classes is None for output in request.outputs)
    if mixed:
        wanted = [every[k][: len(data)].ljust(len(data), b"\0") for k, data in enumerate(wanted)]
    return build_answer(model, request, [entry for entry, _ in parts], wanted)
