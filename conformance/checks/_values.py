"""Values judged one side at a time, with the blame where it belongs: binary data here, JSON there."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import numpy as np

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

# How a request shows one side of binary data alone, or both where JSON cannot carry the values.
SIDES: dict[Side, dict[str, Any]] = {
    "read": {"send": "binary"},
    "written": {"send": "json", "want": "binary"},
    "both": {"send": "binary", "want": "binary"},
}


def expect_values(reply: Reply, model: Model, tensors: Sequence[Tensor], *, through_json: bool | None = None) -> None:
    """Expect the right outputs for the inputs."""
    with np.errstate(all="ignore"):  # a cast may meet NaN or overflow to infinity: that is the right output then
        expected = model.expected(tensors)
    expect(reply).tensors(expected, through_json=through_json)


def expect_side(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> None:
    """Expect the right outputs where one side is binary data and the other JSON, or both are binary data."""
    reply = target.infer(model.request(tensors, **SIDES[side]))
    expect_values(reply, model, tensors, through_json=True if side == "written" else None)


def expect_survival(target: Target, model: Model, tensors: Sequence[Tensor], side: Side) -> None:
    """Expect as `expect_side` values at the edge of what JSON carries.

    Where the outputs are wrong, JSON on both sides tells who is to blame: if that is right, the binary data are wrong;
    if it is wrong too, the server loses these values in JSON, and binary data on both sides decide.
    """
    try:
        expect_side(target, model, tensors, side)
    except Unmet:
        try:
            expect_values(target.infer(model.request(tensors, send="json")), model, tensors)
        except Unmet:
            expect_side(target, model, tensors, "both")
        else:
            raise


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
