"""Faults where the server accepts contradictory, incomplete or repeated inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reference_server.faults import Fault, fault, steps
from reference_server.faults.edits import (
    drop_members,
    get_entries,
    get_size,
    has_listed_objects,
    has_named_inputs,
    set_size,
)
from reference_server.faults.sizes import count_native_bytes, get_remaining
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import NUMPY, Tensor, TensorSpec

# --- datatypes and shapes ---------------------------------------------------------------------------------------------

datatype_taken_from_the_model = steps.PARSE_INPUT.before(
    "OIP-MEMBER-MISSING", entry=lambda entry, spec: {"datatype": spec.datatype, **entry}
).says("The server gives an input without a datatype the datatype of the model.")
shape_taken_from_the_data = steps.PARSE_INPUT.before(
    "OIP-MEMBER-MISSING",
    entry=lambda entry: {"shape": [len(entry["data"])], **entry},
    when=lambda entry: isinstance(entry.get("data"), list),
).says("The server uses the length of `data` as the only dimension of an input without a shape.")


def _is_numeric(entry: Object) -> bool:
    return entry.get("datatype") in NUMPY and entry["datatype"] != "BYTES" and isinstance(entry.get("shape"), list)


def reread_inputs(breaks: tuple[str, ...], change: Callable[[list[Object], Model], list[Object]]) -> Fault:
    """Return a fault: the server reads other inputs from binary data, and drops the bytes beyond their sizes."""

    def reread(request: Object, model: Model, rest: Any) -> Object:
        inputs = change(request["inputs"], model)
        if inputs != request["inputs"]:
            rest._remaining = get_remaining(rest)[: sum(get_size(entry) or 0 for entry in inputs)]
        return request | {"inputs": inputs}

    return steps.PARSE_INPUTS.before(
        breaks, request=reread, when=lambda request, rest: rest is not None and has_named_inputs(request)
    )


def _set_model_datatypes(inputs: list[Object], model: Model) -> list[Object]:
    specs = {spec.name: spec for spec in model.inputs}
    return [_set_model_datatype(entry, specs.get(entry["name"])) for entry in inputs]


def _set_model_datatype(entry: Object, spec: TensorSpec | None) -> Object:
    """Return a binary input of a wrong datatype with the declared datatype and its size; others unchanged."""
    is_other = spec is not None and _is_numeric(entry) and spec.datatype not in ("BYTES", entry["datatype"])
    if spec is None or not is_other or get_size(entry) is None:
        return entry
    return set_size(entry, count_native_bytes(spec.datatype, entry["shape"])) | {"datatype": spec.datatype}


bytes_counted_by_the_models_datatype = reread_inputs(
    ("OIP-SIGNATURE-SAFE", "OIP-SIGNATURE"), _set_model_datatypes
).says("The server reads a binary input of a wrong datatype with the datatype and size that the model declares.")


@fault(steps.PARSE_INPUT, breaks=("OIP-SIGNATURE-SAFE", "OIP-SIGNATURE"))
def exchanged_dimensions_transposed(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Tensor:
    """The server transposes an input whose dimensions are those of the model in reverse order."""
    shape = entry.get("shape")
    if not isinstance(shape, list) or tuple(shape[::-1]) != spec.shape or tuple(shape) == spec.shape:
        return original(model, spec, entry, rest)
    tensor: Tensor = original(model, spec, entry | {"shape": shape[::-1]}, rest)
    return replace(tensor, elements=tensor.elements.reshape(shape).T.reshape(-1))


@fault(steps.PARSE_INPUT, breaks="OIP-DIMENSION-NEGATIVE")
def minus_one_is_what_the_elements_make(
    original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any
) -> Tensor:
    """The server accepts -1 as a dimension and computes the dimension from the number of elements."""
    shape, size = entry.get("shape"), get_size(entry)
    if isinstance(shape, list) and shape.count(-1) == 1 and spec.datatype != "BYTES":
        data = entry.get("data")
        count = len(data) if isinstance(data, list) else (size or 0) // NUMPY[spec.datatype].itemsize
        others = math.prod(extent for extent in shape if extent != -1)
        entry = entry | {"shape": [count // others if extent == -1 else extent for extent in shape]}
    return original(model, spec, entry, rest)


def has_integer_shape(owner: Object) -> bool:
    """Whether the shape of an input is an array of integers."""
    shape = owner.get("shape")
    return isinstance(shape, list) and all(type(extent) is int for extent in shape)


def _convert_to_integer(value: object) -> object:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, bool | float) else value


signs_of_dimensions_dropped = steps.GET_SHAPE.before(
    "OIP-DIMENSION-NEGATIVE",
    owner=lambda owner: owner | {"shape": list(map(abs, owner["shape"]))},
    when=has_integer_shape,
).says("The server ignores the sign of a dimension.")
dimensions_read_as_numbers_of_any_kind = steps.GET_SHAPE.before(
    "OIP-MEMBER-MISSING",
    owner=lambda owner: owner | {"shape": list(map(_convert_to_integer, owner["shape"]))},
    when=lambda owner: isinstance(owner.get("shape"), list),
).says('The server accepts dimensions such as "3", 2.5 and true, and converts them to 3, 2 and 1.')
ragged_arrays_filled_with_zeros = steps.FLATTEN.before(
    "OIP-REFUSAL",
    data=lambda data, shape: [[*item, *[0] * (shape[1] - len(item))] for item in data],
    when=lambda data, shape: len(shape) == 2 and all(isinstance(item, list) and len(item) <= shape[1] for item in data),
).says("The server adds zeros to rows of nested JSON data that are too short.")


@fault(steps.GET_SHAPE, breaks="OIP-SIGNATURE-SAFE")
def negative_dimensions_read_as_one(original: Any, owner: Object) -> tuple[int, ...]:
    """The server reads a shape such as [-3] as [1], and keeps only the first element of JSON data."""
    if has_integer_shape(owner) and len(owner["shape"]) == 1 and owner["shape"][0] < 0:
        data = owner.get("data")
        owner.update({"shape": [1]} | ({"data": data[:1]} if isinstance(data, list) else {}))
    return original(owner)


@fault(steps.GET_SHAPE, steps.PARSE_OUTPUTS, breaks=("OIP-SIGNATURE-SAFE", "OIP-DIMENSION-NEGATIVE"))
def negative_dimensions_answered_without_outputs(original: Any, *arguments: Any) -> Any:
    """The server reads a dimension of -2 as 2, and its answer to such a request has no outputs."""
    request = arguments[-1]
    shape = request.get("shape")
    if isinstance(shape, list) and any(type(size) is int and size < 0 for size in shape):
        request.update(shape=[abs(size) for size in shape], was_negative=True)
    is_wrong = any(entry.get("was_negative") for entry in request.get("inputs") or ())
    return [] if is_wrong else original(*arguments)


# --- data and sizes ---------------------------------------------------------------------------------------------------

bytes_left_over_ignored = steps.REFUSE_SURPLUS.instead("BIN-BODY-LONG", lambda: None).says(
    "The server ignores bytes after the binary data that the inputs declare."
)


@fault(steps.PARSE_INPUT, breaks=("BIN-BODY-LONG-SAFE", "BIN-BODY-LONG"))
def last_input_takes_the_whole_tail(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """If a model has one input, the server reads surplus bytes after the binary data as additional elements."""
    size, width = get_size(entry), NUMPY[spec.datatype].itemsize
    if rest and type(size) is int and spec.shape == (-1,) and len(model.inputs) == 1 and spec.datatype != "BYTES":
        more, odd = divmod(len(get_remaining(rest)) - size, width)
        if more > 0 and not odd and entry["shape"] == [size // width]:
            entry = set_size(entry, size + more * width) | {"shape": [size // width + more]}
    return original(model, spec, entry, rest)


_spilled_bytes: list[bytes] = []


@fault(steps.PARSE_INPUTS, breaks=("BIN-BODY-LONG-SAFE", "BIN-BODY-LONG"))
def bytes_left_over_go_to_the_next_request(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server puts surplus bytes of a request before the binary data of the next request."""
    if rest is not None:
        declares = [get_size(entry) for entry in request.get("inputs") or [] if isinstance(entry, dict)]
        extra = len(get_remaining(rest)) - sum(size for size in declares if type(size) is int)
        data = b"".join(_spilled_bytes) + bytes(get_remaining(rest))
        _spilled_bytes[:] = [data[-extra:]] if 0 < extra < len(data) else []
        rest._remaining = memoryview(data[:-extra] if _spilled_bytes else data)
    return original(model, request, rest)


