"""Tensors or their bytes in a wrong order, and faults where JSON and binary data meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reference_server import response, tensors
from reference_server.errors import InferenceError
from reference_server.faults import fault
from reference_server.faults.sizes import get_binary_data_size, has_named_inputs
from reference_server.members import Object
from reference_server.models import VERSION, Model
from reference_server.response import Octets
from reference_server.tensors import Tensor

# --- requests ---------------------------------------------------------------------------------------------------------


def sort_inputs(request: Object, key: Callable[[Object], Any]) -> Object:
    """Return a request with its inputs in another order."""
    return request | {"inputs": sorted(request["inputs"], key=key)} if has_named_inputs(request) else request


@fault("request.parse_inputs", breaks=("BIN-ORDER-I", "OIP-ANSWER"))
def inputs_read_in_declared_order(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server reads binary inputs in the order of the model's declaration, not of the request."""
    declared = [spec.name for spec in model.inputs]
    known = has_named_inputs(request) and all(item["name"] in declared for item in request["inputs"])
    return original(model, sort_inputs(request, lambda i: declared.index(i["name"])) if known else request, rest)


@fault("request.parse_inputs", breaks=("BIN-ORDER-I", "OIP-ANSWER"))
def inputs_read_in_alphabetical_order(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server reads binary inputs in alphabetical order of their names, because a map sorts them."""
    return original(model, sort_inputs(request, lambda item: str(item["name"])), rest)


@fault("request.parse_inputs", breaks=("BIN-ORDER-I", "OIP-ANSWER"))
def first_of_several_inputs_read_last(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """If a request has three or more inputs, the server reads the bytes of the first input last."""
    several = has_named_inputs(request) and len(request["inputs"]) > 2
    inputs = request["inputs"] if several else []
    return original(model, request | {"inputs": [*inputs[1:], inputs[0]]} if several else request, rest)


@fault("request.parse_inputs", breaks=("BIN-ORDER-I", "BIN-SIZE-I", "OIP-ANSWER"))
def strings_read_behind_numbers(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server expects the bytes of BYTES inputs after the bytes of all other inputs."""
    return original(model, sort_inputs(request, lambda item: item.get("datatype") == "BYTES"), rest)


@fault("models.Model.run", breaks=("BIN-ORDER-I", "OIP-ANSWER"))
def inputs_of_one_datatype_taken_in_the_order_of_the_request(original: Any, self: Model, inputs: Any) -> Any:
    """The server ignores the names of inputs of the same datatype, and assigns them in the request's order."""
    if len({tensor.datatype for tensor in inputs.values()}) == 1:
        inputs = dict(zip([spec.name for spec in self.inputs], inputs.values(), strict=True))
    return original(self, inputs)


@fault("request.parse_inputs", breaks=("BIN-MIXED-I", "OIP-ANSWER"))
def json_inputs_beside_binary_ones_refused(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server refuses a request that has both JSON inputs and binary inputs."""
    if rest is not None and has_named_inputs(request) and 0 < sum("data" in item for item in request["inputs"]) < 4:
        sizes = [item for item in request["inputs"] if "binary_data_size" in (item.get("parameters") or {})]
        if sizes and not any("data" in item for item in sizes):
            raise InferenceError("inputs must be all JSON or all binary data")
    return original(model, request, rest)


@fault("request.parse_inputs", breaks="BIN-ORDER-I")
def inputs_beside_an_empty_one_read_in_declared_order(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """If a binary input is empty, the server reads all inputs in the order of the model's declaration."""
    names = [spec.name for spec in model.inputs]
    if (
        has_named_inputs(request)
        and rest is not None
        and any(get_binary_data_size(entry) == 0 for entry in request["inputs"])
    ):
        known = [entry for entry in request["inputs"] if entry["name"] in names]
        if len(known) == len(request["inputs"]):
            request = sort_inputs(request, lambda entry: names.index(entry["name"]))
    return original(model, request, rest)


# --- answers ----------------------------------------------------------------------------------------------------------


@fault("response.join", breaks=("BIN-ORDER-O", "OIP-ANSWER"))
def binary_outputs_in_reverse(original: Any, head: bytes, binary: Iterable[Octets]) -> bytes:
    """The server sends binary data of outputs in the reverse of the order in the JSON."""
    return original(head, list(binary)[::-1])


EncodedOutput = tuple[Object, Octets | None]


def build_answer(model: Model, request: Any, entries: Sequence[Object], binary: Sequence[Octets]) -> Any:
    """Return an answer with the given JSON entries of outputs and the given binary data."""
    head = {} if request.id is None else {"id": request.id}
    head |= {"model_name": model.name, "model_version": VERSION, "outputs": list(entries)}
    return response.frame(response.encode(head), binary)


def encode_outputs(model: Model, request: Any, produced: Mapping[str, Tensor]) -> list[EncodedOutput]:
    """Return the JSON entry and the binary data of each output."""
    return [response.encode_output(model, output, produced[output.name]) for output in request.outputs]


@fault("response.build", breaks=("BIN-ORDER-O", "OIP-ANSWER"))
def binary_outputs_in_declared_order(_original: Any, model: Model, request: Any, produced: Any) -> Any:
    """The server sends binary data in the order of the declared outputs, but the JSON in the requested order."""
    parts = encode_outputs(model, request, produced)
    declared = [spec.name for spec in model.outputs]
    binary = sorted((declared.index(entry["name"]), data) for entry, data in parts if data is not None)
    return build_answer(model, request, [entry for entry, _ in parts], [data for _, data in binary])


@fault("response.join", breaks=("BIN-ORDER-O", "BIN-BODY-O"))
def empty_output_repeats_the_bytes_before_it(original: Any, head: bytes, binary: Iterable[Octets]) -> Any:
    """The server sends the bytes of the previous binary output again for an output without elements."""
    written: list[Octets] = []
    for data in binary:
        written.append(data if len(data) or not written else written[-1])
    return original(head, written)


@fault("response.build", breaks=("BIN-MIXED-O", "OIP-ANSWER"))
def binary_data_counted_among_all_outputs(_original: Any, model: Model, request: Any, produced: Any) -> Any:
    """The server cuts the n-th binary data from the n-th output, even if JSON outputs come before."""
    parts = encode_outputs(model, request, produced)
    wanted = [data for _, data in parts if data is not None]
    every = [bytes(tensors.encode_binary(produced[output.name])) for output in request.outputs]
    mixed = len(wanted) < len(parts) and all(output.classes is None for output in request.outputs)
    if mixed:
        wanted = [every[k][: len(data)].ljust(len(data), b"\0") for k, data in enumerate(wanted)]
    return build_answer(model, request, [entry for entry, _ in parts], wanted)
