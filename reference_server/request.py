"""An inference request: from header and body to tensors and requested outputs.

The server is strict: it refuses anything that the documents do not allow, with a message that names the location, the
value and the expectation. It ignores unknown members and parameters. The body of a raw binary request is the model's
only input, without any JSON. For a BYTES input, the body is the only element, without a length prefix, as in Triton.

Sources: Open Inference Protocol, REST, "Inference"; Triton, Binary Tensor Data Extension and Classification Extension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reference_server import framing, members, strict_json, tensors
from reference_server.errors import InferenceError, error_context, format_value
from reference_server.members import Object
from reference_server.models import MAX_ELEMENTS, VARIABLE, Model
from reference_server.tensors import NUMPY, Tensor, TensorSpec

NOT_JSON = 400


@dataclass(frozen=True)
class RequestedOutput:
    """One output to return: as binary data or JSON, as the tensor itself or as `classes` classes."""

    name: str
    binary: bool
    classes: int | None = None


@dataclass(frozen=True)
class InferRequest:
    """All inputs of the model by name, and the outputs to return in this order."""

    id: str | None
    inputs: dict[str, Tensor]
    outputs: list[RequestedOutput]


def parse(model: Model, header_values: Sequence[str], body: bytes) -> InferRequest:
    """Read a request; `header_values` are the values of its headers Inference-Header-Content-Length."""
    length = framing.parse_json_length(header_values, len(body))
    if length == 0:
        return parse_raw(model, body)
    view = memoryview(body)
    json_part, rest = (view, None) if length is None else (view[:length], framing.BinaryData(view[length:]))
    request = parse_json(json_part, rest)
    identifier = None if request.get("id") is None else members.get_string(request, "id")
    tensors.encode_utf8(identifier or "", "id")
    inputs = parse_inputs(model, request, rest)
    return InferRequest(identifier, inputs, parse_outputs(model, request))


def parse_raw(model: Model, body: bytes) -> InferRequest:
    """Read a raw binary request: one input, every output as binary data, no id."""
    return InferRequest(
        None, parse_body(model, body), [RequestedOutput(spec.name, binary=True) for spec in model.outputs]
    )


def parse_json(data: memoryview, rest: framing.BinaryData | None) -> Object:
    """Parse the JSON; if invalid JSON comes without an inference header, add a hint about binary data to the error."""
    try:
        return strict_json.parse_object(data)
    except InferenceError as error:
        if rest is not None or error.status != NOT_JSON:
            raise
        hint = f"without {framing.HEADER} the whole body must be JSON; binary data need this header"
        raise InferenceError(f"{error.message} ({hint})") from None


# --- inputs --------------------------------------------------------------------------------------------------------


def parse_inputs(model: Model, request: Object, rest: framing.BinaryData | None) -> dict[str, Tensor]:
    """Read every input in the order of the JSON, which is the order of the binary data, not the declared order."""
    if request.get("inputs") is None:
        raise InferenceError("inputs is missing")
    declared = {spec.name: spec for spec in model.inputs}
    found: dict[str, Tensor] = {}
    for index, entry in enumerate(members.get_objects(request, "inputs")):
        with error_context("inputs", index):
            name = members.get_string(entry, "name")
        with error_context("inputs", index, name):
            if name not in declared:
                raise InferenceError(f"the model has no such input; it has {join_names(declared)}")
            if name in found:
                raise InferenceError("the request has this input twice")
            found[name] = parse_input(model, declared[name], entry, rest)
    if missing := [name for name in declared if name not in found]:
        raise InferenceError(f"inputs: {join_names(missing)} missing")
    if rest is not None:
        rest.refuse_surplus()
    return found


def parse_input(model: Model, spec: TensorSpec, entry: Object, rest: framing.BinaryData | None) -> Tensor:
    """Read one input, from JSON data or from the next binary data."""
    shape = members.get_shape(entry)
    datatype = members.get_string(entry, "datatype")
    if datatype != spec.datatype:
        raise InferenceError(f"datatype is {format_value(datatype)}, but the model takes {spec.datatype}")
    model.check_shape(spec, shape)
    if math.prod(extent for extent in shape if extent) > MAX_ELEMENTS:
        raise InferenceError(f"shape is {list(shape)}, which is more than {MAX_ELEMENTS} elements")
    size = members.get_integer(members.get_parameters(entry), "binary_data_size", minimum=0)
    data = entry.get("data")
    if size is None and data is None:
        raise InferenceError("the input has neither data nor parameters.binary_data_size")
    if size is None:
        return tensors.decode_json(datatype, shape, data)
    if data is not None:
        raise InferenceError("the input has both data and parameters.binary_data_size")
    if rest is None and size:
        raise InferenceError(f"parameters.binary_data_size needs the header {framing.HEADER}, which is missing")
    tensors.check_size(datatype, shape, size)
    # The header is for binary data. The documents do not say whether 0 bytes need it: both forms are accepted.
    return tensors.decode_binary(datatype, shape, rest.take(size) if rest is not None else memoryview(b""))


# --- outputs -------------------------------------------------------------------------------------------------------


def parse_outputs(model: Model, request: Object) -> list[RequestedOutput]:
    """Return the requested outputs, or all outputs in declared order if the request lists none."""
    default = members.get_flag(members.get_parameters(request), "binary_data_output")
    declared = [spec.name for spec in model.outputs]
    requested: dict[str, RequestedOutput] = {}
    for index, entry in enumerate(members.get_objects(request, "outputs")):
        with error_context("outputs", index):
            name = members.get_string(entry, "name")
        with error_context("outputs", index, name):
            if name not in declared:
                raise InferenceError(f"the model has no such output; it has {join_names(declared)}")
            if name in requested:
                raise InferenceError("the request lists this output twice")
            given = members.get_parameters(entry)
            binary = is_binary_output(members.get_flag(given, "binary_data"), default)
            requested[name] = RequestedOutput(name, binary, members.get_integer(given, "classification", minimum=1))
    return list(requested.values()) or [RequestedOutput(name, is_binary_output(None, default)) for name in declared]


def is_binary_output(binary_data: bool | None, binary_data_output: bool | None) -> bool:
    """Say whether to return an output as binary data.

    `binary_data` decides if present. If a request has `binary_data_output: true` and lists an output without
    `binary_data`, Triton, Binary Tensor Data Extension, "Binary Tensor Request" can be read in two ways:

    - The server returns binary data, since `binary_data_output` applies to every output without `binary_data`.
    - The server returns JSON, since a listed output without `binary_data` requests JSON. Triton and KServe do this.

    This server follows the first reading: only the first agrees with the text about `binary_data_output`.
    """
    return bool(binary_data_output if binary_data is None else binary_data)


def join_names(names: Sequence[str] | dict[str, TensorSpec]) -> str:
    """Return names, quoted and comma-separated, for a message."""
    return ", ".join(f"'{name}'" for name in names)


# --- a raw binary request --------------------------------------------------------------------------------------------


def parse_body(model: Model, body: bytes) -> dict[str, Tensor]:
    """Read the whole body as the model's input; a batching model gets a batch of one.

    Raises InferenceError if the model is not eligible or the body's size does not fit its shape.
    """
    if len(model.inputs) != 1:
        raise InferenceError(
            f"a raw binary request needs a model with one input; '{model.name}' has {len(model.inputs)}"
        )
    spec = model.inputs[0]
    with error_context(f"raw binary request, input '{spec.name}'"):
        if spec.datatype == "BYTES":
            shape, elements = get_bytes_shape(spec), tensors.make_objects([body])
        else:
            shape = deduce_shape(spec, len(body))
            elements = tensors.decode_binary(spec.datatype, shape, memoryview(body)).elements
    return {spec.name: Tensor(spec.datatype, (1, *shape) if model.batching else shape, elements)}


def get_bytes_shape(spec: TensorSpec) -> tuple[int, ...]:
    """Return the shape [1], the only one that a raw BYTES input may have."""
    if spec.shape != (1,):
        raise InferenceError(f"a BYTES input needs the declared shape [1], but the model has {list(spec.shape)}")
    return spec.shape


def deduce_shape(spec: TensorSpec, size: int) -> tuple[int, ...]:
    """Return the shape of a raw input of `size` bytes; a variable dimension is computed from the size."""
    if spec.shape.count(VARIABLE) > 1:
        raise InferenceError(f"the declared shape {list(spec.shape)} has more than one variable dimension")
    unit = NUMPY[spec.datatype].itemsize * math.prod(extent for extent in spec.shape if extent != VARIABLE)
    if VARIABLE not in spec.shape and size != unit:
        raise InferenceError(f"the body has {size} bytes, but shape {list(spec.shape)} of {spec.datatype} takes {unit}")
    if size % unit:
        raise InferenceError(
            f"the body has {size} bytes, but shape {list(spec.shape)} of {spec.datatype} takes a multiple of {unit}"
        )
    return tuple(size // unit if extent == VARIABLE else extent for extent in spec.shape)
