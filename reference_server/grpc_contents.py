"""The two encodings of a tensor in a gRPC message: typed `contents`, one field per family of datatypes, and raw bytes.

Raw contents have the layout of binary data. Typed contents correspond to JSON data over HTTP, except that BYTES may be
any bytes and floats may be NaN. Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from reference_server import tensors
from reference_server.errors import InferenceError
from reference_server.tensors import NUMPY, Tensor

SLICE = 64 * 1024  # elements that take a few milliseconds
Message = Any  # the generated classes have no types

# FP16 has no field, so it is sent only as raw bytes; so is BF16, which the document does not name.
FIELDS: Final[dict[str, str]] = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}

# The type of a field's elements, for fields shared by narrower datatypes.
FIELD_TYPES: Final[dict[str, str]] = {"int_contents": "INT32", "uint_contents": "UINT32"}


# --- typed contents --------------------------------------------------------------------------------------------------


def decode_typed(datatype: str, shape: tuple[int, ...], contents: Message) -> Tensor:
    """Read a tensor from an InferTensorContents.

    Raises InferenceError if the datatype has no field, another field is filled, the number of elements does not match
    the shape, or an element is out of the datatype's range.
    """
    if datatype not in FIELDS:
        raise InferenceError(f"{datatype} has no typed contents: send it in raw_input_contents")
    field = FIELDS[datatype]
    check_fields(datatype, field, [filled.name for filled, _ in contents.ListFields()])
    elements, count = getattr(contents, field), math.prod(shape)
    if len(elements) != count:
        raise InferenceError(f"contents.{field} has {len(elements)} elements, but shape {list(shape)} takes {count}")
    return Tensor(datatype, shape, convert_elements(datatype, field, elements))


def check_fields(datatype: str, field: str, filled: Iterable[str]) -> None:
    """Refuse contents in a field of other datatypes."""
    for other in filled:
        if other != field:
            raise InferenceError(f"contents.{other} is filled, but {datatype} takes contents.{field}")


def convert_elements(datatype: str, field: str, values: Any) -> NDArray[Any]:
    """Return the elements of a field as an array of the datatype's type."""
    if datatype == "BYTES":
        return tensors.make_objects(values)
    if datatype == FIELD_TYPES.get(field, datatype):
        return tensors.make_array(values, NUMPY[datatype])
    return narrow_integers(datatype, tensors.make_array(values, NUMPY[FIELD_TYPES[field]]))


def narrow_integers(datatype: str, elements: NDArray[Any]) -> NDArray[Any]:
    """Return the integers in the datatype's type; refuse an integer out of range instead of truncating it."""
    limits = np.iinfo(NUMPY[datatype])
    beyond = np.flatnonzero((elements < limits.min) | (elements > limits.max))
    if beyond.size:
        index = int(beyond[0])
        raise InferenceError(
            f"contents element {index} is {elements[index]}, expected an integer from {limits.min} to {limits.max}"
        )
    return elements.astype(NUMPY[datatype])


def encode_typed(tensor: Tensor) -> dict[str, list[Any]]:
    """Return the field of an InferTensorContents that holds a tensor, by name; the datatype must have such a field."""
    return {FIELDS[tensor.datatype]: tensor.elements.tolist()}


def fill_contents(contents: Message, fields: Mapping[str, list[Any]]) -> None:
    """Append elements to contents in slices, so that other threads can run in between."""
    contents.SetInParent()
    for field, values in fields.items():
        for at in range(0, len(values), SLICE):
            getattr(contents, field).extend(values[at : at + SLICE])


# --- raw contents ----------------------------------------------------------------------------------------------------


def decode_raw(datatype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    """Read a tensor from its entry of raw_input_contents.

    Raises InferenceError if the size does not match datatype and shape, or the bytes are not valid elements.
    """
    check_raw_size(datatype, shape, len(data))
    return tensors.decode_binary(datatype, shape, memoryview(data))


def check_raw_size(datatype: str, shape: tuple[int, ...], size: int) -> None:
    """Refuse raw contents of a wrong size, except BYTES: their size is checked when the length prefixes are read."""
    if datatype != "BYTES" and size != (expected := math.prod(shape) * NUMPY[datatype].itemsize):
        raise InferenceError(
            f"raw_input_contents has {size} bytes for the input, but shape {list(shape)} of {datatype} takes {expected}"
        )


def encode_raw(tensor: Tensor) -> bytes:
    """Return a tensor's entry of raw_output_contents."""
    return bytes(tensors.encode_binary(tensor))
