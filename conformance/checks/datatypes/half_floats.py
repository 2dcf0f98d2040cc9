"""FP16 and BF16, judged with models that cast them to and from FP32, because JSON cannot represent them.

Casting a 16-bit float to FP32 and back is lossless, so that reading and writing are judged separately, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from conformance.checks.support.controls import (
    SIDES,
    Side,
    expect_outputs,
    expect_right,
    expect_side,
    is_right_alone,
    is_side_right,
)
from conformance.expect.unmet import BlockedError, UnmetError, block_if
from conformance.roles.corner_values import FLOAT_CORNERS, from_bits, get_bit_groups
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor


def make_half_float_rows(datatype: str) -> list[Row]:
    """Return a row for each group of corner values: the bits, and whether JSON can carry their values."""
    in_json = FLOAT_CORNERS[datatype]
    groups = [Row(group, (bits, group in in_json)) for group, bits in get_bit_groups(datatype).items()]
    return [*groups, Row("every", (range(2**16), False))]  # all bit patterns, including NaN


def _list_rows_of_casts(role: str, fp16: str, bf16: str) -> list[Row]:
    """Return rows of both datatypes: the pattern of their role, and the requirement of each."""
    return [
        replace(row, id=f"{name}-{row.id}", role=role.format(name.lower()), requirements=(requirement,))
        for name, requirement in (("FP16", fp16), ("BF16", bf16))
        for row in make_half_float_rows(name)
    ]


PART_ELEMENTS = 4096


@check("datatypes.half-floats-are-read", requirements=("BIN-DATATYPES-I", "BIN-BF16-I"))
@rows(*_list_rows_of_casts("cast_{}_fp32", "BIN-DATATYPES-I", "BIN-BF16-I"))
def half_floats_are_read(target: Target, model: Model, bits: Sequence[int], in_json: bool) -> None:
    """The server reads a binary FP16 input as IEEE 754 binary16, and a BF16 input as the upper half of FP32."""
    tensor = from_bits("INPUT", model.role.inputs[0].datatype, bits)
    _expect_half_float_cast(target, model, tensor, "read" if in_json else "both", tensor.array)


@check("datatypes.half-floats-are-written", requirements=("BIN-DATATYPES-O", "BIN-BF16-O"))
@rows(*_list_rows_of_casts("cast_fp32_{}", "BIN-DATATYPES-O", "BIN-BF16-O"))
def half_floats_are_written(target: Target, model: Model, bits: Sequence[int], in_json: bool) -> None:
    """The server writes a binary FP16 output as IEEE 754 binary16, and a BF16 output as the upper half of FP32."""
    halves = from_bits("INPUT", model.role.outputs[0].datatype, bits).array
    with np.errstate(invalid="ignore"):  # a signalling NaN
        tensor = model.tensor(halves.astype("<f4"))
    _expect_half_float_cast(target, model, tensor, "written" if in_json else "both", tensor.array)


@check("datatypes.fp16-survives", requirements=("BIN-DATATYPES-I", "BIN-DATATYPES-O"), role="identity_fp16")
@rows(*make_half_float_rows("FP16"))
def fp16_survives(target: Target, model: Model, bits: Sequence[int], _: bool) -> None:
    """The server changes no bit of FP16 elements, if inputs and outputs are binary data."""
    tensors = [from_bits("INPUT", "FP16", bits)]
    try:
        expect_right(target, model, tensors, **SIDES["both"])
    except UnmetError as unmet:
        if len(bits) > PART_ELEMENTS and _is_right_in_smaller_tensors(target, model, tensors[0]):
            unmet.requirement = "BIN-DATATYPES-I"  # only tensors of this size fail, whatever their datatype
        elif is_half_float_read_right(target, tensors[0], unmet):
            unmet.requirement = "BIN-DATATYPES-O"
        raise


def _is_right_in_smaller_tensors(target: Target, model: Model, tensor: Tensor) -> bool:
    """Say whether the server returns the elements unchanged if they are sent in smaller tensors."""
    parts = [tensor.array[start : start + PART_ELEMENTS] for start in range(0, tensor.elements, PART_ELEMENTS)]
    return all(is_side_right(target, model, [Tensor(tensor.name, "FP16", part.shape, part)], "both") for part in parts)


def is_half_float_read_right(target: Target, tensor: Tensor, unmet: UnmetError) -> bool:
    """Say whether the server casts the elements to FP32 correctly.

    The FP32 outputs are binary data. If they are wrong, the finite, nonzero elements are cast again, with JSON outputs.

    Raises:
        BlockedError: JSON can carry none of the elements, and the server returns FP32 elements with the same values wrongly.
    """
    casting = target.model(f"cast_{tensor.datatype.lower()}_fp32")
    if casting is None or is_side_right(target, casting, [tensor], "both"):
        return casting is not None
    numbers = tensor.array[np.isfinite(tensor.array) & (tensor.array != 0)]
    if numbers.size:
        return is_side_right(target, casting, [casting.tensor(numbers)], "read")
    if not is_fp32_right(target, tensor.array):
        raise BlockedError(FP32_ALSO_WRONG, unmet)
    return False


def _expect_half_float_cast(target: Target, model: Model, tensor: Tensor, side: Side, wide: NDArray[Any]) -> None:
    """Expect the correct result of a cast between a 16-bit float and FP32.

    Raises BlockedError: FP32 elements with the same values are wrong without a cast as well.
    """
    with block_if(lambda: side == "both" and not is_fp32_right(target, wide), FP32_ALSO_WRONG):
        expect_side(target, model, [tensor], side)


FP32_ALSO_WRONG = "FP32 elements with the same values are also wrong"


def is_fp32_right(target: Target, elements: NDArray[Any]) -> bool:
    """Say whether an identity model returns the same elements unchanged as FP32 binary data."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide = Tensor.from_values("INPUT", "FP32", elements.astype("<f4"))
    return is_right_alone(target, wide, "both")


