"""FP16 and BF16: read and written by models that cast, since JSON has neither. Checks of the area `datatypes`.

Casting between a 16-bit float and FP32 loses nothing where the values are those of the smaller one, so that one side
is seen alone and to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from conformance.check import Row, check, rows
from conformance.checks._values import expect_side, expect_survival, expect_values
from conformance.corners import FLOAT_CORNERS, bits_of, from_bits
from conformance.roles import Model
from conformance.target.target import Target


def half_rows(datatype: str) -> list[Row]:
    """Return a row for each group of corner values of a 16-bit float: its bit patterns, and whether JSON has them."""
    spoken = FLOAT_CORNERS[datatype]
    return [Row(group, (bits, group in spoken)) for group, bits in bits_of(datatype).items()]


EVERY = Row("every", (range(2**16), False), thorough=True)  # all bit patterns, NaN among them


@check("datatypes.fp16-is-read", answers=("BIN-ENC-FP16-I", "BIN-ENC-ALL-I"), role="cast_fp16_fp32")
@rows(*half_rows("FP16"), EVERY)
def fp16_is_read(target: Target, model: Model, bits: Sequence[int], spoken: bool) -> None:
    """A binary FP16 input is read as IEEE 754 binary16."""
    _half_is_read(target, model, bits, spoken)


@check("datatypes.fp16-is-written", answers=("BIN-ENC-FP16-O", "BIN-ENC-ALL-O"), role="cast_fp32_fp16")
@rows(*half_rows("FP16"), EVERY)
def fp16_is_written(target: Target, model: Model, bits: Sequence[int], spoken: bool) -> None:
    """A binary FP16 output is written as IEEE 754 binary16."""
    _half_is_written(target, model, bits, spoken)


@check("datatypes.fp16-survives", answers=("BIN-ENC-FP16-I", "BIN-ENC-FP16-O"), role="identity_fp16")
@rows(*half_rows("FP16"), EVERY)
def fp16_survives(target: Target, model: Model, bits: Sequence[int], _: bool) -> None:
    """FP16 elements come back from binary data as binary data, bit by bit."""
    expect_side(target, model, [from_bits("INPUT", "FP16", bits)], "both")


@check("datatypes.bf16-is-read", answers="BIN-ENC-BF16-I", role="cast_bf16_fp32")
@rows(*half_rows("BF16"), EVERY)
def bf16_is_read(target: Target, model: Model, bits: Sequence[int], spoken: bool) -> None:
    """A binary BF16 input is read as the upper half of FP32."""
    _half_is_read(target, model, bits, spoken)


@check("datatypes.bf16-is-written", answers="BIN-ENC-BF16-O", role="cast_fp32_bf16")
@rows(*half_rows("BF16"), EVERY)
def bf16_is_written(target: Target, model: Model, bits: Sequence[int], spoken: bool) -> None:
    """A binary BF16 output is written as the upper half of FP32."""
    _half_is_written(target, model, bits, spoken)


def _half_is_read(target: Target, model: Model, bits: Sequence[int], spoken: bool) -> None:
    tensor = from_bits("INPUT", model.role.inputs[0].datatype, bits)
    expect_survival(target, model, [tensor], "read" if spoken else "both")


def _half_is_written(target: Target, model: Model, bits: Sequence[int], spoken: bool) -> None:
    halves = from_bits("INPUT", model.role.outputs[0].datatype, bits).array
    with np.errstate(invalid="ignore"):  # a signalling NaN
        tensor = model.tensor(halves.astype("<f4"))
    expect_survival(target, model, [tensor], "written" if spoken else "both")


@check("datatypes.fp16-in-json-is-refused-or-right", answers="BIN-FP16-JSON")
@rows(
    Row("sent-and-cast", ("json", None), role="cast_fp16_fp32"),
    Row("sent", ("json", "binary"), role="identity_fp16"),
    Row("asked-for-by-default", ("binary", None), role="identity_fp16"),
    Row("asked-for", ("binary", "json"), role="identity_fp16"),
    Row("cast-and-asked-for", ("json", "json"), role="cast_fp32_fp16"),
)
def fp16_in_json_is_refused_or_right(
    target: Target, model: Model, send: Literal["json", "binary"], want: Literal["json", "binary"] | None
) -> str:
    """An FP16 tensor in JSON is refused, or has the right numbers."""
    tensors = [model.tensor([1.5, -0.25, 1024.0, 0.0999755859375])]
    reply = target.infer(model.request(tensors, send=send, want=want))
    if reply.status is not None and reply.status >= 400:
        return "refused"
    expect_values(reply, model, tensors, through_json=True)
    return "right"
