"""Checks of gRPC: tensors in typed and in raw contents.

An identity model shows that a tensor comes back; models that compute (casts, lengths, sums by position) show that it
was read as it was meant, because a server that reads and writes in the same wrong way looks right through an identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from conformance.check import Row, check, rows
from conformance.checks._grpc import Form, answered_or_blocked, expect_right, over_grpc, returns
from conformance.corners import (
    BINARY_ONLY_CORNERS,
    FLOAT_CORNERS,
    INTEGER_CORNERS,
    OCTETS,
    TEXTS,
    corner_tensor,
    from_bits,
)
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.samples import sample_shape, sample_tensor
from conformance.target.grpc_door import Door
from conformance.wire.datatypes import INTEGERS
from conformance.wire.grpc_answer import response
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

PLAIN = (*INTEGERS, "FP32", "FP64")
KIB = 1024
CORNERS: dict[str, list[str]] = {
    datatype: [
        *{**INTEGER_CORNERS, **FLOAT_CORNERS}[datatype],
        *(BINARY_ONLY_CORNERS.get(datatype, ()) if datatype not in INTEGERS else ()),
    ]
    for datatype in PLAIN
}
# Roles of one tensor that show its layout, beside the identity of each datatype.
SHAPED = ("cast_int32_fp32", "weighted_sum", "rank2", "rank3", "rank4", "batching")
BOOLS = (("true", (True,)), ("false", (False,)), ("mixed", (True, False, False, True, True, False, True, False, False)))


def _identity(datatype: str) -> str:
    return f"identity_{datatype.lower()}"


def _numeric_rows() -> list[Row]:
    """Return the rows that both forms have: samples, corner values, booleans, shapes and sizes."""
    return [
        *[Row(datatype, role=_identity(datatype)) for datatype in PLAIN],
        *[
            Row(f"{datatype}-{group}", (group,), role=_identity(datatype), thorough=group == "single-bytes")
            for datatype, groups in CORNERS.items()
            for group in groups
        ],
        *[Row(f"BOOL-{name}", (values,), role="identity_bool") for name, values in BOOLS],
        *[Row(role, role=role) for role in SHAPED],
        Row("INT32-none", ((), (0,)), role="identity_int32"),
        Row("INT32-64KiB", (tuple(k * 7919 % 65_521 for k in range(16 * KIB)),), role="identity_int32"),
        Row("sum-of-100KB", (tuple(k * 7919 % 65_521 for k in range(25_000)), (250, 100)), role="weighted_sum"),
    ]


def _tensors(model: Model, what: str | Sequence[Any] | None, shape: Sequence[int] | None) -> Sequence[Tensor]:
    """Return samples, the corner values of a group, or given values."""
    if what is None:
        return _shifted(model)
    spec = model.role.inputs[0]
    if isinstance(what, str):
        return [corner_tensor(spec.name, spec.datatype, what)]
    return [model.tensor(list(what), shape)]


def _shifted(model: Model) -> Sequence[Tensor]:
    """Return the samples of a role, in a shape of different dimensions where they are variable."""
    if model.role.compute in ("emit", "table") or model.role.batching:
        return model.sample()
    return [
        sample_tensor(spec.name, spec.datatype, sample_shape(spec.shape), (model.salt + 7 * index) % 256)
        for index, spec in enumerate(model.role.inputs)
    ]


@check("grpc.raw-tensors-come-back", answers="GRPC-RAW")
@over_grpc
@rows(
    *_numeric_rows(),
    Row("UINT8-3MiB", (tuple(range(251)) * (3 * KIB * KIB // 251),), role="identity_uint8", thorough=True),
)
def raw_tensors_come_back(
    door: Door, model: Model, what: str | Sequence[Any] | None = None, shape: Sequence[int] | None = None
) -> None:
    """Elements in raw contents are of their native size, row by row and without padding."""
    _come_back(door, model, what, shape, "binary")


@check("grpc.typed-tensors-come-back", answers="GRPC-TYPED")
@over_grpc
@rows(
    *_numeric_rows(),
    *[Row(f"BYTES-{name}", (group,), role="identity_bytes") for name, group in {**TEXTS, **OCTETS}.items()],
    *[Row(f"length-{name}", (group,), role="string_length") for name, group in {**TEXTS, **OCTETS}.items()],
    *[Row(role, role=role) for role in ("add_sub", "emit", "multi")],
    Row("BYTES-rank-2", role="rank2_bytes"),
    Row("BYTES-none", ((), (0,)), role="identity_bytes"),
)
def typed_tensors_come_back(
    door: Door, model: Model, what: str | Sequence[Any] | None = None, shape: Sequence[int] | None = None
) -> None:
    """Elements in typed contents are in the field of their datatype, row by row."""
    _come_back(door, model, what, shape, "json")


def _come_back(door: Door, model: Model, what: Any, shape: Sequence[int] | None, send: Form) -> None:
    tensors = _tensors(model, what, shape)
    try:
        reply = returns(door, model, tensors, send)
    except Unmet as unmet:
        if _takes_none(door, model, tensors, unmet):
            return
        raise
    _in_their_fields(door, reply, send)


def _takes_none(door: Door, model: Model, tensors: Sequence[Tensor], unmet: Unmet) -> bool:
    """Whether a tensor without elements was refused in either form, which no document forbids."""
    if tensors[0].elements or unmet.reply is None or (unmet.reply.status or 0) < 400:
        return False
    return all((door.infer(model.request(tensors, send=form)).status or 0) >= 400 for form in ("json", "binary"))


def _in_their_fields(door: Door, reply: Any, send: Form) -> None:
    """Expect that typed outputs stand in the fields for their datatypes."""
    del door, send
    from conformance.wire.grpc_request import FIELDS

    message = response(reply.body)
    for entry in message.outputs if message is not None else ():
        filled = [field.name for field, _ in entry.contents.ListFields()]
        right = FIELDS.get(entry.datatype)
        if filled and filled != [right]:
            raise Unmet(
                f"{entry.datatype} in {right or 'raw contents'}",
                f"in {', '.join(filled)}",
                reply,
                requirement="GRPC-TYPED",
            )


@check("grpc.raw-strings-come-back", answers="GRPC-BYTES")
@over_grpc
@rows(
    *[Row(name, (group,), role="identity_bytes") for name, group in {**TEXTS, **OCTETS}.items()],
    *[Row(f"length-{name}", (group,), role="string_length") for name, group in {**TEXTS, **OCTETS}.items()],
    Row("none", ((), (0,)), role="identity_bytes"),
    Row("one-of-1MiB", ((b"s" * KIB * KIB,),), role="identity_bytes", thorough=True),
    Row("65536-empty", ((b"",) * 65_536,), role="identity_bytes", thorough=True),
)
def raw_strings_come_back(door: Door, model: Model, what: Sequence[bytes], shape: Sequence[int] | None = None) -> None:
    """A BYTES element in raw contents is its length in four bytes and then exactly its bytes."""
    _come_back(door, model, what, shape, "binary")


HALVES = {
    "ordinary": (0x3E00, 0xC100, 0x3400),
    "largest": (0x7BFF, 0xFBFF),
    "subnormal": (0x0001, 0x8001, 0x03FF),
    "zeros": (0x0000, 0x8000),
    "infinities": (0x7C00, 0xFC00),
}


@check("grpc.fp16-is-raw", answers="GRPC-FP16")
@over_grpc
@rows(
    *[Row(f"both-{name}", (bits,), role="identity_fp16") for name, bits in HALVES.items()],
    *[Row(f"read-{name}", (bits,), role="cast_fp16_fp32") for name, bits in HALVES.items()],
    *[Row(f"written-{name}", (bits,), role="cast_fp32_fp16") for name, bits in HALVES.items()],
)
def fp16_is_raw(door: Door, model: Model, bits: Sequence[int]) -> None:
    """FP16 elements in raw contents are IEEE 754 binary16."""
    _is_raw(door, model, from_bits("INPUT", "FP16", bits))


@check("grpc.bf16-is-raw", answers="GRPC-BF16")
@over_grpc
@rows(
    Row("both", role="identity_bf16"),
    Row("read", role="cast_bf16_fp32"),
    Row("written", role="cast_fp32_bf16"),
)
def bf16_is_raw(door: Door, model: Model) -> None:
    """BF16 elements in raw contents are the upper halves of FP32."""
    _is_raw(door, model, from_bits("INPUT", "BF16", (0x3FC0, 0xC020, 0x3E80)))


def _is_raw(door: Door, model: Model, short: Tensor) -> None:
    """Expect a model of 16-bit floats to get them right, and to answer them as raw contents."""
    (spec,) = model.role.inputs
    tensor = short if spec.datatype == short.datatype else Tensor.of("INPUT", "FP32", short.array.astype("<f4"))
    reply = door.infer(model.request([tensor], send="binary"))
    expect_right(reply, model, [tensor])
    for output in reply.answer.outputs:
        if output.datatype == short.datatype and not output.binary:
            raise Unmet(f"{output.datatype} as raw contents", "typed contents", reply)


# --- several tensors ---------------------------------------------------------------------------------------------------


@check("grpc.raw-entries-follow-the-inputs", answers="GRPC-ORDER-I")
@over_grpc
@rows(
    *[Row("-".join(map(str, order)), (order,), role="multi") for order in list(permutations(range(4)))[1::3]],
    Row("A-B", ((1, 0),), role="add_sub"),
)
def raw_entries_follow_the_inputs(door: Door, model: Model, order: Sequence[int]) -> None:
    """Raw entries belong to the inputs in the order of the request."""
    tensors = model.sample()
    listed = [tensors[k] for k in order]
    try:
        expect_right(door.infer(model.request(listed)), model, tensors)
    except Unmet:
        replies = [
            (right, door.infer(model.request(listed, outputs=[right.name]))) for right in model.expected(tensors)
        ]
        if not any(_differs(reply, right) for right, reply in replies):
            raise Blocked("each output by itself is right") from None
        wrong = [tensor.datatype for tensor in tensors if not _is_right_alone(door, tensor)]
        if wrong:
            raise Blocked(f"raw contents of {', '.join(wrong)} are wrong alone, too") from None
        raise


def _is_right_alone(door: Door, tensor: Tensor) -> bool:
    """Say whether the model that returns tensors of a datatype returns this one; yes where there is no such model."""
    model = door.target.model(_identity(tensor.datatype))
    alone = Tensor("INPUT", tensor.datatype, tensor.shape, tensor.array)
    return model is None or not any(
        _differs(door.infer(model.request([alone])), one) for one in model.expected([alone])
    )


@check("grpc.raw-entries-follow-the-outputs", answers="GRPC-ORDER-O")
@over_grpc
@rows(
    Row("none-listed", (None,), role="multi"),
    Row("declared", ((0, 1, 2, 3),), role="multi"),
    Row("reversed", ((3, 2, 1, 0),), role="multi"),
    Row("two", ((3, 1),), role="multi"),
    Row("sum-and-difference", (None,), role="add_sub"),
    Row("difference-first", ((1, 0),), role="add_sub"),
    Row("one", (None,), role="identity_int32"),
    Row("an-empty-one-first", (None, (0, 2)), role="emit"),
    Row("an-empty-one-last", (None, (2, 0)), role="emit"),
)
def raw_entries_follow_the_outputs(
    door: Door, model: Model, order: Sequence[int] | None, counts: Sequence[int] | None = None
) -> None:
    """An answer in raw contents has an entry for each output, in its own order of outputs."""
    tensors = model.sample() if counts is None else [model.tensor(list(counts))]
    listed = None if order is None else [model.role.outputs[k].name for k in order]
    reply = answered_or_blocked(door.infer(model.request(tensors, outputs=listed)))
    message = response(reply.body)
    entries = 0 if message is None else len(message.raw_output_contents)
    if message is not None and entries not in (0, len(message.outputs)):
        raise Unmet(f"{len(message.outputs)} raw entries, one for each output", f"{entries}", reply)
    if not entries:
        return  # typed contents, which stand in the outputs themselves
    right = [tensor for tensor in model.expected(tensors) if listed is None or tensor.name in listed]
    wrong = [tensor for tensor in right if _differs(reply, tensor)]
    if wrong and _is_wrong_alone(door, model, tensors, wrong[0]):
        raise Blocked(f"{wrong[0].name} is wrong without other outputs, too")
    expect(reply).tensors(right, through_json=False)


def _differs(reply: Any, tensor: Tensor) -> bool:
    try:
        expect(reply).tensors([tensor], through_json=False)
    except Unmet:
        return True
    return False


def _is_wrong_alone(door: Door, model: Model, tensors: Sequence[Tensor], tensor: Tensor) -> bool:
    return _differs(door.infer(model.request(tensors, outputs=[tensor.name])), tensor)


# --- the two forms -----------------------------------------------------------------------------------------------------


@check("grpc.answer-has-one-form", answers="GRPC-ONE-FORM")
@over_grpc
@rows(
    *[
        Row(f"{role}-{form}", (form,), role=role)
        for role in ("identity_int32", "identity_bytes", "multi")
        for form in ("json", "binary")
    ],
    Row("fp16", ("binary",), role="identity_fp16"),
    Row("classes-json", ("json", 2), role="scores", needs=("classification_grpc",)),
    Row("classes-binary", ("binary", 2), role="scores", needs=("classification_grpc",)),
    Row("classes-beside-a-tensor", ("json", 2), role="scores_two_outputs", needs=("classification_grpc",)),
)
def answer_has_one_form(door: Door, model: Model, send: Form, count: int | None = None) -> None:
    """An answer in raw contents has no typed contents."""
    first, *others = [spec.name for spec in model.role.outputs]
    wanted = None if count is None else [Output(first, classification=count), *map(Output, others)]
    reply = answered_or_blocked(door.infer(model.request(send=send, outputs=wanted)))
    message = response(reply.body)
    if message is not None and message.raw_output_contents:
        for entry in message.outputs:
            if entry.contents.ListFields():
                raise Unmet("raw contents or typed ones", f"raw contents, and {entry.name} in typed ones, too", reply)


EQUAL = ("BOOL", *PLAIN, "BYTES")


@check("grpc.forms-give-one-answer", answers="GRPC-EQ")
@over_grpc
@rows(
    *[Row(datatype, role=_identity(datatype)) for datatype in EQUAL],
    *[
        Row(role, role=role)
        for role in ("cast_int32_fp32", "string_length", "weighted_sum", "multi", "rank3", "batching")
    ],
)
def forms_give_one_answer(door: Door, model: Model) -> None:
    """The same tensors give the same outputs whether they come as typed or as raw contents."""
    tensors = model.sample()
    typed = answered_or_blocked(door.infer(model.request(tensors, send="json")))
    raw = answered_or_blocked(door.infer(model.request(tensors, send="binary")))
    usual = [
        Tensor(output.name, output.datatype, output.array.shape, output.array)
        for output in typed.answer.outputs
        if output.array is not None and not _is_unreadable(output.array)
    ]
    expect(raw).tensors(usual, through_json=False)


def _is_unreadable(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype == object and not all(isinstance(element, bytes) for element in array.flat)