_FP16 = frozenset({"FP16"})


def _build_fp16_json_request(model: Model, send: Literal["json", "binary"]) -> InferRequest:
    """Return a valid request to a deployed model, except that its FP16 tensors are JSON.

    These are the inputs if `send` is "json", else the outputs.
    """
    tensors = model.sample()
    halves = {tensor.name for tensor in tensors if tensor.datatype == "FP16"} if send == "json" else set()
    outputs = [
        RequestedOutput(spec.name, spec.name in model.binary_outputs and (send == "json" or spec.datatype != "FP16"))
        for spec in model.role.outputs
    ]
    # `Model.request`, not its override for deployed models: it can send as JSON what JSON cannot represent.
    return Model.request(model, tensors, send=set(model.binary_inputs) - halves, outputs=outputs)


@check("datatypes.fp16-in-json-is-refused-or-right", requirements="BIN-FP16-IN-JSON")
@rows(
    Row("sent-and-cast", ("json", None), role="cast_fp16_fp32"),
    Row("sent", ("json", "binary"), role="identity_fp16"),
    Row("asked-for-by-default", ("binary", None), role="identity_fp16"),
    Row("asked-for", ("binary", "json"), role="identity_fp16"),
    Row("cast-and-asked-for", ("json", "json"), role="cast_fp32_fp16"),
    Row("deployed-sent", ("json", None, True), fit=Fit(some_input=_FP16)),
    Row("deployed-asked-for", ("binary", "json", True), fit=Fit(outputs=_FP16)),
)
def fp16_in_json_is_refused_or_right(
    target: Target,
    model: Model,
    send: Literal["json", "binary"],
    want: Literal["json", "binary"] | None,
    own: bool = False,
) -> str:
    """The server refuses an FP16 tensor in JSON, or reads its numbers correctly."""
    if own:
        reply = target.infer(_build_fp16_json_request(model, send))
        return _expect_refused_or_right(model, model.sample(), reply)
    tensors = [model.tensor([1.5, -0.25, 1024.0, 0.0999755859375])]
    return _expect_refused_or_right(model, tensors, target.infer(model.request(tensors, send=send, want=want)))


def _expect_refused_or_right(model: Model, tensors: Sequence[Tensor], reply: Reply) -> str:
    """Expect a refusal or the correct values; return 'refused' or 'right'."""
    if reply.status is not None and reply.status >= 400:
        return "refused"
    expect_outputs(reply, model, tensors, is_json=True)
    return "right"
