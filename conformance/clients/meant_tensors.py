"""Whether the inputs of a request are the tensors of its caller: names, datatypes, shapes, every element."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from conformance.clients.inference import Inference
from conformance.clients.rules.rule import Fault
from conformance.wire.datatypes import DATATYPES, FLOATS
from conformance.wire.finding import shown, shown_name
from conformance.wire.orders import other_orders
from conformance.wire.outputs import Output
from conformance.wire.tensor import Array, Tensor, first_difference

# `-0` is the number -0 to JSON, and the integer 0 to Python, which reads it.
_NEGATIVE_ZERO: Final = re.compile(rb"-0(?![0-9.eE])")


class TensorFault(NamedTuple):
    """A fault, and whether it is about elements; else it is about what the tensor is called or declared."""

    fault: Fault
    is_of_elements: bool = False


def value_faults(inputs: Sequence[Output], inference: Inference, text: bytes) -> Iterator[TensorFault]:
    """Yield how the inputs of a request differ from those of the caller, whatever their order; `text` is its JSON.

    Elements of binary data are compared byte by byte. Those of other forms are compared bit by bit, but for NaN.
    Inputs without a name, an unknown datatype, and BOOL of other bytes than 0 and 1 are left to the rules.
    """
    if not all(one.name for one in inputs):
        return
    wanted = {one.name: one for one in inference.inputs}
    given = {one.name: one for one in inputs}
    for name in sorted(wanted.keys() - given.keys()):
        yield TensorFault(Fault(f"an input {shown_name(name)}", "no such input"))
    for name in sorted(given.keys() - wanted.keys()):
        yield TensorFault(Fault("the inputs of the caller alone", f"an input {shown_name(name)}"))
    if len(given) != len(inputs):
        yield TensorFault(Fault("each input once", f"{len(inputs)} inputs of {len(given)} names"))
    keeps_sign = _NEGATIVE_ZERO.search(text) is None
    for one in inputs:
        if one.name in wanted:
            yield from _of_one(one, wanted[one.name], keeps_sign=keeps_sign)


def _of_one(one: Output, wanted: Tensor, *, keeps_sign: bool) -> Iterator[TensorFault]:
    if one.datatype not in DATATYPES or any(finding.kind == "bool-byte" for finding in one.findings):
        return
    if one.datatype != wanted.datatype:
        yield TensorFault(Fault(f"{wanted.datatype} for {one.label}", shown(one.datatype)))
    elif one.shape is not None and one.shape != wanted.shape:
        yield TensorFault(Fault(f"{shown(list(wanted.shape))} for {one.label}", shown(list(one.shape))))
    elif one.array is not None:
        index = _difference(one, one.array, wanted, keeps_sign=keeps_sign)
        if index is not None:
            expected = f"{one.label} element {index}: {_element(wanted.array, index)}"
            fault = Fault(expected, _element(one.array, index), None if one.span is None else one.span[0])
            yield TensorFault(fault, is_of_elements=True)


def _difference(one: Output, array: Array, wanted: Tensor, *, keeps_sign: bool) -> int | None:
    """Return the index of the first element that differs, or None."""
    if one.binary and wanted.datatype in (*FLOATS, "BF16"):
        bits = f"u{wanted.array.dtype.itemsize}"
        sent, meant = (np.ascontiguousarray(each).reshape(-1).view(bits) for each in (array, wanted.array))
        differs = np.flatnonzero(sent != meant)
        return int(differs[0]) if differs.size else None
    return first_difference(wanted.array, array, wanted.datatype, json=not one.binary and not keeps_sign)


def _element(array: Array, index: int) -> str:
    """Return an element for a message; BYTES as hex where they are no plain text, NaN with its bits."""
    value = array.reshape(-1)[index]
    if isinstance(value, bytes):
        return shown(value.decode("ascii", "backslashreplace"))
    if value.dtype.kind in "fV":
        return f"{value} ({value.tobytes()[::-1].hex()})"
    return str(value)


def order_fault(data: bytes, binary: Sequence[Output], inference: Inference) -> Fault | None:
    """Return that the caller's tensors stand in another order than the JSON lists them; None where they do not.

    Args:
        data: what follows the JSON; over gRPC all entries together.
        binary: the inputs that are binary data, in the order of the JSON.
        inference: what the caller asked for.
    """
    wanted = {one.name: one for one in inference.inputs}
    names = [one.name for one in binary]
    if len(names) < 2 or not all(name in wanted for name in names) or len(data) != _size(names, wanted):
        return None
    parts = [bytes(wanted[name].to_bytes()) for name in names]
    if b"".join(parts) == data:
        return None
    for order in other_orders(names):
        if b"".join(parts[place] for place in order) == data:
            listed = ", ".join(shown_name(name) for name in names)
            return Fault(f"the data of {listed}", ", ".join(shown_name(names[place]) for place in order))
    return None


def _size(names: Sequence[str], wanted: dict[str, Tensor]) -> int:
    return sum(wanted[name].size for name in names)
