"""An inference request over gRPC: from a ModelInferRequest to the same tensors and requested outputs as over HTTP.

The server is as strict as over HTTP. It ignores the parameters `binary_data`, `binary_data_output` and
`binary_data_size`, which belong to HTTP. `classification` is the only parameter of an extension that it reads.

Sources: Open Inference Protocol, gRPC, "Inference"; Triton, Classification Extension, "GRPC".

The size of a message is checked before it is parsed: a few bytes of protobuf can cost much memory and time. Raw
contents do not count towards the limit, since protobuf stores them unchanged (Protocol Buffers, "Encoding").
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from reference_server import grpc_contents
from reference_server.errors import InferenceError, error_context, format_value
from reference_server.limits import get_limits
from reference_server.models import MAX_ELEMENTS, Model
from reference_server.request import InferRequest, RequestedOutput, join_names
from reference_server.tensors import Tensor, TensorSpec

Message = Any  # the generated classes have no types
Field = tuple[int, int]  # field number, and size of the value in bytes

RAW_INPUTS: Final = 7  # the number of the field raw_input_contents in a ModelInferRequest
MAX_UNCHECKED_BYTES: Final = 64 * 1024  # a message this small cannot cost much
PER_ENTRY: Final = 4  # fields allowed in a message for each entry of inputs; an entry needs two
TOO_LARGE: Final = 413
_VARINT, _FIXED_64, _DELIMITED, _FIXED_32 = 0, 1, 2, 5  # wire types
_SIZES: Final = {_FIXED_64: 8, _FIXED_32: 4}


def check_message(octets: bytes) -> None:
    """Refuse a message with too many fields, or with too many bytes outside raw contents."""
    if len(octets) <= MAX_UNCHECKED_BYTES:
        return
    outside, most = len(octets), PER_ENTRY * get_limits().entries
    for count, (number, size) in enumerate(read_fields(octets)):
        if count >= most:
            raise InferenceError(f"the message has more than {most} fields", status=TOO_LARGE)
        outside -= size if number == RAW_INPUTS else 0
    if outside > get_limits().json:
        raise InferenceError(
            f"the message has {outside} bytes outside raw contents, more than the limit of {get_limits().json}",
            status=TOO_LARGE,
        )


def check_elements(message: Message) -> None:
    """Refuse typed contents with too many elements."""
    count = sum(len(values) for entry in message.inputs for _, values in entry.contents.ListFields())
    if count > get_limits().elements:
        raise InferenceError(
            f"the contents have {count} elements, more than the limit of {get_limits().elements}", status=TOO_LARGE
        )


def read_fields(octets: bytes) -> Iterator[Field]:
    """Yield the fields of a message; for malformed bytes the result is arbitrary."""
    at = 0
    while at < len(octets):
        tag, at = read_varint(octets, at)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            size = read_varint(octets, at)[1] - at
        elif kind == _DELIMITED:
            size, at = read_varint(octets, at)
        else:
            size = _SIZES.get(kind, 0)
        yield tag >> 3, size
        at += size


def read_varint(octets: bytes, at: int) -> tuple[int, int]:
    """Read a varint (up to ten groups of seven bits, lowest first) at an offset; return its value and end offset."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(octets):
            break
        byte, at = octets[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at


# --- the request ------------------------------------------------------------------------------------------------------


def parse(model: Model, message: Message) -> InferRequest:
    """Read a request. Outputs are requested as binary data if the inputs arrive as raw bytes."""
    check_elements(message)
    inputs = parse_inputs(model, message)
    return InferRequest(message.id or None, inputs, parse_outputs(model, message))


def is_raw(message: Message) -> bool:
    """Say whether the tensors arrive as raw bytes: one raw entry decides for all of them."""
    return bool(message.raw_input_contents)


# --- inputs ----------------------------------------------------------------------------------------------------------


def parse_inputs(model: Model, message: Message) -> dict[str, Tensor]:
    """Read every input; raw contents follow the order of the request's inputs, not the declared order."""
    raw = list_raw_contents(message)
    declared = {spec.name: spec for spec in model.inputs}
    found: dict[str, Tensor] = {}
    for index, entry in enumerate(message.inputs):
        with error_context("inputs", index, entry.name):
            if entry.name not in declared:
                raise InferenceError(f"the model has no such input; it has {join_names(declared)}")
            if entry.name in found:
                raise InferenceError("the request has this input twice")
            found[entry.name] = parse_input(model, declared[entry.name], entry, raw[index])
    if missing := [name for name in declared if name not in found]:
        raise InferenceError(f"inputs: {join_names(missing)} missing")
    return found


def list_raw_contents(message: Message) -> list[bytes | None]:
    """Return the raw contents of each input; None for every input if the request has no raw contents."""
    count = len(message.inputs)
    if not is_raw(message):
        return [None] * count
    if len(message.raw_input_contents) != count:
        raise InferenceError(f"raw_input_contents has {len(message.raw_input_contents)} entries for {count} inputs")
    return list(message.raw_input_contents)


def parse_input(model: Model, spec: TensorSpec, entry: Message, raw: bytes | None) -> Tensor:
    """Read one input, from its raw contents or from its typed ones."""
    shape = parse_shape(entry)
    if entry.datatype != spec.datatype:
        raise InferenceError(f"datatype is {format_value(entry.datatype)}, but the model takes {spec.datatype}")
    model.check_shape(spec, shape)
    if math.prod(extent for extent in shape if extent) > MAX_ELEMENTS:
        raise InferenceError(f"shape is {list(shape)}, which is more than {MAX_ELEMENTS} elements")
    if raw is None:
        # An absent message is equivalent to one with an empty field: no elements, valid for a shape with a 0.
        if not entry.HasField("contents") and 0 not in shape:
            raise InferenceError("the input has no typed contents, and the request has no raw_input_contents")
        return grpc_contents.decode_typed(spec.datatype, shape, entry.contents)
    if entry.HasField("contents"):
        raise InferenceError("the input has typed contents, but the request also has raw_input_contents")
    return grpc_contents.decode_raw(spec.datatype, shape, raw)


def parse_shape(entry: Message) -> tuple[int, ...]:
    """Return the shape; refuse a negative dimension."""
    for axis, extent in enumerate(entry.shape):
        if extent < 0:
            raise InferenceError(f"shape[{axis}] must be an integer from 0 to 2^63 - 1, not {extent}")
    return tuple(entry.shape)


# --- outputs ---------------------------------------------------------------------------------------------------------


def parse_outputs(model: Model, message: Message) -> list[RequestedOutput]:
    """Return the requested outputs, or all outputs in declared order if the request lists none."""
    raw = is_raw(message)
    declared = [spec.name for spec in model.outputs]
    requested: dict[str, RequestedOutput] = {}
    for index, entry in enumerate(message.outputs):
        with error_context("outputs", index, entry.name):
            if entry.name not in declared:
                raise InferenceError(f"the model has no such output; it has {join_names(declared)}")
            if entry.name in requested:
                raise InferenceError("the request lists this output twice")
            requested[entry.name] = RequestedOutput(entry.name, raw, get_class_count(entry))
    return list(requested.values()) or [RequestedOutput(name, raw) for name in declared]


def get_class_count(entry: Message) -> int | None:
    """Return the `classification` parameter of a requested output, an int64_param of at least 1; None when absent."""
    if "classification" not in entry.parameters:  # reading an absent key of a map would add it
        return None
    parameter = entry.parameters["classification"]
    kind = parameter.WhichOneof("parameter_choice")
    if kind != "int64_param":
        raise InferenceError(f"parameters.classification must be an int64_param, not {kind or 'empty'}")
    count = int(parameter.int64_param)
    if count < 1:
        raise InferenceError(f"parameters.classification must be an integer of at least 1, not {count}")
    return count
