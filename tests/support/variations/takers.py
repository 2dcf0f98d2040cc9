"""Servers that take what others refuse, and take it rightly."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from reference_server.datatypes import NUMPY
from reference_server.faults import fault as variation
from reference_server.signature import TensorSpec
from reference_server.tensors import Tensor


@variation("request.parse_input", breaks="OIP-SIGNATURE")
def other_datatypes_are_converted(original: Any, model: Any, spec: TensorSpec, entry: Any, rest: Any) -> Tensor:
    """A numeric input of another datatype is read as what it says it is, and converted."""
    datatype = entry.get("datatype")
    if datatype not in NUMPY or "BYTES" in (datatype, spec.datatype) or datatype == spec.datatype:
        return original(model, spec, entry, rest)  # type: ignore[no-any-return]
    tensor: Tensor = original(model, replace(spec, datatype=datatype), entry, rest)
    return Tensor(spec.datatype, tensor.shape, tensor.elements.astype(NUMPY[spec.datatype]))


@variation("request.parse_input", breaks="OIP-SIGNATURE")
def other_shapes_are_reshaped(original: Any, model: Any, spec: TensorSpec, entry: Any, rest: Any) -> Tensor:
    """An input of as many elements as the model's fixed shape gets that shape; a missing batch dimension is put in."""
    shape = entry.get("shape")
    fixed = isinstance(shape, list) and all(type(extent) is int and extent >= 0 for extent in shape)
    if fixed and -1 not in spec.shape and math.prod(shape) == math.prod(spec.shape):
        entry = entry | {"shape": [1, *spec.shape] if model.batching else list(spec.shape)}
    tensor: Tensor = original(model, spec, entry, rest)
    return tensor


@variation("tensors.decode_json", breaks="OIP-RANGE")
def words_are_zero(original: Any, datatype: str, shape: tuple[int, ...], data: Any) -> Tensor:
    """A word among integers is 0, as a typed array of JavaScript has it; digits are the number that they are."""
    if "INT" in datatype and isinstance(data, list):
        data = [(int(item) if item.isdigit() else 0) if isinstance(item, str) else item for item in data]
    tensor: Tensor = original(datatype, shape, data)
    return tensor


@variation("request.parse_input", breaks="BIN-SIZE-MISSING")
def missing_sizes_are_worked_out(original: Any, model: Any, spec: TensorSpec, entry: Any, rest: Any) -> Tensor:
    """A binary input without a size takes as many bytes as its shape needs, or as its strings say."""
    sized = (entry.get("parameters") or {}).get("binary_data_size") is not None
    shape = entry.get("shape")
    if rest is not None and not sized and entry.get("data") is None and isinstance(shape, list):
        count = math.prod(shape)
        size = count * NUMPY[spec.datatype].itemsize if spec.datatype != "BYTES" else _of_strings(rest._left, count)
        entry = entry | {"parameters": {"binary_data_size": size}}
    tensor: Tensor = original(model, spec, entry, rest)
    return tensor


def _of_strings(data: memoryview, count: int) -> int:
    """Return how many bytes so many BYTES elements take."""
    at = 0
    for _ in range(count):
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    return at


@variation("request.parse_outputs", breaks="OIP-TWICE")
def outputs_listed_twice_come_twice(original: Any, model: Any, request: Any) -> Any:
    """An output that is listed twice is returned twice, each time as it is asked for."""
    listed = request.get("outputs")
    if not isinstance(listed, list):
        return original(model, request)
    return [wish for entry in listed for wish in original(model, request | {"outputs": [entry]})] or original(
        model, request
    )


@variation("request.parse_inputs", breaks="OIP-TWICE")
def last_of_equal_inputs_counts(original: Any, model: Any, request: Any, rest: Any) -> Any:
    """Of JSON inputs that have one name the last is taken."""
    inputs = request.get("inputs")
    if rest is None and isinstance(inputs, list) and all(isinstance(entry, dict) for entry in inputs):
        names = [entry.get("name") for entry in inputs]
        last = [entry for index, entry in enumerate(inputs) if entry.get("name") not in names[index + 1 :]]
        request = {**request, "inputs": last}
    return original(model, request, rest)