data_beside_its_bytes_ignored = steps.PARSE_INPUT.before(
    "BIN-DATA-AND-SIZE", entry=lambda entry: drop_members(entry, "data"), when=lambda entry: get_size(entry) is not None
).says("The server ignores `data` of an input that also declares binary data.")


def _has_both(entry: Object) -> bool:
    """Whether an input has `data` and binary_data_size."""
    return entry.get("data") is not None and get_size(entry) is not None


bytes_beside_data_left_to_the_next = reread_inputs(
    ("BIN-DATA-AND-SIZE-SAFE", "BIN-DATA-AND-SIZE"),
    lambda inputs, _: [set_size(entry, None) if _has_both(entry) else entry for entry in inputs],
).says("If an input has `data` and binary data, the server uses `data` and gives the bytes to the next input.")


def _has_neither(entry: Object) -> bool:
    """Whether an input has neither `data` nor binary_data_size."""
    return entry.get("data") is None and get_size(entry) is None


missing_data_taken_for_zeros = steps.PARSE_INPUT.before(
    ("OIP-REFUSAL", "BIN-SIZE-MISSING"),
    entry=lambda entry: entry | {"data": [0] * math.prod(entry["shape"])},
    when=lambda entry, spec, rest: (
        rest is None and spec.datatype == "INT32" and _has_neither(entry) and has_integer_shape(entry)
    ),
).says("If `data` of an INT32 input are missing or null and the request has no binary data, the server uses zeros.")
element_outside_of_an_array_fills_the_tensor = steps.DECODE_JSON.before(
    "OIP-REFUSAL", data=lambda data, shape: [data] * math.prod(shape), when=lambda data: type(data) in (int, str)
).says("If `data` are a number or a string instead of an array, the server fills the tensor with it.")
null_elements_taken_for_zero = steps.DECODE_JSON.before(
    "OIP-RANGE",
    data=lambda data, datatype: [("" if datatype == "BYTES" else 0) if item is None else item for item in data],
    when=lambda data: isinstance(data, list),
).says("The server reads null among the elements of JSON data as 0 or an empty string.")
strings_without_a_size_take_the_rest = steps.PARSE_INPUT.before(
    "BIN-SIZE-MISSING",
    entry=lambda entry, rest: set_size(entry, len(get_remaining(rest))),
    when=lambda entry, spec, rest: rest and spec.datatype == "BYTES" and _has_neither(entry),
).says("The server gives all remaining bytes to a BYTES input that has neither `data` nor binary_data_size.")


