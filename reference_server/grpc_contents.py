"""A tensor's two forms in a gRPC message: typed `contents`, one field for each family of datatypes, and raw bytes.

Raw contents are laid out as binary data are. Typed contents are what JSON is over HTTP, but here BYTES may be any bytes
and floats may be NaN. Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
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

# FP16 has no field, so it goes raw only; so does BF16, which the document does not name.
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

# What an element of a field may be, where the datatype may have less room.
FIELD_TYPES: Final[dict[str, str]] = {"int_contents": "INT32", "uint_contents": "UINT32"}


# --- typed contents --------------------------------------------------------------------------------------------------


def decode_typed(datatype: str, shape: tuple[int, ...], contents: Message) -> Tensor:
    """Read a tensor from an InferTensorContents.

    Raises InferenceError where the datatype has no field, another field is filled, the elements do not fill the shape,
    or one of them does not fit the datatype.
    """
    if datatype not in FIELDS:
        raise InferenceError(f"{datatype} has no typed contents: send it in raw_input_contents")
    field = FIELDS[datatype]
    check_fields(datatype, field, [filled.name for filled, _ in contents.ListFields()])
    elements, count = getattr(contents, field), math.prod(shape)
    if len(elements) != count:
        raise InferenceError(f"contents.{field} has {len(elements)} elements, but shape {list(shape)} takes {count}")
    return Tensor(datatype, shape, typed_elements(datatype, field, elements))


def check_fields(datatype: str, field: str, filled: Iterable[str]) -> None:
    """Refuse contents in a field that is for other datatypes."""
    for other in filled:
        if other != field:
            raise InferenceError(f"contents.{other} is filled, but {datatype} takes contents.{field}")


def typed_elements(datatype: str, field: str, values: Any) -> NDArray[Any]:
    """Return the elements of a field as the datatype's own type."""
    if datatype == "BYTES":
        return tensors.make_objects(values)
    if datatype == FIELD_TYPES.get(field, datatype):
        return read_in_slices(values, NUMPY[datatype])
    return narrowed(datatype, read_in_slices(values, NUMPY[FIELD_TYPES[field]]))


def read_in_slices(values: Any, kind: Any) -> NDArray[Any]:
    """Return the elements of a field, read a slice at a time: between them others have their turn."""
    elements = np.empty(len(values), kind)
    for at in range(0, len(values), SLICE):
        elements[at : at + SLICE] = values[at : at + SLICE]
    return elements


def narrowed(datatype: str, elements: NDArray[Any]) -> NDArray[Any]:
    """Return the elements in fewer bits; one that does not fit is refused, not cut."""
    limits = np.iinfo(NUMPY[datatype])
    beyond = np.flatnonzero((elements < limits.min) | (elements > limits.max))
    if beyond.size:
        index = int(beyond[0])
        raise InferenceError(
            f"contents element {index} is {elements[index]}, expected an integer {limits.min} to {limits.max}"
        )
    return elements.astype(NUMPY[datatype])


def encode_typed(tensor: Tensor) -> dict[str, list[Any]]:
    """Return the one field of an InferTensorContents that holds a tensor, for a datatype that has one."""
    return {FIELDS[tensor.datatype]: tensor.elements.tolist()}


def fill_contents(contents: Message, fields: Mapping[str, list[Any]]) -> None:
    """Put elements into contents, a slice at a time: between them others have their turn."""
    contents.SetInParent()
    for field, values in fields.items():
        for at in range(0, len(values), SLICE):
            getattr(contents, field).extend(values[at : at + SLICE])


# --- raw contents ----------------------------------------------------------------------------------------------------


def decode_raw(datatype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    """Read a tensor from its entry of raw_input_contents.

    Raises InferenceError where the size is not that of datatype and shape, or the bytes are no such elements.
    """
    check_raw_size(datatype, shape, len(data))
    return tensors.decode_binary(datatype, shape, memoryview(data))


def check_raw_size(datatype: str, shape: tuple[int, ...], size: int) -> None:
    """Refuse a number of bytes that the tensor cannot have; that of BYTES shows when its prefixes are read."""
    if datatype != "BYTES" and size != (expected := math.prod(shape) * NUMPY[datatype].itemsize):
        raise InferenceError(
            f"raw_input_contents has {size} bytes for it, but shape {list(shape)} of {datatype} takes {expected}"
        )


def encode_raw(tensor: Tensor) -> bytes:
    """Return a tensor's entry of raw_output_contents."""
    return bytes(tensors.encode_binary(tensor))
