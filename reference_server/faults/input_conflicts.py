"""Faults where the server accepts contradictory, incomplete or repeated inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from reference_server.faults import fault
from reference_server.faults.sizes import (
    count_native_bytes,
    get_binary_data_size,
    get_remaining,
    has_named_inputs,
    set_binary_data_size,
)
from reference_server.members import Object
from reference_server.models import Model
from reference_server.request import RequestedOutput
from reference_server.tensors import NUMPY, Tensor, TensorSpec

# --- datatypes and shapes ---------------------------------------------------------------------------------------------


@fault("request.parse_input", breaks="OIP-MEMBER-MISSING")
def datatype_taken_from_the_model(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server gives an input without a datatype the datatype of the model."""
    return original(model, spec, {"datatype": spec.datatype, **entry}, rest)


@fault("request.parse_input", breaks="OIP-MEMBER-MISSING")
def shape_taken_from_the_data(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server uses the length of `data` as the only dimension of an input without a shape."""
    data = entry.get("data")
    shaped = {"shape": [len(data)], **entry} if isinstance(data, list) else entry
    return original(model, spec, shaped, rest)


def _is_numeric(entry: Object) -> bool:
    return entry.get("datatype") in NUMPY and entry["datatype"] != "BYTES" and isinstance(entry.get("shape"), list)


@fault("request.parse_inputs", breaks=("OIP-SIGNATURE-SAFE", "OIP-SIGNATURE"))
def bytes_counted_by_the_models_datatype(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server reads a binary input of a wrong datatype with the datatype and size that the model declares."""
    if not has_named_inputs(request) or rest is None:
        return original(model, request, rest)
    specs = {spec.name: spec for spec in model.inputs}
    read = [_set_model_datatype(entry, specs.get(entry["name"])) for entry in request["inputs"]]
    if read != request["inputs"]:
        rest._remaining = get_remaining(rest)[: sum(get_binary_data_size(entry) or 0 for entry in read)]
    return original(model, request | {"inputs": read}, rest)


def _set_model_datatype(entry: Object, spec: TensorSpec | None) -> Object:
    """Return a binary input of a wrong datatype with the declared datatype and its size; others unchanged."""
    is_other = spec is not None and _is_numeric(entry) and spec.datatype not in ("BYTES", entry["datatype"])
    if spec is None or not is_other or get_binary_data_size(entry) is None:
        return entry
    return set_binary_data_size(entry, count_native_bytes(spec.datatype, entry["shape"])) | {"datatype": spec.datatype}


@fault("request.parse_input", breaks=("OIP-SIGNATURE-SAFE", "OIP-SIGNATURE"))
def exchanged_dimensions_transposed(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Tensor:
    """The server transposes an input whose dimensions are those of the model in reverse order."""
    shape = entry.get("shape")
    if not isinstance(shape, list) or tuple(shape[::-1]) != spec.shape or tuple(shape) == spec.shape:
        return original(model, spec, entry, rest)
    tensor: Tensor = original(model, spec, entry | {"shape": shape[::-1]}, rest)
    return replace(tensor, elements=tensor.elements.reshape(shape).T.reshape(-1))


@fault("request.parse_input", breaks="OIP-DIMENSION-NEGATIVE")
def minus_one_is_what_the_elements_make(
    original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any
) -> Tensor:
    """The server accepts -1 as a dimension and computes the dimension from the number of elements."""
    shape, size = entry.get("shape"), get_binary_data_size(entry)
    if isinstance(shape, list) and shape.count(-1) == 1 and spec.datatype != "BYTES":
        data = entry.get("data")
        count = len(data) if isinstance(data, list) else (size or 0) // NUMPY[spec.datatype].itemsize
        others = math.prod(extent for extent in shape if extent != -1)
        entry = entry | {"shape": [count // others if extent == -1 else extent for extent in shape]}
    return original(model, spec, entry, rest)


@fault("members.get_shape", breaks="OIP-DIMENSION-NEGATIVE")
def signs_of_dimensions_dropped(original: Any, owner: Object) -> tuple[int, ...]:
    """The server ignores the sign of a dimension."""
    shape = owner.get("shape")
    whole = isinstance(shape, list) and all(type(extent) is int for extent in shape)
    return original(owner | {"shape": [abs(extent) for extent in shape or []]} if whole else owner)


@fault("members.get_shape", breaks="OIP-MEMBER-MISSING")
def dimensions_read_as_numbers_of_any_kind(original: Any, owner: Object) -> tuple[int, ...]:
    """The server accepts dimensions such as "3", 2.5 and true, and converts them to 3, 2 and 1."""
    shape = owner.get("shape")
    if isinstance(shape, list):
        owner = owner | {"shape": [_convert_to_integer(extent) for extent in shape]}
    return original(owner)


def _convert_to_integer(value: object) -> object:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, bool | float) else value


@fault("tensors.flatten", breaks="OIP-REFUSAL")
def ragged_arrays_filled_with_zeros(original: Any, data: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The server adds zeros to rows of nested JSON data that are too short."""
    if len(shape) == 2 and all(isinstance(item, list) and len(item) <= shape[1] for item in data):
        data = [[*item, *[0] * (shape[1] - len(item))] for item in data]
    return original(data, shape)


@fault("members.get_shape", breaks="OIP-SIGNATURE-SAFE")
def negative_dimensions_read_as_one(original: Any, owner: Object) -> tuple[int, ...]:
    """The server reads a shape such as [-3] as [1], and keeps only the first element of JSON data."""
    shape = owner.get("shape")
    if isinstance(shape, list) and len(shape) == 1 and type(shape[0]) is int and shape[0] < 0:
        data = owner.get("data")
        owner.update({"shape": [1]} | ({"data": data[:1]} if isinstance(data, list) else {}))
    return original(owner)


@fault("members.get_shape", "request.parse_outputs", breaks=("OIP-SIGNATURE-SAFE", "OIP-DIMENSION-NEGATIVE"))
def negative_dimensions_answered_without_outputs(original: Any, *arguments: Any) -> Any:
    """The server reads a dimension of -2 as 2, and its answer to such a request has no outputs."""
    request = arguments[-1]
    shape = request.get("shape")
    if isinstance(shape, list) and any(type(size) is int and size < 0 for size in shape):
        request.update(shape=[abs(size) for size in shape], was_negative=True)
    is_wrong = any(entry.get("was_negative") for entry in request.get("inputs") or ())
    return [] if is_wrong else original(*arguments)


# --- data and sizes ---------------------------------------------------------------------------------------------------


@fault("framing.BinaryData.refuse_surplus", breaks="BIN-BODY-LONG")
def bytes_left_over_ignored(_original: Any, _rest: Any) -> None:
    """The server ignores bytes after the binary data that the inputs declare."""


@fault("request.parse_input", breaks=("BIN-BODY-LONG-SAFE", "BIN-BODY-LONG"))
def last_input_takes_the_whole_tail(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """If a model has one input, the server reads surplus bytes after the binary data as additional elements."""
    size, width = get_binary_data_size(entry), NUMPY[spec.datatype].itemsize
    if rest and type(size) is int and spec.shape == (-1,) and len(model.inputs) == 1 and spec.datatype != "BYTES":
        more, odd = divmod(len(get_remaining(rest)) - size, width)
        if more > 0 and not odd and entry["shape"] == [size // width]:
            entry = set_binary_data_size(entry, size + more * width) | {"shape": [size // width + more]}
    return original(model, spec, entry, rest)


_spilled_bytes: list[bytes] = []


@fault("request.parse_inputs", breaks=("BIN-BODY-LONG-SAFE", "BIN-BODY-LONG"))
def bytes_left_over_go_to_the_next_request(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server puts surplus bytes of a request before the binary data of the next request."""
    if rest is not None:
        declares = [get_binary_data_size(entry) for entry in request.get("inputs") or [] if isinstance(entry, dict)]
        extra = len(get_remaining(rest)) - sum(size for size in declares if type(size) is int)
        data = b"".join(_spilled_bytes) + bytes(get_remaining(rest))
        _spilled_bytes[:] = [data[-extra:]] if 0 < extra < len(data) else []
        rest._remaining = memoryview(data[:-extra] if _spilled_bytes else data)
    return original(model, request, rest)


@fault("request.parse_input", breaks="BIN-DATA-AND-SIZE")
def data_beside_its_bytes_ignored(original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any) -> Any:
    """The server ignores `data` of an input that also declares binary data."""
    plain = {name: value for name, value in entry.items() if name != "data"}
    return original(model, spec, entry if get_binary_data_size(entry) is None else plain, rest)


@fault("request.parse_inputs", breaks=("BIN-DATA-AND-SIZE-SAFE", "BIN-DATA-AND-SIZE"))
def bytes_beside_data_left_to_the_next(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """If an input has `data` and binary data, the server uses `data` and gives the bytes to the next input."""
    entries = request.get("inputs")
    if rest is None or not isinstance(entries, list):
        return original(model, request, rest)
    plain = [set_binary_data_size(e, None) if e.get("data") is not None else e for e in entries]
    if any(get_binary_data_size(e) is not None and e.get("data") is not None for e in entries):
        rest._remaining = get_remaining(rest)[: sum(get_binary_data_size(e) or 0 for e in plain)]
    return original(model, request | {"inputs": plain}, rest)


@fault("request.parse_input", breaks="BIN-SIZE-MISSING")
def strings_without_a_size_take_the_rest(
    original: Any, model: Model, spec: TensorSpec, entry: Object, rest: Any
) -> Any:
    """The server gives all remaining bytes to a BYTES input that has neither `data` nor binary_data_size."""
    neither = entry.get("data") is None and get_binary_data_size(entry) is None and rest and spec.datatype == "BYTES"
    return original(model, spec, set_binary_data_size(entry, len(get_remaining(rest))) if neither else entry, rest)


@fault("request.parse_inputs", breaks=("BIN-SIZE-MISSING", "BIN-SIZE-MISSING-SAFE"))
def input_without_data_is_optional(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """If a numeric input has neither `data` nor binary_data_size, the server uses zeros and skips its bytes."""
    types = {spec.name: spec.datatype for spec in model.inputs}
    entries = request.get("inputs")
    for entry in entries if isinstance(entries, list) else []:
        datatype = types.get(str(entry.get("name")), "BYTES") if isinstance(entry, dict) else "BYTES"
        if datatype != "BYTES" and entry.get("data") is None and get_binary_data_size(entry) is None and rest:
            size = count_native_bytes(datatype, entry["shape"])
            rest.take(size)
            rest._remaining = memoryview(bytes(size) + bytes(get_remaining(rest)))
            entry["parameters"] = {"binary_data_size": size}
    return original(model, request, rest)


@fault("request.parse_inputs", breaks=("BIN-SIZE-MISSING-SAFE", "BIN-SIZE-MISSING"))
def input_without_a_size_takes_what_the_others_leave(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server gives undeclared bytes to a numeric input that has neither `data` nor binary_data_size."""
    entries = request.get("inputs") if rest is not None and has_named_inputs(request) else []
    bare = [e for e in entries or [] if e.get("data") is None and get_binary_data_size(e) is None and _is_numeric(e)]
    sizes = [get_binary_data_size(entry) for entry in entries or [] if get_binary_data_size(entry) is not None]
    if len(bare) != 1 or not all(type(size) is int and size >= 0 for size in sizes):
        return original(model, request, rest)
    left, at, parts = bytes(get_remaining(rest)), 0, []
    for entry in entries or []:
        size = get_binary_data_size(entry) or 0
        parts.append(left[sum(sizes) :] if entry is bare[0] else left[at : at + size])
        at += size
    rest._remaining = memoryview(b"".join(parts))
    read = [set_binary_data_size(e, len(left) - sum(sizes)) if e is bare[0] else e for e in entries or []]
    return original(model, request | {"inputs": read}, rest)


# --- duplicates -------------------------------------------------------------------------------------------------------


def _drop_duplicates(entries: Any) -> Any:
    """Return inputs or outputs without entries that repeat an earlier name."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return entries
    names = [entry.get("name") for entry in entries]
    return [entry for index, entry in enumerate(entries) if entry.get("name") not in names[:index]]


@fault("request.parse_inputs", breaks="OIP-TWICE")
def first_of_equal_inputs_taken(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """If a request repeats the name of an input, the server uses the first input of that name."""
    inputs = request.get("inputs")
    return original(model, request | {"inputs": _drop_duplicates(inputs)} if inputs else request, rest)


@dataclass(frozen=True)
class _RepeatedOutput(RequestedOutput):
    """An output that was already requested."""


@fault("request.parse_outputs", "response.encode_output", breaks=("OIP-TWICE-SAFE", "OIP-TWICE"))
def bytes_of_a_repeated_output_sent_once(original: Any, model: Model, asked: Any, tensor: Tensor | None = None) -> Any:
    """The server writes two JSON entries for an output that is requested twice, but sends the bytes once."""
    if tensor is not None:
        entry, data = original(model, asked, tensor)
        return entry, None if isinstance(asked, _RepeatedOutput) else data
    listed = asked.get("outputs")
    is_sound_list = isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed)
    names = [entry.get("name") for entry in listed] if is_sound_list else []
    if len(names) == len(set(map(str, names))):
        return original(model, asked)
    once = [entry for index, entry in enumerate(listed) if names[index] not in names[:index]]
    requested = {output.name: output for output in original(model, asked | {"outputs": once})}
    return [
        _RepeatedOutput(**vars(requested[name])) if name in names[:index] else requested[name]
        for index, name in enumerate(names)
    ]


@fault("request.parse_inputs", breaks="OIP-TWICE-SAFE")
def bytes_of_a_repeated_input_left_to_the_next(original: Any, model: Model, request: Object, rest: Any) -> Any:
    """The server skips a repeated binary input but not its bytes, which the next input reads."""
    if not has_named_inputs(request) or rest is None:
        return original(model, request, rest)
    names = [entry["name"] for entry in request["inputs"]]
    once = [entry for index, entry in enumerate(request["inputs"]) if names[index] not in names[:index]]
    if len(once) < len(names):
        rest._remaining = get_remaining(rest)[: sum(get_binary_data_size(entry) or 0 for entry in once)]
    return original(model, request | {"inputs": once}, rest)
