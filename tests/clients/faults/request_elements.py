"""Requests over HTTP that do not say what the caller meant, or whose elements as JSON are wrong."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Sequence
from typing import Any

from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RefusedError, Tensor

INTEGERS = {"UINT8": 8, "UINT16": 16, "UINT32": 32, "UINT64": 64}


@fault("request.json_elements", misses="CLIENT-SENDS-BOOL-JSON", datatypes="BOOL")
def bool_as_number_in_json(original: Original, tensor: Tensor) -> list[Any]:
    """True and false are written into the JSON as 1 and 0."""
    found = list(original(tensor))
    return [int(element) for element in found]


@fault("request.json_elements", misses="CLIENT-SENDS-FP16")
def fp16_as_json(original: Original, tensor: Tensor) -> list[Any]:
    """FP16 and BF16 are sent as JSON."""
    if tensor.datatype in ("FP16", "BF16"):
        found = tensors.elements(tensor.datatype, tensor.data)
        return [element if math.isfinite(element) else 0.0 for element in found]
    return list(original(tensor))


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES CLIENT-SENDS-ELEMENTS", datatypes="UINT8")
def uint8_sign_extended(original: Original, tensor: Tensor) -> list[Any]:
    """A UINT8 of 200 is sent as 4294967240."""
    found = original(tensor)
    return [element if element < 128 else element - 256 + (1 << 32) for element in found]


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES CLIENT-SENDS-ELEMENTS")
def unsigned_as_signed(original: Original, tensor: Tensor) -> list[Any]:
    """An unsigned integer with the highest bit set is sent as a negative one."""
    bits = INTEGERS.get(tensor.datatype)
    found = original(tensor)
    return list(found) if bits is None else [one - (1 << bits) if one >> (bits - 1) else one for one in found]


@fault("request.json_elements", misses="CLIENT-SENDS-ELEMENTS", datatypes="INT64 UINT64")
def integers_of_64_bits_as_texts(original: Original, tensor: Tensor) -> list[Any]:
    """A 64-bit integer is written into the JSON as a string, for readers whose numbers are doubles."""
    found = list(original(tensor))
    return list(map(str, found))


@fault("request.json_elements", misses="CLIENT-SENDS-ELEMENTS", datatypes="FP32 FP64")
def nan_as_text(_original: Original, tensor: Tensor) -> list[Any]:
    """NaN and infinity are written into the JSON as strings."""
    found = tensors.elements(tensor.datatype, tensor.data)
    return [one if math.isfinite(one) else str(one) for one in found]


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES")
def int64_through_a_double(original: Original, tensor: Tensor) -> list[Any]:
    """A 64-bit integer goes through a double on its way into the JSON."""
    found = original(tensor)
    return (
        [_within(int(float(one)), tensor) for one in found] if tensor.datatype in ("INT64", "UINT64") else list(found)
    )


def _within(number: int, tensor: Tensor) -> int:
    low, high = (-(1 << 63), (1 << 63) - 1) if tensor.datatype == "INT64" else (0, (1 << 64) - 1)
    return min(max(number, low), high)


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES", datatypes="FP64")
def floats_with_six_digits(original: Original, tensor: Tensor) -> list[Any]:
    """A float is written into the JSON with six digits."""
    found = original(tensor)
    return [float(f"{one:.6g}") for one in found]


@fault("request.arranged", misses="CLIENT-SENDS-VALUES")
def nested_transposed(_original: Original, elements: list[Any], shape: Sequence[int]) -> list[Any]:
    """A matrix is nested column by column."""
    if len(shape) != 2 or not elements:
        return elements
    rows, columns = shape
    columns_first = [elements[row * columns + column] for column in range(columns) for row in range(rows)]
    return [columns_first[row * columns : (row + 1) * columns] for row in range(rows)]


@fault("request.arranged", misses="CLIENT-SENDS-DATA")
def last_element_left_out(_original: Original, elements: list[Any], _shape: Sequence[int]) -> list[Any]:
    """The last element of `data` is left out."""
    return elements[:-1]


@fault("request.json_elements", misses="CLIENT-SENDS-DATA", datatypes="BYTES")
def bytes_as_numbers(original: Original, tensor: Tensor) -> list[Any]:
    """An element of BYTES is sent as an array of numbers."""
    found = original(tensor)
    return [list(one.encode()) for one in found]


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES", datatypes="BYTES")
def bytes_as_base64(original: Original, tensor: Tensor) -> list[Any]:
    """An element of BYTES is sent in base64."""
    found = original(tensor)
    return [base64.b64encode(one.encode()).decode() for one in found]


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES")
def latin_1_for_other_bytes(original: Original, tensor: Tensor) -> list[Any]:
    """BYTES that are no UTF-8 are sent as the text that they are in ISO 8859-1."""
    if tensor.datatype == "BYTES":
        return [one.decode("latin-1") for one in tensors.strings(tensor.data)]
    return list(original(tensor))


@fault("request.described_input", misses="CLIENT-SENDS-VALUES")
def scalar_as_one_element(original: Original, tensor: Tensor) -> dict[str, Any]:
    """A tensor of rank 0 is sent with the shape [1]."""
    return {**original(tensor), "shape": list(tensor.shape) or [1]}


@fault("request.described_input", misses="CLIENT-SENDS-VALUES")
def batch_dimension_added(original: Original, tensor: Tensor) -> dict[str, Any]:
    """Every shape gets a batch dimension of 1."""
    return {**original(tensor), "shape": [1, *tensor.shape]}


@fault("request.request", misses="CLIENT-SENDS-VALUES")
def empty_tensor_left_out(original: Original, asked: CallerRequest) -> Any:
    """An input without elements is left out."""
    inputs = tuple(tensor for tensor in asked.inputs if tensor.data)
    return original(CallerRequest(**{**vars(asked), "inputs": inputs}))


@fault("request.described_input", misses="CLIENT-SENDS-VALUES")
def names_in_small_letters(original: Original, tensor: Tensor) -> dict[str, Any]:
    """The name of an input is sent in small letters."""
    return {**original(tensor), "name": tensor.name.lower()}


@fault("request.described_input", misses="CLIENT-SENDS-VALUES")
def int8_not_sent(original: Original, tensor: Tensor) -> dict[str, Any]:
    """An INT8 is an error of the client before anything is sent."""
    if tensor.datatype == "INT8":
        raise RefusedError("unsupported datatype INT8")
    return dict(original(tensor))


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES", datatypes="FP32 FP64")
def fp32_overflow_to_largest(_original: Original, tensor: Tensor) -> list[Any]:
    """NaN and infinity are sent as JSON, as the largest number."""
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    found = tensors.elements(tensor.datatype, tensor.data)
    return [one if math.isfinite(one) else math.copysign(largest, one) for one in found]
