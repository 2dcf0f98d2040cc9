"""Every datatype in its native size: corner values, empty tensors, and large tensors."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from conformance.checks.support.changed_tensors import (
    WIDE_FLOATS,
    fill_floats_with_fractions,
    fill_floats_with_subnormals,
    fill_floats_with_zeros,
    round_floats,
    shift_elements,
)
from conformance.checks.support.controls import (
    ANY_DATATYPE,
    SIDES,
    Side,
    attribute_to_strings,
    expect_both_sides,
    expect_read,
    expect_right,
    expect_written,
    is_refused_as_json_too,
    is_right,
)
from conformance.checks.support.datatypes import KIB, PLAIN, get_identity_role, make_datatype_rows
from conformance.checks.support.deployed_models import require_json
from conformance.checks.support.inputs import (
    LARGE_COUNT,
    Change,
    InputsBuilder,
    make_empty_inputs,
    make_large_inputs,
    make_other_inputs,
    require_answer,
    sample_inputs,
)
from conformance.expect.unmet import BlockedError, UnmetError, block_if
from conformance.roles.corner_values import BINARY_ONLY_CORNERS, FLOAT_CORNERS, INTEGER_CORNERS, make_corner_tensor
from conformance.roles.model import Model
from conformance.roles.sample_values import PERIOD
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, OCTET_STREAM
from conformance.wire.tensor import Tensor


def get_first_datatype(model: Model) -> str:
    """Return the datatype of a model's first input."""
    return model.role.inputs[0].datatype


def _make_corner_row(datatype: str, group: str) -> Row:
    """Return a row with the corner values of a group, such as the limits of a datatype."""
    return Row(
        f"{datatype}-{group}", (lambda model: [_build_corner_tensor(model, group)],), get_identity_role(datatype)
    )


PLAIN_ROWS = (
    *make_datatype_rows(PLAIN),
    *[
        _make_corner_row(datatype, group)
        for datatype in PLAIN
        for group in {**INTEGER_CORNERS, **FLOAT_CORNERS}[datatype]
    ],
    Row("deployed", fit=ANY),
)


@check("datatypes.binary-inputs-are-read", requirements="BIN-DATATYPES-I")
@rows(
    *PLAIN_ROWS,
    Row(
        "deployed-fractions",
        (lambda model: fill_floats_with_fractions(model.sample()), round_floats),
        fit=Fit(some_input=WIDE_FLOATS),
    ),
    Row(
        "deployed-subnormals",
        (lambda model: fill_floats_with_subnormals(model.sample()), fill_floats_with_zeros),
        fit=Fit(some_input=WIDE_FLOATS),
    ),
)
def binary_inputs_are_read(
    target: Target, model: Model, build: InputsBuilder = sample_inputs, misread: Change | None = None
) -> None:
    """The server reads each element of a binary input in the native size of its datatype."""
    tensors = build(model)
    if misread is None:
        with attribute_to_strings(target, model, tensors):
            expect_read(target, model, tensors, make_other_inputs(model))
    else:
        require_answer(model, tensors)
        expect_read(target, model, tensors, misread(tensors), datatypes=WIDE_FLOATS)


@check("datatypes.binary-outputs-are-written", requirements="BIN-DATATYPES-O")
@rows(
    *PLAIN_ROWS,
    Row(
        "deployed-fractions",
        (lambda model: fill_floats_with_fractions(model.sample()), WIDE_FLOATS),
        fit=Fit(outputs=WIDE_FLOATS),
    ),
)
def binary_outputs_are_written(
    target: Target, model: Model, build: InputsBuilder = sample_inputs, datatypes: Collection[str] = ANY_DATATYPE
) -> None:
    """The server writes each element of a binary output in the native size of its datatype."""
    expect_written(target, model, build(model), datatypes=datatypes)


def _make_large_row(datatype: str, size: str, count: int, role: str = "") -> Row:
    """Return a row with a tensor of `count` elements."""
    return Row(
        f"{datatype}-{size}", (lambda model: [_build_large_tensor(model, count)],), role or get_identity_role(datatype)
    )


def _build_large_tensor(model: Model, count: int) -> Tensor:
    values = np.arange(count, dtype="<i8") % PERIOD * 7919
    return model.tensor(values % (251 if get_first_datatype(model) == "UINT8" else 65_521))


def _build_every_16_bit_value(model: Model) -> list[Tensor]:
    """Return each of the 65,536 values of a 16-bit integer."""
    every = np.arange(2**16, dtype="<u2")
    return [model.tensor(every.view("<i2" if get_first_datatype(model) == "INT16" else "<u2"))]


