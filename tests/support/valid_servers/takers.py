"""Servers that accept requests which other servers refuse, and answer them correctly."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from reference_server import tensors
from reference_server.errors import InferenceError
from reference_server.faults import fault as variation
from reference_server.faults import steps
from reference_server.faults.edits import get_entries, get_parameters, set_parameter
from reference_server.faults.input_conflicts import has_integer_shape
from reference_server.members import Object
from reference_server.models import Model
from reference_server.tensors import NUMPY, Tensor, TensorSpec


@variation(steps.PARSE_INPUT, breaks="OIP-SIGNATURE")
def other_datatypes_are_converted(original: Any, model: Any, spec: TensorSpec, entry: Any, rest: Any) -> Tensor:
    """The server reads a numeric input of another datatype in this datatype, and converts the elements."""
    datatype = entry.get("datatype")
    if datatype not in NUMPY or "BYTES" in (datatype, spec.datatype) or datatype == spec.datatype:
        return original(model, spec, entry, rest)  # type: ignore[no-any-return]
    tensor: Tensor = original(model, replace(spec, datatype=datatype), entry, rest)
    return Tensor(spec.datatype, tensor.shape, tensor.elements.astype(NUMPY[spec.datatype]))


@variation(steps.PARSE_INPUT, breaks="OIP-SIGNATURE")
def other_shapes_are_reshaped(original: Any, model: Any, spec: TensorSpec, entry: Any, rest: Any) -> Tensor:
    """The server gives an input the fixed shape of the model if the number of elements is the same."""
    shape = entry.get("shape")
    fixed = isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in shape)
    if fixed and -1 not in spec.shape and math.prod(shape) == math.prod(spec.shape):
        entry = entry | {"shape": [1, *spec.shape] if model.batching else list(spec.shape)}
    tensor: Tensor = original(model, spec, entry, rest)
    return tensor


_SIGNED: list[list[int]] = []  # the shape of the last input that was read, if it has a negative dimension


@variation(steps.GET_SHAPE, steps.ENCODE, breaks="OIP-DIMENSION-NEGATIVE")
def negative_dimensions_are_repeated(original: Any, given: Any) -> Any:
    """The server works out the size of a negative dimension, and repeats it in the shapes of its answer."""
    if "outputs" in given or "model_name" in given:
        outputs = [one | {"shape": _SIGNED[-1]} if _SIGNED else one for one in given["outputs"]]
        return original(given | {"outputs": outputs})
    shape = given.get("shape")
    _SIGNED[:] = [shape] if has_integer_shape(given) and any(size < 0 for size in shape) else []
    return original(given | {"shape": list(map(abs, shape))} if _SIGNED else given)


@variation(steps.DECODE_JSON, breaks="OIP-RANGE")
def words_are_zero(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """The server reads strings in integer data: digits as their number, other strings as 0, like JavaScript."""
    if "INT" in datatype and isinstance(data, list):
        data = [(int(item) if item.isdigit() else 0) if isinstance(item, str) else item for item in data]
    tensor: Tensor = original(datatype, shape, data)
    return tensor


MAX_FILLED = 1_000_000  # elements


def _is_single_element(data: Any, shape: tuple[int, ...]) -> bool:
    is_single = isinstance(data, list) and len(data) == 1 and not isinstance(data[0], list)
    return is_single and 1 < math.prod(shape) <= MAX_FILLED


one_element_fills_the_tensor = steps.DECODE_JSON.before(
    (), data=lambda data, shape: data * math.prod(shape), when=_is_single_element
).says("The server fills an input with the only element of its JSON data, as in the protocol's own example.")


@variation(steps.PARSE_INPUT, breaks="BIN-SIZE-MISSING")
def missing_sizes_are_worked_out(original: Any, model: Any, spec: TensorSpec, entry: Any, rest: Any) -> Tensor:
    """The server computes a missing size of a binary input from the shape, or from the length prefixes."""
    sized = (entry.get("parameters") or {}).get("binary_data_size") is not None
    shape = entry.get("shape")
    if rest is not None and not sized and entry.get("data") is None and isinstance(shape, list):
        count = math.prod(shape)
        size = (
            count * NUMPY[spec.datatype].itemsize if spec.datatype != "BYTES" else _of_strings(rest._remaining, count)
        )
        entry = entry | {"parameters": {"binary_data_size": size}}
    tensor: Tensor = original(model, spec, entry, rest)
    return tensor


def _of_strings(data: memoryview, count: int) -> int:
    """Return the number of bytes of `count` BYTES elements."""
    at = 0
    for _ in range(count):
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    return at


@variation(steps.PARSE_OUTPUTS, breaks="OIP-TWICE")
def outputs_listed_twice_come_twice(original: Any, model: Any, request: Any) -> Any:
    """The server returns an output twice if the request lists it twice, each time as requested."""
    listed = request.get("outputs")
    if not isinstance(listed, list):
        return original(model, request)
    return [wish for entry in listed for wish in original(model, request | {"outputs": [entry]})] or original(
        model, request
    )


@variation(steps.PARSE_INPUTS, breaks="OIP-TWICE")
def last_of_equal_inputs_counts(original: Any, model: Any, request: Any, rest: Any) -> Any:
    """If a JSON request repeats the name of an input, the server uses the last input of that name."""
    inputs = request.get("inputs")
    if rest is None and isinstance(inputs, list) and all(isinstance(entry, dict) for entry in inputs):
        names = [entry.get("name") for entry in inputs]
        last = [entry for index, entry in enumerate(inputs) if entry.get("name") not in names[index + 1 :]]
        request = {**request, "inputs": last}
    return original(model, request, rest)


# --- parameters of the server's own ----------------------------------------------------------------------------------


@variation(steps.PARSE_OUTPUTS)
def parameters_of_inputs_taken_for_outputs(original: Any, model: Model, request: Object) -> Any:
    """The server returns binary outputs if an input has `binary_data` or `binary_data_output`."""
    given = [get_parameters(entry) for entry in get_entries(request, "inputs")]
    asked = any(found.get(name) is True for found in given for name in ("binary_data", "binary_data_output"))
    return original(model, set_parameter(request, "binary_data_output", True) if asked else request)


@variation(steps.PARSE_OUTPUTS)
def forms_beside_the_parameters_taken(original: Any, model: Model, request: Object) -> Any:
    """The server accepts `binary_data` and `binary_data_output` also outside of `parameters`."""
    outputs = [
        entry | {"parameters": {"binary_data": entry["binary_data"], **get_parameters(entry)}}
        if "binary_data" in entry
        else entry
        for entry in get_entries(request, "outputs")
    ]
    request = request | {"outputs": outputs} if outputs else request
    default = request.get("binary_data_output")
    return original(model, request if default is None else set_parameter(request, "binary_data_output", default))


@variation(steps.PARSE_OUTPUTS)
def classification_on_the_request_taken_for_each(original: Any, model: Model, request: Object) -> Any:
    """The server classifies every output if the request has the parameter `classification`."""
    count = get_parameters(request).get("classification")
    if count is None:
        return original(model, request)
    outputs = get_entries(request, "outputs") or [{"name": spec.name} for spec in model.outputs]
    classified = [entry | {"parameters": {"classification": count, **get_parameters(entry)}} for entry in outputs]
    return original(model, request | {"outputs": classified})


@variation(steps.PARSE_OUTPUTS)
def classification_beside_the_parameters_taken(original: Any, model: Model, request: Object) -> Any:
    """The server accepts `classification` of an output also outside of `parameters`."""
    outputs = [
        entry | {"parameters": {"classification": entry["classification"], **get_parameters(entry)}}
        if "classification" in entry
        else entry
        for entry in get_entries(request, "outputs")
    ]
    return original(model, request | {"outputs": outputs} if outputs else request)


# --- raw bodies ------------------------------------------------------------------------------------------------------


@variation(steps.PARSE_BODY, breaks="RAW-BYTES-SHAPE")
def raw_strings_of_any_shape_are_split(original: Any, model: Model, body: bytes) -> Any:
    """The server splits a raw body for BYTES of shape [2] or [-1] at the length prefixes in the body."""
    spec = model.inputs[0]
    if len(model.inputs) > 1 or spec.datatype != "BYTES" or spec.shape not in ((2,), (-1,)):
        return original(model, body)
    count, at = 0, 0
    while at < len(body):
        at += 4 + int.from_bytes(body[at : at + 4], "little")
        count += 1
    if at != len(body) or count != max(spec.shape[0], 1) or not count:
        raise InferenceError("the body does not fill the shape")
    return {spec.name: Tensor("BYTES", (count,), tensors.split_elements(memoryview(body), count))}


# --- sizes -----------------------------------------------------------------------------------------------------------


@variation(steps.PARSE_INPUTS, breaks=("BIN-SIZE-FALSE", "BIN-SIZE-TYPE", "BIN-SIZE-MISSING"))
def numeric_sizes_are_not_looked_at(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server computes the sizes of numeric inputs from their shapes; a last BYTES input takes the rest."""
    entries = get_entries(request, "inputs")
    shaped = all("data" not in entry and isinstance(entry.get("shape"), list) for entry in entries)
    if not (entries and shaped) or rest is None or any(entry.get("datatype") not in NUMPY for entry in entries[:-1]):
        return original(model, request, rest)
    left = len(rest._remaining)
    sizes: list[int] = []
    for entry in entries:
        known = NUMPY.get(str(entry.get("datatype")))
        sizes.append(math.prod(entry["shape"]) * known.itemsize if known else left - sum(sizes))
    if sum(sizes) != left or min(sizes) < 0:
        return original(model, request, rest)
    sized = [entry | {"parameters": {"binary_data_size": size}} for entry, size in zip(entries, sizes, strict=True)]
    return original(model, request | {"inputs": sized}, rest)
