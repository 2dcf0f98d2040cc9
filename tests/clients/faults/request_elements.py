"""Requests over HTTP that do not say what the caller meant, or whose elements as JSON are wrong."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Sequence
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.caller import CallerRequest, RefusedError, Tensor

INTEGERS = {"UINT8": 8, "UINT16": 16, "UINT32": 32, "UINT64": 64}


bool_as_number_in_json = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-BOOL-JSON", lambda found: [int(element) for element in found], datatypes="BOOL"
).says("True and false are written into the JSON as 1 and 0.")


@fault("request.json_elements", misses="CLIENT-SENDS-FP16")
def fp16_as_json(original: Original, tensor: Tensor) -> list[Any]:
    """FP16 and BF16 are sent as JSON."""
    if tensor.datatype in ("FP16", "BF16"):
        found = tensors.elements(tensor.datatype, tensor.data)
        return [element if math.isfinite(element) else 0.0 for element in found]
    return list(original(tensor))


uint8_sign_extended = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-VALUES CLIENT-SENDS-ELEMENTS",
    lambda found: [element if element < 128 else element - 256 + (1 << 32) for element in found],
    datatypes="UINT8",
).says("A UINT8 of 200 is sent as 4294967240.")


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES CLIENT-SENDS-ELEMENTS")
def unsigned_as_signed(original: Original, tensor: Tensor) -> list[Any]:
    """An unsigned integer with the highest bit set is sent as a negative one."""
    bits = INTEGERS.get(tensor.datatype)
    found = original(tensor)
    return list(found) if bits is None else [one - (1 << bits) if one >> (bits - 1) else one for one in found]


integers_of_64_bits_as_texts = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-ELEMENTS", lambda found: list(map(str, found)), datatypes="INT64 UINT64"
).says("A 64-bit integer is written into the JSON as a string, for readers whose numbers are doubles.")


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


floats_with_six_digits = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-VALUES", lambda found: [float(f"{one:.6g}") for one in found], datatypes="FP64"
).says("A float is written into the JSON with six digits.")


@fault("request.arranged", misses="CLIENT-SENDS-VALUES")
def nested_transposed(_original: Original, elements: list[Any], shape: Sequence[int]) -> list[Any]:
    """A matrix is nested column by column."""
    if len(shape) != 2 or not elements:
        return elements
    rows, columns = shape
    columns_first = [elements[row * columns + column] for column in range(columns) for row in range(rows)]
    return [columns_first[row * columns : (row + 1) * columns] for row in range(rows)]


last_element_left_out = steps.ARRANGED.instead("CLIENT-SENDS-DATA", lambda elements: elements[:-1]).says(
    "The last element of `data` is left out."
)
bytes_as_numbers = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-DATA", lambda found: [list(one.encode()) for one in found], datatypes="BYTES"
).says("An element of BYTES is sent as an array of numbers.")
bytes_as_base64 = steps.JSON_ELEMENTS.after(
    "CLIENT-SENDS-VALUES", lambda found: [base64.b64encode(one.encode()).decode() for one in found], datatypes="BYTES"
).says("An element of BYTES is sent in base64.")
latin_1_for_other_bytes = steps.JSON_ELEMENTS.instead(
    "CLIENT-SENDS-VALUES",
    lambda tensor: [one.decode("latin-1") for one in tensors.strings(tensor.data)],
    when=lambda tensor: tensor.datatype == "BYTES",
).says("BYTES that are no UTF-8 are sent as the text that they are in ISO 8859-1.")
scalar_as_one_element = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-VALUES", lambda said, tensor: {**said, "shape": list(tensor.shape) or [1]}
).says("A tensor of rank 0 is sent with the shape [1].")
batch_dimension_added = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-VALUES", lambda said, tensor: {**said, "shape": [1, *tensor.shape]}
).says("Every shape gets a batch dimension of 1.")


@fault("request.request", misses="CLIENT-SENDS-VALUES")
def empty_tensor_left_out(original: Original, asked: CallerRequest) -> Any:
    """An input without elements is left out."""
    inputs = tuple(tensor for tensor in asked.inputs if tensor.data)
    return original(CallerRequest(**{**vars(asked), "inputs": inputs}))


names_in_small_letters = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-VALUES", lambda said, tensor: {**said, "name": tensor.name.lower()}
).says("The name of an input is sent in small letters.")
int8_not_sent = steps.DESCRIBED_INPUT.fail(
    "CLIENT-SENDS-VALUES", RefusedError("unsupported datatype INT8"), when=lambda tensor: tensor.datatype == "INT8"
).says("An INT8 is an error of the client before anything is sent.")
bytes_not_sent = steps.DESCRIBED_INPUT.fail(
    "CLIENT-SENDS-VALUES",
    RefusedError("the datatype of the array does not match BYTES"),
    when=lambda tensor: tensor.datatype == "BYTES",
    datatypes="BYTES",
).says("A BYTES input is an error of the client before anything is sent.")
names_in_capitals = steps.DESCRIBED_INPUT.after(
    "CLIENT-SENDS-VALUES", lambda said, tensor: {**said, "name": tensor.name.upper()}
).says("The name of an input is sent in capital letters.")


@fault("request.json_elements", misses="CLIENT-SENDS-VALUES", datatypes="FP32 FP64")
def fp32_overflow_to_largest(_original: Original, tensor: Tensor) -> list[Any]:
    """NaN and infinity are sent as JSON, as the largest number."""
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    found = tensors.elements(tensor.datatype, tensor.data)
    return [one if math.isfinite(one) else math.copysign(largest, one) for one in found]
