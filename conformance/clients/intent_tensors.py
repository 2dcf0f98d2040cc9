"""Compares the inputs of a client's request with the caller's tensors: names, datatypes, shapes, every element."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from conformance.clients.inference import Inference
from conformance.clients.rules.rule import Fault
from conformance.wire.datatypes import DATATYPES, FLOATS, INTEGERS
from conformance.wire.finding import format_name, format_value
from conformance.wire.json_data import flatten
from conformance.wire.orders import list_other_orders
from conformance.wire.outputs import Output
from conformance.wire.tensor import Array, Tensor, find_first_difference

VALUES: Final = "CLIENT-SENDS-VALUES"
MINUS_ZERO: Final = "CLIENT-SENDS-MINUS-ZERO"


class TensorFault(NamedTuple):
    """A difference between an input of a request and the caller's tensor.

    Attributes:
        is_about_elements: whether elements differ, rather than name, datatype or shape.
        requirement: the violated requirement, by its HTTP name.
    """

    fault: Fault
    is_about_elements: bool = False
    requirement: str = VALUES


def find_tensor_faults(
    inputs: Sequence[Output], inference: Inference, data: Mapping[int, Any], *, is_json: bool
) -> Iterator[TensorFault]:
    """Yield how the inputs of a request differ from the caller's tensors. The inputs may have any order.

    Compares elements bit by bit, except NaN; in JSON the sign of 0 is a requirement of its own. Yields nothing if an
    input has no name. `rules` reports missing names, unknown datatypes, and BOOL bytes other than 0 and 1.

    `data`: input index -> the input's elements as sent, for inputs that are not binary.
    `is_json`: whether the elements in `data` are JSON, rather than typed contents.
    """
    if not all(one.name for one in inputs):
        return
    wanted = {one.name: one for one in inference.inputs}
    given = {one.name: one for one in inputs}
    for name in sorted(wanted.keys() - given.keys()):
        yield TensorFault(Fault(f"an input {format_name(name)}", "no such input"))
    for name in sorted(given.keys() - wanted.keys()):
        yield TensorFault(Fault("only the caller's inputs", f"an input {format_name(name)}"))
    if len(given) != len(inputs):
        yield TensorFault(Fault("each input once", f"{len(inputs)} inputs with {len(given)} different names"))
    for one in inputs:
        if one.name in wanted:
            yield from _find_input_faults(one, wanted[one.name], data.get(one.index), is_json=is_json)


def _find_input_faults(one: Output, intended: Tensor, data: Any, *, is_json: bool) -> Iterator[TensorFault]:
    if one.datatype not in DATATYPES or any(finding.kind == "bool-byte" for finding in one.findings):
        return
    if one.datatype != intended.datatype:
        yield TensorFault(Fault(f"{intended.datatype} for {one.label}", format_value(one.datatype)))
    elif one.shape is not None and one.shape != intended.shape:
        yield TensorFault(Fault(f"{format_value(list(intended.shape))} for {one.label}", format_value(list(one.shape))))
    elif one.array is not None:
        is_number = is_json and not one.binary
        index = find_first_difference(intended.array, one.array, one.datatype, json=is_number)
        sign = find_first_difference(intended.array, one.array, one.datatype) if is_number and index is None else None
        if sign is not None:
            expected = f"{one.label} element {sign}: {_format_element(intended.array, sign)}"
            yield TensorFault(Fault(expected, _format_element(one.array, sign)), True, MINUS_ZERO)
        if index is not None:
            expected = f"{one.label} element {index}: {_format_element(intended.array, index)}"
            fault = Fault(expected, _format_element(one.array, index), None if one.span is None else one.span[0])
            is_swapped = one.binary and _is_big_endian(one.array, intended)
            yield TensorFault(fault, True, "CLIENT-SENDS-LITTLE-ENDIAN" if is_swapped else VALUES)
    elif isinstance(data, list) and not one.binary:
        yield from _find_element_faults(one, flatten(data, ()), intended)


def _is_big_endian(array: Array, intended: Tensor) -> bool:
    """Whether the elements of a request are the caller's elements in big-endian byte order."""
    if intended.datatype == "BYTES":
        return False
    swapped = array.view(f"u{array.dtype.itemsize}").byteswap().view(array.dtype)
    return find_first_difference(intended.array, swapped, intended.datatype) is None


def _find_element_faults(one: Output, elements: Sequence[Any], intended: Tensor) -> Iterator[TensorFault]:
    """Yield the first number that differs from the caller's element, in data that could not be decoded as a tensor.

    Skips strings and booleans among the elements: each server may convert them differently.
    """
    if intended.datatype not in (*INTEGERS, *FLOATS) or len(elements) != intended.array.size:
        return
    for index, (sent, number) in enumerate(zip(elements, intended.array.reshape(-1).tolist(), strict=True)):
        if type(sent) in (int, float) and not _is_rounded_equal(sent, number, intended):
            yield TensorFault(
                Fault(f"{one.label} element {index}: {_format_element(intended.array, index)}", format_value(sent)),
                True,
            )
            return


def _is_rounded_equal(sent: float, number: float, intended: Tensor) -> bool:
    """Whether a number of a request equals the caller's element after rounding to the datatype."""
    if intended.datatype in INTEGERS or not math.isfinite(number):
        return sent == number
    with np.errstate(over="ignore"), suppress(OverflowError):
        return bool(intended.array.dtype.type(sent) == number)
    return False


def _format_element(array: Array, index: int) -> str:
    """Format an element for a message: BYTES as escaped text, floats with their bits in hexadecimal digits."""
    value = array.reshape(-1)[index]
    if isinstance(value, bytes):
        return format_value(value.decode("ascii", "backslashreplace"))
    if value.dtype.kind in "fV":
        return f"{value} ({value.tobytes()[::-1].hex()})"
    return str(value)


def find_order_fault(data: bytes, binary: Sequence[Output], inference: Inference) -> Fault | None:
    """Return a fault if the binary data are in another order than the binary inputs; else None.

    `data`: the bytes after the JSON; over gRPC the concatenated raw contents.
    `binary`: the binary inputs, in the order of the JSON.
    """
    wanted = {one.name: one for one in inference.inputs}
    names = [one.name for one in binary]
    if len(names) < 2 or not all(name in wanted for name in names) or len(data) != _sum_sizes(names, wanted):
        return None
    parts = [bytes(wanted[name].to_bytes()) for name in names]
    if b"".join(parts) == data:
        return None
    for order in list_other_orders(names):
        if b"".join(parts[index] for index in order) == data:
            listed = ", ".join(format_name(name) for name in names)
            return Fault(f"binary data in the order {listed}", ", ".join(format_name(names[index]) for index in order))
    return None


def _sum_sizes(names: Sequence[str], wanted: dict[str, Tensor]) -> int:
    return sum(wanted[name].size for name in names)
