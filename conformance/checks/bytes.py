"""How elements lie in the body: little-endian, row by row, without gaps, right after the JSON and left alone.

Each side is seen alone. Values are asymmetric: swapped, transposed or shifted they are others. They
stay below 2**53 and are binary fractions, so that a server whose JSON loses digits is not blamed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from conformance.check import Row, check, rows
from conformance.checks._explore import explore
from conformance.checks._refusals import Refusal, refusal_rows
from conformance.checks._values import (
    SIDES,
    Side,
    blocked_where,
    counted,
    expect_beyond,
    expect_side,
    expect_survival,
    in_one_order,
    is_right,
)
from conformance.corners import LOOKALIKES
from conformance.expect import expect, refuses
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model
from conformance.strategies import tensors as drawn_tensors
from conformance.target.target import Target
from conformance.wire.request import Message, Output, frame
from conformance.wire.tensor import Tensor

# --- byte order -------------------------------------------------------------------------------------------------------

# role -> elements no two bytes of which can change places unseen
ASYMMETRIC: dict[str, Sequence[float]] = {
    "identity_uint16": (0x0102, 0xFF00, 1),
    "identity_uint32": (0x01020304, 0xFF000000, 1),
    "identity_uint64": (0x0001020304050607, 1),
    "identity_int16": (0x0102, -0x0102, 1),
    "identity_int32": (0x01020304, -0x01020304, 1),
    "identity_int64": (0x0001020304050607, -0x0001020304050607, 1),
    "identity_fp32": (1.5, -2.25, 1024.0),
    "identity_fp64": (1.5, -2.25, 1024.0),
}
HALVES = (1.5, -2.25, 1024.0)
ASYMMETRIC_ROWS = [Row(role.removeprefix("identity_").upper(), (x, ()), role=role) for role, x in ASYMMETRIC.items()]


@check("bytes.inputs-are-little-endian", answers="BIN-ENC-LE-I")
@rows(
    *ASYMMETRIC_ROWS,
    Row("FP16", (HALVES, [1.05859375]), role="cast_fp16_fp32", answers=("BIN-ENC-LE-I", "BIN-ENC-FP16-I")),
    Row("INT32-cast", ((0x010203, -0x010203, 1), [0x010100]), role="cast_int32_fp32"),
)
def inputs_are_little_endian(
    target: Target, model: Model, values: Sequence[float], in_either_order: Sequence[float]
) -> None:
    """Elements of a binary input are read with the least significant byte first."""
    _expect_little_endian(target, model, values, in_either_order, "read")


@check("bytes.outputs-are-little-endian", answers="BIN-ENC-LE-O")
@rows(
    *ASYMMETRIC_ROWS,
    Row("FP16", (HALVES, [1.05859375]), role="cast_fp32_fp16", answers=("BIN-ENC-LE-O", "BIN-ENC-FP16-O")),
    Row("FP32-cast", ((0x010203, -0x010203, 1), [8_388_683]), role="cast_int32_fp32"),
)
def outputs_are_little_endian(
    target: Target, model: Model, values: Sequence[float], in_either_order: Sequence[float]
) -> None:
    """Elements of a binary output are written with the least significant byte first."""
    _expect_little_endian(target, model, values, in_either_order, "written")


def _expect_little_endian(
    target: Target, model: Model, values: Sequence[float], in_either_order: Sequence[float], side: Side
) -> None:
    """Expect values right, unless those whose bytes are the same in either order are wrong as well."""
    same = model.tensor(in_either_order or in_one_order(model)[0].array[:1])
    expect_beyond(target, model, [model.tensor(values)], side, [same])


# --- the order of elements --------------------------------------------------------------------------------------------

RANKS = (
    Row("rank-0", ([],), role="rank0"),
    Row("rank-1", ([5],), role="identity_int32"),
    Row("rank-1-of-one", ([1],), role="identity_int32"),
    Row("rank-2", ([2, 3],), role="rank2"),
    Row("rank-2-square", ([3, 3],), role="rank2"),
    Row("rank-2-column", ([4, 1],), role="rank2"),
    Row("rank-2-row", ([1, 4],), role="rank2"),
    Row("rank-3", ([2, 3, 4],), role="rank3"),
    Row("rank-3-middle-one", ([3, 1, 2],), role="rank3"),
    Row("rank-4", ([2, 3, 4, 2],), role="rank4"),
    Row("batch", ([4, 3],), role="batching"),
)


@check("bytes.inputs-are-row-major", answers="BIN-ENC-ROW-I")
@rows(
    *RANKS,
    Row("weighted", ([3, 5],), role="weighted_sum"),
    Row("BYTES", ([2, 3],), role="rank2_bytes", answers=("BIN-ENC-ROW-I", "BIN-ENC-BYTES-I")),
)
def inputs_are_row_major(target: Target, model: Model, shape: list[int]) -> None:
    """The elements of a binary input are read row by row, in every rank."""
    _expect_row_major(target, model, shape, "read")


@check("bytes.outputs-are-row-major", answers="BIN-ENC-ROW-O")
@rows(*RANKS, Row("BYTES", ([2, 3],), role="rank2_bytes", answers=("BIN-ENC-ROW-O", "BIN-ENC-BYTES-O")))
def outputs_are_row_major(target: Target, model: Model, shape: list[int]) -> None:
    """The elements of a binary output are written row by row, in every rank."""
    _expect_row_major(target, model, shape, "written")


def _expect_row_major(target: Target, model: Model, shape: Sequence[int], side: Side) -> None:
    """Expect elements in their places, unless JSON loses them, or elements that are all alike are wrong as well."""
    tensor = counted(model, shape)
    with blocked_where(lambda: not is_right(target, model, [tensor], "neither"), "JSON on both sides is wrong too"):
        if prod(shape) == 1:
            expect_side(target, model, [tensor], side)
        else:
            alike = model.tensor(np.full(tensor.shape, tensor.array.reshape(-1)[0]), shape)
            expect_beyond(target, model, [tensor], side, [alike])


# --- no gaps ----------------------------------------------------------------------------------------------------------

# Sizes that no word divides, and rows that no word divides: whoever aligns elements, rows or tensors gives itself away.
ODD = (
    *[Row(f"INT8-{count}", ([count],), role="identity_int8") for count in (1, 2, 3, 5, 7, 9)],
    *[Row(f"INT16-{count}", ([count],), role="identity_int16") for count in (1, 3, 5)],
    *[Row(f"INT32-{count}", ([count],), role="identity_int32") for count in (1, 3)],
    Row("INT16-odd-rows", ([3, 3, 3],), role="rank3"),
    Row("INT32-odd-rows", ([3, 3],), role="rank2"),
    Row("INT32-odd-items", ([3, 3],), role="batching"),
)


@check("bytes.inputs-are-packed", answers="BIN-ENC-PACK-I")
@rows(*ODD)
def inputs_are_packed(target: Target, model: Model, shape: list[int]) -> None:
    """Nothing is expected between or after the elements of a binary input."""
    expect_side(target, model, [_small(model, shape)], "read")


@check("bytes.outputs-are-packed", answers="BIN-ENC-PACK-O")
@rows(*ODD)
def outputs_are_packed(target: Target, model: Model, shape: list[int]) -> None:
    """Nothing lies between or after the elements of a binary output."""
    expect_side(target, model, [_small(model, shape)], "written")


def _small(model: Model, shape: Sequence[int]) -> Tensor:
    """Return a tensor that is its own transpose, of positive integers that are the same in either byte order."""
    unit = {"INT8": 1, "INT16": 0x0101, "INT32": 0x010100}[model.role.inputs[0].datatype]
    return model.tensor((3 * np.indices(shape).sum(axis=0) + 35) * unit, shape)


# FP32 elements whose four bytes read the same from either end.
IN_EITHER_ORDER = np.array([0x41424241, 0xC14343C1, 0x3F44443F], dtype="<u4").view("<f4")
ODD_STRINGS = (("one-byte", [1]), ("one-to-seven", [1, 2, 3, 4, 5, 6, 7]))


@check("bytes.input-strings-are-packed", answers=("BIN-ENC-PACK-I", "BIN-ENC-BYTES-I"), role="string_length")
@rows(*ODD_STRINGS)
def input_strings_are_packed(target: Target, model: Model, lengths: list[int]) -> None:
    """Nothing is expected between the BYTES elements of a binary input."""
    _expect_packed_strings(target, model, lengths, "read")


@check("bytes.output-strings-are-packed", answers=("BIN-ENC-PACK-O", "BIN-ENC-BYTES-O"), role="identity_bytes")
@rows(*ODD_STRINGS)
def output_strings_are_packed(target: Target, model: Model, lengths: list[int]) -> None:
    """Nothing lies between the BYTES elements of a binary output."""
    _expect_packed_strings(target, model, lengths, "written")


def _expect_packed_strings(target: Target, model: Model, lengths: Sequence[int], side: Side) -> None:
    """Expect odd elements right, unless a single one of eight bytes is wrong as well."""
    tensor = model.tensor([b"s" * length for length in lengths])
    expect_beyond(target, model, [tensor], side, [model.tensor([b"eight by"])])


@check("bytes.input-tensors-are-packed", answers="BIN-ENC-PACK-I", role="multi")
@rows(*[(f"BOOL-{count}", count) for count in (1, 2, 3, 5)])
def input_tensors_are_packed(target: Target, multi: Model, count: int) -> None:
    """A wider tensor follows an odd number of bytes at once in a request."""
    _expect_behind_bools(target, multi, count, "read")


@check("bytes.output-tensors-are-packed", answers="BIN-ENC-PACK-O", role="multi")
@rows(*[(f"BOOL-{count}", count) for count in (1, 2, 3, 5)])
def output_tensors_are_packed(target: Target, multi: Model, count: int) -> None:
    """A wider tensor follows an odd number of bytes at once in an answer."""
    _expect_behind_bools(target, multi, count, "written")


def _expect_behind_bools(target: Target, multi: Model, count: int, side: Side) -> None:
    """Expect the right FP32 tensor behind `count` BOOL elements, in declared order; the other tensors are not judged.

    Raises:
        Blocked: it is wrong behind eight of them, too.
    """
    try:
        _is_right_behind_bools(target, multi, count, side)
    except Unmet:
        try:
            _is_right_behind_bools(target, multi, 8, side)
        except Unmet:
            raise Blocked("FP32 is wrong behind eight bytes, too") from None
        raise


def _is_right_behind_bools(target: Target, multi: Model, count: int, side: Side) -> None:
    wide = Tensor.of("IN_FP32", "FP32", IN_EITHER_ORDER)
    tensors = [
        Tensor.of("IN_INT64", "INT64", [1, 2]),
        Tensor.of("IN_BOOL", "BOOL", [k % 2 == 0 for k in range(count)]),
        wide,
        Tensor.of("IN_BYTES", "BYTES", ["four"]),
    ]
    reply = target.infer(multi.request(tensors, **SIDES[side]))
    expected = Tensor("OUT_FP32", "FP32", wide.shape, wide.array)
    expect(reply).tensors([expected], through_json=True)


# --- right after the JSON, and left alone -----------------------------------------------------------------------------


@check("bytes.input-bytes-are-opaque", answers="BIN-BODY-I", role="identity_uint8")
@rows(*[Row(name, (octets,)) for name, octets in LOOKALIKES.items()])
def input_bytes_are_opaque(target: Target, model: Model, octets: bytes) -> None:
    """The binary data of a request start right after its JSON and are taken for nothing else."""
    expect_side(target, model, [model.tensor(list(octets))], "read")


@check("bytes.output-bytes-are-opaque", answers="BIN-BODY-O", role="identity_uint8")
@rows(*[Row(name, (octets,)) for name, octets in LOOKALIKES.items()])
def output_bytes_are_opaque(target: Target, model: Model, octets: bytes) -> None:
    """The binary data of an answer start right after its JSON, are changed by nothing, and end the body."""
    tensors = [model.tensor(list(octets))]
    reply = target.infer(model.request(tensors, send="json", want="binary"))
    expect(reply).tensors(model.expected(tensors)).free_of("trailing-bytes")


@check("bytes.nothing-follows-the-last-tensor", answers="BIN-BODY-O")
@rows(
    Row("four-outputs", (None, None), role="multi"),
    Row("json-output-last", (None, ("OUT_BOOL", "OUT_INT64", "OUT_BYTES")), role="multi"),
    Row("empty-output-last", ([3, 0], ("NUMBERS", "TEXTS")), role="emit"),
    Row("empty-numbers-last", ([0, 3], ("TEXTS", "NUMBERS")), role="emit"),
    Row("no-elements-at-all", ([0, 0], None), role="emit"),
)
def nothing_follows_the_last_tensor(
    target: Target, model: Model, values: list[int] | None, listed: tuple[str, ...] | None
) -> None:
    """The body of an answer ends with the last byte of its last binary output."""
    tensors = model.sample() if values is None else [model.tensor(values)]
    names = listed or [spec.name for spec in model.role.outputs]
    outputs = [Output(name, name != "OUT_BYTES" or listed is None) for name in names]
    expect(target.infer(model.request(tensors, send="json", outputs=outputs))).free_of("trailing-bytes")


# --- BYTES elements that do not add up --------------------------------------------------------------------------------

# fault, shape, binary data
MISFRAMED: tuple[tuple[str, list[int], str], ...] = (
    ("no-prefix", [1], ""),
    ("prefix-of-one-byte", [1], "01"),
    ("prefix-of-three-bytes", [1], "010000"),
    ("second-prefix-cut-short", [2], "02000000 6162 0200"),
    ("past-the-end-by-one", [1], "03000000 6162"),
    ("past-the-end-in-the-second", [2], "02000000 6162 05000000 6364"),
    ("length-2-to-the-31-less-one", [1], "ffffff7f 6162"),
    ("length-2-to-the-31", [1], "00000080 6162"),
    ("length-2-to-the-32-less-one", [1], "ffffffff 6162"),
    ("length-that-wraps-to-zero", [1], "fcffffff 6162"),
    ("length-of-two-bytes", [1], "0200 6162"),
    ("length-of-eight-bytes", [1], "0200000000000000 6162"),
    ("no-length", [1], "68656c6c6f0a"),
    ("fewer-elements-than-the-shape", [3], "02000000 6162 01000000 63"),
    ("more-elements-than-the-shape", [1], "02000000 6162 01000000 63"),
    ("more-empty-elements-than-the-shape", [1], "02000000 6162 00000000"),
    ("elements-for-an-empty-shape", [0], "01000000 61"),
    ("one-stray-byte", [1], "02000000 6162 7a"),
    ("four-stray-bytes", [1], "02000000 6162 7a7a7a7a"),
    ("padded-to-a-word", [2], "01000000 61 000000 01000000 62 000000"),
)


def misframed(shape: list[int], data: str) -> Callable[[Model], Message]:
    """Return what makes a request whose one BYTES input has this shape and these bytes, sizes and lengths being right."""

    def message(model: Model) -> Message:
        octets = bytes.fromhex(data)
        stand_in = Tensor.of("INPUT", "UINT8", list(octets))
        parameters = {"binary_data_size": len(octets)}
        given = {"name": "INPUT", "shape": shape, "datatype": "BYTES", "parameters": parameters}
        framed = frame(model.infer_path, {"inputs": [given]}, [stand_in], model.names)
        return replace(framed, spans=tuple((name, "BYTES", start, end) for name, _, start, end in framed.spans))

    return message


def reaching_into_the_next(multi: Model) -> Message:
    """Return a request whose BYTES element ends in the bytes of the tensor that follows."""
    sample = {tensor.name: tensor for tensor in multi.sample()}
    sample["IN_BYTES"] = Tensor.of("IN_BYTES", "BYTES", [b"ab"])
    order = ("IN_INT64", "IN_BYTES", "IN_FP32", "IN_BOOL")
    message = multi.request([sample[name] for name in order]).message()
    start = next(first for name, _, first, _ in message.spans if name == "IN_BYTES")
    return message.with_body(message.body[:start] + b"\x06" + message.body[start + 1 :])


REFUSALS: tuple[Refusal, ...] = (
    *[Refusal(fault, "BIN-NEG-FRAME", "identity_bytes", misframed(shape, data)) for fault, shape, data in MISFRAMED],
    Refusal("reaching-into-the-next-tensor", "BIN-NEG-FRAME", "multi", reaching_into_the_next),
    Refusal(
        "fewer-elements-than-rows",
        "BIN-NEG-FRAME",
        "rank2_bytes",
        misframed([2, 2], "01000000 61 01000000 62 01000000 63"),
    ),
)


@check("bytes.misframed-strings-are-refused", answers="BIN-NEG-FRAME")
@rows(*refusal_rows(REFUSALS))
def misframed_strings_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A BYTES input whose length prefixes do not add up is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


# --- explored ---------------------------------------------------------------------------------------------------------

DRAWN = tuple(Row(role, role=role) for role in ("rank2", "rank3", "rank4", "rank2_bytes"))


@check("bytes.drawn-shapes-are-read", answers="BIN-ENC-ROW-I", explores=True)
@rows(*DRAWN, Row("weighted_sum", role="weighted_sum"))
def drawn_shapes_are_read(target: Target, model: Model) -> None:
    """A binary input of any shape is read row by row."""
    _explore(target, model, "read")


@check("bytes.drawn-shapes-are-written", answers="BIN-ENC-ROW-O", explores=True)
@rows(*DRAWN)
def drawn_shapes_are_written(target: Target, model: Model) -> None:
    """A binary output of any shape is written row by row."""
    _explore(target, model, "written")


def _explore(target: Target, model: Model, side: Side) -> None:
    spec = model.role.inputs[0]
    drawn = drawn_tensors(spec.name, spec.datatype, spec.shape, json=True)
    explore(drawn, lambda tensor: expect_survival(target, model, [tensor], side))
