"""Each datatype as binary data: read from requests, written to answers, and equal to its JSON form.

Each side is seen alone: a binary input shows in JSON outputs or in what a model computes, a binary
output follows JSON inputs. Values that JSON cannot carry (NaN, infinities, bytes that are no UTF-8) are binary data on
both sides. Byte order and the order of elements are judged in `bytes`; the checks of 16-bit floats, which are part of
this module, stand in `_half_floats`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance import blame
from conformance.check import Row, check, rows
from conformance.checks._explore import explore
from conformance.checks._half_floats import bf16_is_read as bf16_is_read
from conformance.checks._half_floats import bf16_is_written as bf16_is_written
from conformance.checks._half_floats import fp16_in_json_is_refused_or_right as fp16_in_json_is_refused_or_right
from conformance.checks._half_floats import fp16_is_read as fp16_is_read
from conformance.checks._half_floats import fp16_is_written as fp16_is_written
from conformance.checks._half_floats import fp16_survives as fp16_survives
from conformance.checks._values import (
    Side,
    expect_return,
    expect_side,
    expect_survival,
    in_one_order,
    takes_none,
)
from conformance.corners import BINARY_ONLY_CORNERS, FLOAT_CORNERS, INTEGER_CORNERS, OCTETS, TEXTS, corner_tensor
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.strategies import tensors as drawn_tensors
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.wire.datatypes import INTEGERS
from conformance.wire.request import INFERENCE_HEADER, OCTET_STREAM
from conformance.wire.tensor import Tensor

# Datatypes whose size is all that is said of them: BOOL, FP16 and BYTES have requirements of their own.
PLAIN = (*INTEGERS, "FP32", "FP64")
SPOKEN_IN_JSON = ("BOOL", *PLAIN, "BYTES")


def identity(datatype: str) -> str:
    """Return the name of the role that returns tensors of a datatype as they are."""
    return f"identity_{datatype.lower()}"


def per_datatype(datatypes: Sequence[str]) -> list[Row]:
    """Return a row for each datatype, with its identity role."""
    return [Row(datatype, role=identity(datatype)) for datatype in datatypes]


# --- every datatype in its native size --------------------------------------------------------------------------------


@check("datatypes.binary-inputs-are-read", answers="BIN-ENC-ALL-I")
@rows(*per_datatype(PLAIN))
def binary_inputs_are_read(target: Target, model: Model) -> None:
    """A binary input holds each element in the native size of its datatype."""
    expect_survival(target, model, model.sample(), "read")


@check("datatypes.binary-outputs-are-written", answers="BIN-ENC-ALL-O")
@rows(*per_datatype(PLAIN))
def binary_outputs_are_written(target: Target, model: Model) -> None:
    """A binary output holds each element in the native size of its datatype."""
    expect_survival(target, model, model.sample(), "written")


CORNERS = [
    Row(f"{datatype}-{group}", (group,), role=identity(datatype))
    for datatype in PLAIN
    for group in {**INTEGER_CORNERS, **FLOAT_CORNERS}[datatype]
]


@check("datatypes.corner-values-are-read", answers="BIN-ENC-ALL-I")
@rows(*CORNERS)
def corner_values_are_read(target: Target, model: Model, group: str) -> None:
    """A binary input keeps every value of its datatype, the largest and smallest among them."""
    expect_survival(target, model, [_corner(model, group)], "read")


@check("datatypes.corner-values-are-written", answers="BIN-ENC-ALL-O")
@rows(*CORNERS)
def corner_values_are_written(target: Target, model: Model, group: str) -> None:
    """A binary output keeps every value of its datatype, the largest and smallest among them."""
    expect_survival(target, model, [_corner(model, group)], "written")


@check("datatypes.values-beyond-json-survive", answers=("BIN-ENC-ALL-I", "BIN-ENC-ALL-O"))
@rows(
    *[
        Row(f"{datatype}-{group}", (group,), role=identity(datatype))
        for datatype in ("FP32", "FP64")
        for group in BINARY_ONLY_CORNERS[datatype]
    ]
)
def values_beyond_json_survive(target: Target, model: Model, group: str) -> None:
    """Signed zeros, infinities, NaN and the extremes come back from binary data as binary data."""
    expect_return(target, model, [_corner(model, group)], "BIN-ENC-ALL-O")


@check("datatypes.every-16-bit-value-survives", answers=("BIN-ENC-ALL-I", "BIN-ENC-ALL-O"))
@rows(*[Row(datatype, role=identity(datatype), thorough=True) for datatype in ("UINT16", "INT16")])
def every_16_bit_value_survives(target: Target, model: Model) -> None:
    """Each of the 65 536 values of a 16-bit integer comes back from binary data as binary data."""
    every = np.arange(2**16, dtype="<u2")
    tensors = [model.tensor(every.view("<i2" if _datatype(model) == "INT16" else "<u2"))]
    expect_return(target, model, tensors, "BIN-ENC-ALL-O")


def _datatype(model: Model) -> str:
    return model.role.inputs[0].datatype


def _corner(model: Model, group: str) -> Tensor:
    spec = model.role.inputs[0]
    return corner_tensor(spec.name, spec.datatype, group)


# --- no elements, and many --------------------------------------------------------------------------------------------

EMPTY = (
    Row("INT32", ([0],), role="identity_int32"),
    Row("FP64", ([0],), role="identity_fp64"),
    Row("INT32-no-rows", ([0, 3],), role="rank2"),
    Row("INT32-empty-rows", ([3, 0],), role="rank2"),
    Row("INT16-middle", ([2, 0, 3],), role="rank3"),
)


@check("datatypes.empty-inputs-are-read", answers="BIN-ENC-ALL-I")
@rows(
    *EMPTY,
    Row("BOOL", ([0],), role="identity_bool"),
    Row("BYTES", ([0],), role="identity_bytes"),
)
def empty_inputs_are_read(target: Target, model: Model, shape: list[int]) -> str | None:
    """A binary input without elements is zero bytes."""
    plain = model.request(send="json").message().with_header("Content-Type", OCTET_STREAM)
    if not target.infer(plain.with_header(INFERENCE_HEADER, str(len(plain.body)))).succeeded:
        raise Blocked("an inference header that equals the length of the body is refused in any request")
    return _expect_empty(target, model, shape, "read")


@check("datatypes.empty-outputs-are-written", answers="BIN-ENC-ALL-O")
@rows(
    *EMPTY,
    Row("BOOL", ([0],), role="identity_bool"),
    Row("BYTES", ([0],), role="identity_bytes", answers=("BIN-ENC-BYTES-O", "BIN-ENC-ALL-O")),
)
def empty_outputs_are_written(target: Target, model: Model, shape: list[int]) -> str | None:
    """A binary output without elements is zero bytes."""
    return _expect_empty(target, model, shape, "written")


def _expect_empty(target: Target, model: Model, shape: Sequence[int], side: Side) -> str | None:
    """Expect an empty tensor right, unless the server takes none in any form."""
    tensors = [model.tensor([], shape)]
    try:
        expect_side(target, model, tensors, side)
    except Unmet as unmet:
        if unmet.reply and unmet.reply.answer.of_kind("data-missing"):
            raise Blocked("the output has neither data nor binary_data_size, which is judged with the sizes") from None
        if not takes_none(target, model, tensors, unmet.reply):
            raise
        return "refused, as in plain JSON"
    return None


KIB = 1024


@check("datatypes.large-inputs-are-read", answers="BIN-ENC-ALL-I", role="weighted_sum")
@rows(
    ("64KiB-less-one", 64 * KIB // 4 - 1),
    ("64KiB", 64 * KIB // 4),
    ("64KiB-and-one", 64 * KIB // 4 + 1),
    Row("1MiB", (KIB * KIB // 4,), thorough=True),
)
def large_inputs_are_read(target: Target, model: Model, count: int) -> None:
    """A large binary input is read whole, each element in its place."""
    values = np.arange(count, dtype="<i8") * 7919 % 65_521
    expect_side(target, model, [model.tensor(values, [count, 1])], "read")


@check("datatypes.large-outputs-are-written", answers="BIN-ENC-ALL-O", role="emit")
@rows(
    ("40KB-of-numbers", [10_000, 0], "NUMBERS"),
    Row("89KB-of-strings", ([0, 10_000], "TEXTS"), answers=("BIN-ENC-BYTES-O", "BIN-ENC-ALL-O")),
)
def large_outputs_are_written(target: Target, emit: Model, counts: list[int], name: str) -> None:
    """A large binary output is written whole, each element in its place."""
    tensors = [emit.tensor(counts)]
    reply = target.infer(emit.request(tensors, send="json", want="binary", outputs=[name]))
    expect(reply).tensors([tensor for tensor in emit.expected(tensors) if tensor.name == name])


@check("datatypes.large-tensors-survive", answers=("BIN-ENC-ALL-I", "BIN-ENC-ALL-O"))
@rows(
    *[
        Row(f"UINT8-{size}", (size,), role="identity_uint8", thorough=size != 64 * KIB)
        for size in (255, 256, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, KIB * KIB, KIB * KIB + 1)
    ],
    Row("FP64-64KiB", (64 * KIB // 8,), role="identity_fp64"),
    Row("FP64-1MiB", (KIB * KIB // 8,), role="identity_fp64", thorough=True),
    Row("INT32-to-FP32-64KiB", (64 * KIB // 4,), role="cast_int32_fp32"),
    Row("INT32-to-FP32-1MiB", (KIB * KIB // 4,), role="cast_int32_fp32", thorough=True),
)
def large_tensors_survive(target: Target, model: Model, count: int) -> None:
    """Tensors around 64 KiB and 1 MiB come back from binary data as binary data."""
    values = np.arange(count, dtype="<i8") * 7919 % (251 if _datatype(model) == "UINT8" else 65_521)
    expect_return(target, model, [model.tensor(values)], "BIN-ENC-ALL-O")


# --- BOOL -------------------------------------------------------------------------------------------------------------

BOOLS = (("true", [True]), ("false", [False]), ("mixed", [True, False, False, True, True, False, True, False, False]))


@check("datatypes.bool-bytes-are-read", answers=("BIN-ENC-BOOL-I", "BIN-ENC-ALL-I"), role="identity_bool")
@rows(*BOOLS)
def bool_bytes_are_read(target: Target, model: Model, values: list[bool]) -> None:
    """In a binary input the byte 1 is true and the byte 0 false, one byte for each element."""
    expect_side(target, model, [model.tensor(values)], "read")


@check("datatypes.bool-bytes-are-written", answers=("BIN-ENC-BOOL-O", "BIN-ENC-ALL-O"), role="identity_bool")
@rows(*BOOLS)
def bool_bytes_are_written(target: Target, model: Model, values: list[bool]) -> None:
    """In a binary output true is the byte 1 and false the byte 0, one byte for each element."""
    reply = target.infer(model.request([model.tensor(values)], send="json", want="binary"))
    expect(reply).free_of("bool-byte").tensors(model.expected([model.tensor(values)]))


# --- BYTES ------------------------------------------------------------------------------------------------------------

TEXT_ROWS = [Row(group, (elements,)) for group, elements in TEXTS.items()]
OCTET_ROWS = [Row(group, (elements,)) for group, elements in OCTETS.items()]
MANY_STRINGS = (
    Row("1000-of-1000", ([b"s" * 1000] * 1000,), thorough=True),
    Row("65536-empty", ([b""] * 65_536,), thorough=True),
    Row("one-of-1MiB", ([b"s" * KIB * KIB],), thorough=True),
)


@check("datatypes.strings-are-read", answers="BIN-ENC-BYTES-I", role="identity_bytes")
@rows(*TEXT_ROWS)
def strings_are_read(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """A binary BYTES element is its length in four bytes and then exactly its bytes, as JSON shows."""
    expect_survival(target, model, [model.tensor(elements)], "read")


@check("datatypes.string-lengths-are-read", answers="BIN-ENC-BYTES-I", role="string_length")
@rows(*TEXT_ROWS, *OCTET_ROWS, *MANY_STRINGS)
def string_lengths_are_read(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """A binary BYTES element has as many bytes as its prefix says, whatever they are."""
    expect_side(target, model, [model.tensor(elements)], "read")


@check("datatypes.strings-are-written", answers="BIN-ENC-BYTES-O", role="identity_bytes")
@rows(*TEXT_ROWS)
def strings_are_written(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """A BYTES element of a binary output is its length in four bytes and then exactly its bytes."""
    expect_survival(target, model, [model.tensor(elements)], "written")


@check("datatypes.any-octets-survive", answers=("BIN-ENC-BYTES-I", "BIN-ENC-BYTES-O"), role="identity_bytes")
@rows(*OCTET_ROWS, *MANY_STRINGS)
def any_octets_survive(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """BYTES elements that no JSON carries come back from binary data as binary data."""
    expect_return(target, model, [model.tensor(elements)], "BIN-ENC-BYTES-O")


# --- one tensor in two forms ------------------------------------------------------------------------------------------

EQUAL = (*per_datatype(SPOKEN_IN_JSON), *[Row(role, role=role) for role in ("rank3", "rank2_bytes")])


@check("datatypes.inputs-are-equal-in-both-forms", answers="BIN-EQ-I")
@rows(*EQUAL, *[Row(role, role=role) for role in ("cast_int32_fp32", "string_length")])
def inputs_are_equal_in_both_forms(target: Target, model: Model) -> None:
    """The same input gives the same outputs whether it comes as JSON or as binary data."""
    tensors = in_one_order(model)
    by_json = target.infer(model.request(tensors, send="json"))
    by_binary = target.infer(model.request(tensors, send="binary"))
    expect(by_binary).tensors(_outputs(by_json, model), through_json=True)


@check("datatypes.outputs-are-equal-in-both-forms", answers="BIN-EQ-O")
@rows(*EQUAL)
def outputs_are_equal_in_both_forms(target: Target, model: Model) -> None:
    """An output has the same datatype, shape and values whether it is returned as JSON or as binary data."""
    tensors = in_one_order(model)
    as_json = target.infer(model.request(tensors, send="json", want="json"))
    as_binary = target.infer(model.request(tensors, send="json", want="binary"))
    if as_binary.answer.of_kind("bool-byte"):
        raise Blocked("BOOL elements that are neither 0 nor 1 are judged by themselves")
    expect(as_binary).tensors(_outputs(as_json, model), through_json=True)


def _outputs(reply: Reply, model: Model) -> list[Tensor]:
    """Return the outputs as tensors.

    Raises:
        Unmet: one is missing, or has no values that can be read.
    """
    found = []
    for spec in model.role.outputs:
        output = expect(reply).output(spec.name)
        if output.array is None or output.shape is None:
            reason = "; ".join(finding.told for finding in output.findings) or "no values"
            about = blame.of_output(reply, spec.name)
            raise Unmet(f"{spec.name} with values to compare", reason, reply, requirement=about)
        found.append(Tensor(output.name, output.datatype, output.shape, output.array))
    return found


# --- explored ---------------------------------------------------------------------------------------------------------


def drawn_rows(side: str, **others: str) -> list[Row]:
    """Return a row for each datatype, with the requirement of its own where it has one; `others` are more roles."""
    roles = {datatype: identity(datatype) for datatype in SPOKEN_IN_JSON} | others
    own = {name: name for name in ("BOOL", "BYTES", "FP16")} | {"string_length": "BYTES"}
    return [Row(name, role=role, answers=(f"BIN-ENC-{own.get(name, 'ALL')}-{side}",)) for name, role in roles.items()]


@check("datatypes.drawn-inputs-are-read", answers="BIN-ENC-ALL-I", explores=True)
@rows(*drawn_rows("I", FP16="cast_fp16_fp32"))
def drawn_inputs_are_read(target: Target, model: Model) -> None:
    """Any binary input is read right, as JSON outputs show."""
    _explore(target, model, "read", json=True)


@check("datatypes.drawn-outputs-are-written", answers="BIN-ENC-ALL-O", explores=True)
@rows(*drawn_rows("O", FP16="cast_fp32_fp16"))
def drawn_outputs_are_written(target: Target, model: Model) -> None:
    """Any binary output is written right, for JSON inputs."""
    _explore(target, model, "written", json=True)


@check("datatypes.drawn-tensors-survive", answers="BIN-ENC-ALL-I", explores=True)
@rows(*drawn_rows("I", FP16="identity_fp16", string_length="string_length"))
def drawn_tensors_survive(target: Target, model: Model) -> None:
    """Any tensor comes back from binary data as binary data, whatever its bits."""
    _explore(target, model, "both", json=False)


def _explore(target: Target, model: Model, side: Side, *, json: bool) -> None:
    spec = model.role.inputs[0]
    drawn = drawn_tensors(spec.name, spec.datatype, spec.shape, json=json)
    explore(drawn, lambda tensor: expect_survival(target, model, [tensor], side))
