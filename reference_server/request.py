"""An inference request: from header and body to tensors and wishes.

Strict: what the documents do not allow is refused, with a message that names the place, what stands there and what was
expected. Members and parameters that this server does not know are none of its business.

Sources: Open Inference Protocol, REST, "Inference"; Triton, Binary Tensor Data Extension and Classification Extension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reference_server import framing, members, raw, strict_json, tensors
from reference_server.errors import InferenceError, error_context, format_value
from reference_server.members import Object
from reference_server.models import MAX_ELEMENTS, Model
from reference_server.signature import TensorSpec
from reference_server.tensors import Tensor

NOT_JSON = 400


@dataclass(frozen=True)
class RequestedOutput:
    """One output to return: as binary data or JSON, as it is or as so many classes."""

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
    """Read a request; `header_values` are those of Inference-Header-Content-Length."""
    length = framing.json_length(header_values, len(body))
    if length == 0:
        return parse_raw(model, body)
    view = memoryview(body)
    json_part, rest = (view, None) if length is None else (view[:length], framing.BinaryData(view[length:]))
    request = parse_json(json_part, rest)
    identifier = None if request.get("id") is None else members.string(request, "id")
    tensors.encode_utf8(identifier or "", "id")
    inputs = parse_inputs(model, request, rest)
    return InferRequest(identifier, inputs, parse_outputs(model, request))


def parse_raw(model: Model, body: bytes) -> InferRequest:
    """Read a raw binary request: one input, every output as binary data, no id."""
    return InferRequest(
        None, raw.parse_body(model, body), [RequestedOutput(spec.name, binary=True) for spec in model.outputs]
    )


def parse_json(data: memoryview, rest: framing.BinaryData | None) -> Object:
    """Read the JSON; without the header a tail of binary data is the likeliest reason why it is none."""
    try:
        return strict_json.parse_object(data)
    except InferenceError as error:
        if rest is not None or error.status != NOT_JSON:
            raise
        hint = f"without {framing.HEADER} the whole body must be JSON; binary data need that header"
        raise InferenceError(f"{error.message} ({hint})") from None


# --- inputs --------------------------------------------------------------------------------------------------------


def parse_inputs(model: Model, request: Object, rest: framing.BinaryData | None) -> dict[str, Tensor]:
    """Read every input, in the order of the JSON: binary data lie in that order, whatever the model declares."""
    if request.get("inputs") is None:
        raise InferenceError("inputs is missing")
    declared = {spec.name: spec for spec in model.inputs}
    found: dict[str, Tensor] = {}
    for index, entry in enumerate(members.objects(request, "inputs")):
        with error_context("inputs", index):
            name = members.string(entry, "name")
        with error_context("inputs", index, name):
            if name not in declared:
                raise InferenceError(f"the model has no such input; it has {join_names(declared)}")
            if name in found:
                raise InferenceError("this input is given twice")
            found[name] = parse_input(model, declared[name], entry, rest)
    if missing := [name for name in declared if name not in found]:
        raise InferenceError(f"inputs: {join_names(missing)} missing")
    if rest is not None:
        rest.finish()
    return found


def parse_input(model: Model, spec: TensorSpec, entry: Object, rest: framing.BinaryData | None) -> Tensor:
    """Read one input, from JSON data or from the binary data that are next."""
    shape = members.shape(entry)
    datatype = members.string(entry, "datatype")
    if datatype != spec.datatype:
        raise InferenceError(f"datatype is {format_value(datatype)}, but the model takes {spec.datatype}")
    model.check_shape(spec, shape)
    if math.prod(extent for extent in shape if extent) > MAX_ELEMENTS:
        raise InferenceError(f"shape is {list(shape)}, which is more than {MAX_ELEMENTS} elements")
    size = members.whole(members.parameters(entry), "binary_data_size", least=0)
    data = entry.get("data")
    if size is None and data is None:
        raise InferenceError("has neither data nor parameters.binary_data_size")
    if size is None:
        return tensors.decode_json(datatype, shape, data)
    if data is not None:
        raise InferenceError("has both data and parameters.binary_data_size")
    if rest is None and size:
        raise InferenceError(f"parameters.binary_data_size needs the header {framing.HEADER}, which is not provided")
    tensors.check_size(datatype, shape, size)
    # The header is for binary data that are present, and the documents do not say whether no bytes are: both are taken.
    return tensors.decode_binary(datatype, shape, rest.take(size) if rest is not None else memoryview(b""))


# --- outputs -------------------------------------------------------------------------------------------------------


def parse_outputs(model: Model, request: Object) -> list[RequestedOutput]:
    """Read which outputs to return and how; all of them, in declared order, where none is listed."""
    default = members.flag(members.parameters(request), "binary_data_output")
    declared = [spec.name for spec in model.outputs]
    wishes: dict[str, RequestedOutput] = {}
    for index, entry in enumerate(members.objects(request, "outputs")):
        with error_context("outputs", index):
            name = members.string(entry, "name")
        with error_context("outputs", index, name):
            if name not in declared:
                raise InferenceError(f"the model has no such output; it has {join_names(declared)}")
            if name in wishes:
                raise InferenceError("this output is requested twice")
            given = members.parameters(entry)
            binary = output_form(members.flag(given, "binary_data"), default)
            wishes[name] = RequestedOutput(name, binary, members.whole(given, "classification", least=1))
    return list(wishes.values()) or [RequestedOutput(name, output_form(None, default)) for name in declared]


def output_form(binary_data: bool | None, binary_data_output: bool | None) -> bool:
    """Decide whether an output is returned as binary data.

    `binary_data` decides where it is given. Contested is an output that is listed without it under `binary_data_output:
    true`; Triton, Binary Tensor Data Extension, "Binary Tensor Request" can be read both ways:

    - `binary_data_output` is for all outputs unless `binary_data` on one overrides it: binary data;
    - `binary_data` that is not given on a listed output asks for JSON (as Triton and KServe answer).

    This server follows the first, the only one under which the request-level parameter means what it says.
    """
    return bool(binary_data_output if binary_data is None else binary_data)


def join_names(names: Sequence[str] | dict[str, TensorSpec]) -> str:
    """Return names for a message."""
    return ", ".join(f"'{name}'" for name in names)