@fault(steps.PARSE_INPUTS, breaks=("BIN-SIZE-MISSING", "BIN-SIZE-MISSING-SAFE"))
def input_without_data_is_optional(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """If a numeric input has neither `data` nor binary_data_size, the server uses zeros and skips its bytes."""
    types = {spec.name: spec.datatype for spec in model.inputs}
    entries = request.get("inputs")
    for entry in entries if isinstance(entries, list) else []:
        datatype = types.get(str(entry.get("name")), "BYTES") if isinstance(entry, dict) else "BYTES"
        if datatype != "BYTES" and _has_neither(entry) and rest:
            size = count_native_bytes(datatype, entry["shape"])
            rest.take(size)
            rest._remaining = memoryview(bytes(size) + bytes(get_remaining(rest)))
            entry["parameters"] = {"binary_data_size": size}
    return original(model, request, rest)


@fault(steps.PARSE_INPUTS, breaks=("BIN-SIZE-MISSING-SAFE", "BIN-SIZE-MISSING"))
def input_without_a_size_takes_what_the_others_leave(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server gives undeclared bytes to a numeric input that has neither `data` nor binary_data_size."""
    entries = request.get("inputs") if rest is not None and has_named_inputs(request) else []
    bare = [e for e in entries or [] if _has_neither(e) and _is_numeric(e)]
    sizes = [get_size(entry) for entry in entries or [] if get_size(entry) is not None]
    if len(bare) != 1 or not all(type(size) is int and size >= 0 for size in sizes):
        return original(model, request, rest)
    left, at, parts = bytes(get_remaining(rest)), 0, []
    for entry in entries or []:
        size = get_size(entry) or 0
        parts.append(left[sum(sizes) :] if entry is bare[0] else left[at : at + size])
        at += size
    rest._remaining = memoryview(b"".join(parts))
    read = [set_size(e, len(left) - sum(sizes)) if e is bare[0] else e for e in entries or []]
    return original(model, request | {"inputs": read}, rest)


# --- duplicates -------------------------------------------------------------------------------------------------------


def drop_duplicates(entries: list[Object]) -> list[Object]:
    """Return inputs or outputs without entries that repeat an earlier name."""
    names = [entry.get("name") for entry in entries]
    return [entry for index, entry in enumerate(entries) if entry.get("name") not in names[:index]]


first_of_equal_inputs_taken = steps.PARSE_INPUTS.before(
    "OIP-TWICE",
    request=lambda request: request | {"inputs": drop_duplicates(request["inputs"])},
    when=lambda request: has_listed_objects(request, "inputs"),
).says("If a request repeats the name of an input, the server uses the first input of that name.")


@dataclass(frozen=True)
class _RepeatedOutput(RequestedOutput):
    """An output that was already requested."""


@fault(steps.PARSE_OUTPUTS, steps.ENCODE_OUTPUT, breaks=("OIP-TWICE-SAFE", "OIP-TWICE"))
def bytes_of_a_repeated_output_sent_once(original: Any, model: Model, asked: Any, tensor: Tensor | None = None) -> Any:
    """The server writes two JSON entries for an output that is requested twice, but sends the bytes once."""
    if tensor is not None:
        entry, data = original(model, asked, tensor)
        return entry, None if isinstance(asked, _RepeatedOutput) else data
    names = [entry.get("name") for entry in asked["outputs"]] if has_listed_objects(asked, "outputs") else []
    if len(names) == len(set(map(str, names))):
        return original(model, asked)
    once = drop_duplicates(asked["outputs"])
    requested = {output.name: output for output in original(model, asked | {"outputs": once})}
    return [
        _RepeatedOutput(**vars(requested[name])) if name in names[:index] else requested[name]
        for index, name in enumerate(names)
    ]


bytes_of_a_repeated_input_left_to_the_next = reread_inputs(
    ("OIP-TWICE-SAFE",), lambda inputs, _: drop_duplicates(inputs)
).says("The server skips a repeated binary input but not its bytes, which the next input reads.")

# --- types and names of members ---------------------------------------------------------------------------------------


def _drop_other_types(found: Object) -> Object:
    types = {"id": str, "parameters": dict, "outputs": list}
    return {name: value for name, value in found.items() if isinstance(value, types.get(name, object))}


members_of_another_type_taken_for_absent = steps.PARSE_OBJECT.after("OIP-MEMBER-MISSING", _drop_other_types).says(
    "The server ignores an `id`, `parameters` and `outputs` of another type than the protocol defines."
)
null_members_are_internal_errors = steps.PARSE_OBJECT.refuse(
    "OIP-ERROR-STATUS",
    lambda result: any(item.get("parameters", {}) is None for item in [result, *get_entries(result, "outputs")]),
    status=500,
).says("The server answers 500 if `parameters` of a request or an output are null.")


def _match_names(specs: Sequence[TensorSpec], entries: list[Object]) -> list[Object]:
    """Return inputs or outputs under the names of the model, found in any case; the last one of a name counts."""
    names = {spec.name.lower(): spec.name for spec in specs}
    matched = [entry | {"name": names.get(str(entry.get("name")).lower(), entry.get("name"))} for entry in entries]
    return list({str(entry["name"]): entry for entry in matched}.values()) if matched != entries else entries


inputs_found_in_any_case = steps.PARSE_INPUTS.before(
    ("OIP-REFUSAL", "OIP-SIGNATURE"),
    request=lambda request, model: request | {"inputs": _match_names(model.inputs, request["inputs"])},
    when=lambda request: has_listed_objects(request, "inputs"),
).says("The server ignores the case of the names of inputs, and uses the last input of a name.")
outputs_found_in_any_case = steps.PARSE_OUTPUTS.before(
    "OIP-REFUSAL",
    request=lambda request, model: request | {"outputs": _match_names(model.outputs, request["outputs"])},
    when=lambda request: has_listed_objects(request, "outputs"),
).says("The server ignores the case of the names of requested outputs.")
