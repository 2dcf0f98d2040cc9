"""Values judged apart from what other checks are about: byte order, and the JSON on the other side.

A server that swaps bytes is told so by the checks on byte order, for every datatype. Everywhere else its values count
as right when they are right in the other order: one fault, one requirement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Literal

import numpy as np

from conformance.compare import difference
from conformance.corners import PALINDROMES
from conformance.expect import expect
from conformance.outcome import Unmet
from conformance.roles import Model
from conformance.samples import sample_shape
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.tensor import Tensor

Side = Literal["read", "written", "both"]

# How a request shows one side of binary data alone (DESIGN rule 8), or both where JSON cannot carry the values.
SIDES: dict[Side, dict[str, Any]] = {
    "read": {"send": "binary"},
    "written": {"send": "json", "want": "binary"},
    "both": {"send": "binary", "want": "binary"},
}


# What may be asked of swapped inputs: where an input says how much to make, swapping it could ask for gigabytes.
_SWAPPABLE = frozenset({"identity", "cast", "length", "weighted_sum"})


def expect_values(reply: Reply, model: Model, tensors: Sequence[Tensor], *, through_json: bool | None = None) -> None:
    """Expect the right outputs for the inputs, in whichever byte order.

    Raises:
        Unmet: they are wrong in each.
    """
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        try:
            expect(reply).tensors(model.expected(tensors), through_json=through_json)
        except Unmet:
            if not any(_fits(reply, outputs, through_json) for outputs in _in_other_orders(model, tensors)):
                raise


def expect_side(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> None:
    """Expect the right outputs where one side is binary data and the other JSON, or both are binary data."""
    reply = target.infer(model.request(tensors, **SIDES[side]))
    expect_values(reply, model, tensors, through_json=True if side == "written" else None)


def expect_survival(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> None:
    """Expect as `expect_side` values at the edge of what JSON carries.

    Where the outputs are wrong, the JSON may be to blame: binary data on both sides then decide.
    """
    try:
        expect_side(target, model, tensors, side)
    except Unmet:
        expect_side(target, model, tensors, "both")


def in_one_order(model: Model) -> tuple[Tensor, ...]:
    """Return inputs that are the same tensors in either byte order; FP16 and BF16 are not among them."""
    return tuple(
        _filled(spec.name, spec.datatype, sample_shape(spec.shape, 2 if model.role.batching else None))
        for spec in model.role.inputs
    )


def _filled(name: str, datatype: str, shape: tuple[int, ...]) -> Tensor:
    count = prod(shape)
    if datatype == "BYTES":
        return Tensor.of(name, datatype, np.resize(np.array([b'q"\\', "é😀".encode(), b""], object), count), shape)
    if datatype == "BOOL":
        return Tensor.of(name, datatype, np.resize(np.array([True, False, False]), count), shape)
    dtype = DATATYPES[datatype].dtype
    bits = np.array(PALINDROMES[datatype], dtype=f"<u{dtype.itemsize}")
    return Tensor.of(name, datatype, np.resize(bits, count).view(dtype), shape)


def _fits(reply: Reply, outputs: Sequence[Tensor], through_json: bool | None) -> bool:
    answer = reply.answer
    return reply.succeeded and all(
        difference(tensor, answer.output(tensor.name), reply.body, through_json=through_json) is None
        for tensor in outputs
    )


def _in_other_orders(model: Model, tensors: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
    """Yield the outputs of a server that swaps the bytes of its outputs, of its inputs, and of both."""
    yield tuple(map(_swapped, model.expected(tensors)))
    if model.role.compute not in _SWAPPABLE:
        return
    swapped_inputs = model.expected([_swapped(tensor) for tensor in tensors])
    yield swapped_inputs
    yield tuple(map(_swapped, swapped_inputs))


def _swapped(tensor: Tensor) -> Tensor:
    size = DATATYPES[tensor.datatype].size
    if size is None or size == 1:
        return tensor
    array = np.ascontiguousarray(tensor.array).reshape(-1)
    swapped = array.view(f"u{size}").byteswap().view(array.dtype).reshape(tensor.shape)
    return Tensor(tensor.name, tensor.datatype, tensor.shape, swapped)