@check("datatypes.tensors-survive", requirements=("BIN-DATATYPES-I", "BIN-DATATYPES-O"))
@rows(
    *[_make_corner_row(datatype, group) for datatype in ("FP32", "FP64") for group in BINARY_ONLY_CORNERS[datatype]],
    *[Row(datatype, (_build_every_16_bit_value,), get_identity_role(datatype)) for datatype in ("UINT16", "INT16")],
    *[
        _make_large_row("UINT8", str(size), size)
        for size in (255, 256, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, KIB * KIB, KIB * KIB + 1)
    ],
    *[
        _make_large_row(datatype, size, count // width, role)
        for datatype, width, role in (("FP64", 8, ""), ("INT32-to-FP32", 4, "cast_int32_fp32"))
        for size, count in (("64KiB", 64 * KIB), ("1MiB", KIB * KIB))
    ],
)
def tensors_survive(target: Target, model: Model, build: InputsBuilder) -> None:
    """The server changes no bit of special values, 16-bit integers and tensors of up to 1 MiB, in both directions."""
    expect_both_sides(target, model, build(model), "BIN-DATATYPES-O")


def _build_corner_tensor(model: Model, group: str) -> Tensor:
    """Return the corner values of a group as the first input of a model."""
    spec = model.role.inputs[0]
    return make_corner_tensor(spec.name, spec.datatype, group)


# --- no elements, and many --------------------------------------------------------------------------------------------

EMPTY_ROWS = (
    Row("INT32", ([0],), role="identity_int32"),
    Row("FP64", ([0],), role="identity_fp64"),
    Row("INT32-no-rows", ([0, 3],), role="rank2"),
    Row("INT32-empty-rows", ([3, 0],), role="rank2"),
    Row("INT16-middle", ([2, 0, 3],), role="rank3"),
    Row("INT16-ends", ([0, 3, 0],), role="rank3"),
)


@check("datatypes.empty-inputs-are-read", requirements="BIN-DATATYPES-I")
@rows(
    *EMPTY_ROWS,
    Row("BOOL", ([0],), role="identity_bool"),
    Row("BYTES", ([0],), role="identity_bytes"),
    Row("deployed", (None,), fit=JSON),
)
def empty_inputs_are_read(target: Target, model: Model, shape: list[int] | None) -> str | None:
    """The server reads a binary input without elements from zero bytes."""
    require_json(model)
    plain = model.request(send="json").message().with_header("Content-Type", OCTET_STREAM)
    if not target.infer(plain.with_header(INFERENCE_HEADER, str(len(plain.body)))).succeeded:
        raise BlockedError("the server refuses every request whose inference header is the length of the body")
    if shape is None:
        tensors = make_empty_inputs(target, model)
        with block_if(lambda: not is_right(target, model, model.sample()), "nonempty inputs are also read wrongly"):
            expect_right(target, model, tensors)
        return None
    return _expect_empty_tensor_right(target, model, shape, "read")


@check("datatypes.empty-outputs-are-written", requirements="BIN-DATATYPES-O")
@rows(
    *EMPTY_ROWS,
    Row("BOOL", ([0],), role="identity_bool"),
    Row("BYTES", ([0],), role="identity_bytes", requirements=("BIN-BYTES-O", "BIN-DATATYPES-O")),
    Row("deployed", (None,), fit=JSON),
)
def empty_outputs_are_written(target: Target, model: Model, shape: list[int] | None) -> str | None:
    """The server writes a binary output without elements as zero bytes."""
    if shape is None:
        expect_written(target, model, make_empty_inputs(target, model))
        return None
    return _expect_empty_tensor_right(target, model, shape, "written")


def _expect_empty_tensor_right(target: Target, model: Model, shape: Sequence[int], side: Side) -> str | None:
    """Expect a correct answer to an empty tensor; return a note if the server also refuses the tensor as JSON."""
    tensors = [model.tensor([], shape)]
    try:
        expect_right(target, model, tensors, **SIDES[side])
    except UnmetError as unmet:
        if unmet.reply and unmet.reply.answer.find_by_kind("data-missing"):
            reason = "the output has neither data nor binary_data_size: the checks of area sizes judge this"
            raise BlockedError(reason, unmet) from None
        if not is_refused_as_json_too(target, model, tensors, unmet.reply):
            if _has_other_shape(unmet.reply, shape) and not is_right(target, model, tensors, **SIDES["neither"]):
                raise BlockedError("the shape is also wrong without binary data", unmet) from None
            raise
        return "refused, both as binary data and as JSON"
    return None


def _has_other_shape(reply: Reply | None, shape: Sequence[int]) -> bool:
    """Say whether an answer of an identity model has an output of another shape."""
    return reply is not None and any(output.shape not in (None, tuple(shape)) for output in reply.answer.outputs)


# One-dimensional integers usually index the tokens of a text, and models limit their number.
LARGE_DEPLOYED_ROW = Row("deployed-64KiB-and-one", (None,), fit=Fit(inputs=WIDE_FLOATS, is_variable=True))


@check("datatypes.large-inputs-are-read", requirements="BIN-DATATYPES-I")
@rows(
    Row("64KiB-less-one", (64 * KIB // 4 - 1,), role="weighted_sum"),
    Row("64KiB", (64 * KIB // 4,), role="weighted_sum"),
    Row("64KiB-and-one", (64 * KIB // 4 + 1,), role="weighted_sum"),
    Row("1MiB", (KIB * KIB // 4,), role="weighted_sum"),
    LARGE_DEPLOYED_ROW,
    Row("deployed-256KiB-and-one", (None, 64 * KIB + 1), fit=LARGE_DEPLOYED_ROW.fit),
)
def large_inputs_are_read(target: Target, model: Model, count: int | None, own_count: int = LARGE_COUNT) -> None:
    """The server reads a large binary input completely, with every element at its index."""
    if count is None:
        tensors = make_large_inputs(model, own_count)
    else:
        tensors = [model.tensor(np.arange(count, dtype="<i8") * 7919 % 65_521, [count, 1])]
    expect_read(target, model, tensors, shift_elements(tensors))


@check("datatypes.large-outputs-are-written", requirements="BIN-DATATYPES-O")
@rows(
    Row("40KB-of-numbers", ([10_000, 0], ("INT32",)), role="emit"),
    Row("89KB-of-strings", ([0, 10_000], ("BYTES",)), role="emit", requirements=("BIN-BYTES-O", "BIN-DATATYPES-O")),
    LARGE_DEPLOYED_ROW,
)
def large_outputs_are_written(
    target: Target, model: Model, counts: list[int] | None, datatypes: Collection[str] = ANY_DATATYPE
) -> None:
    """The server writes a large binary output completely, with every element at its index."""
    tensors = make_large_inputs(model) if counts is None else [model.tensor(counts)]
    expect_written(target, model, tensors, datatypes=datatypes)
