"""Binary data start directly after the JSON, have no gaps, end the body, and may be any bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.checks.support import changed_tensors
from conformance.checks.support.changed_tensors import LOOKALIKES as DEPLOYED_LOOKALIKES
from conformance.checks.support.changed_tensors import (
    WIDE_FLOATS,
    fill_floats_with_fractions,
    fill_floats_with_lookalike,
    fill_strings,
)
from conformance.checks.support.controls import (
    SIDES,
    Side,
    expect_read,
    expect_right,
    expect_written,
    is_right,
    request_single_output,
)
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.corner_values import LOOKALIKES
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, SEVERAL_OUTPUTS, TEXTS, Fit
from conformance.transport.target import Target
from conformance.wire.request import RequestedOutput
from conformance.wire.tensor import Tensor

# --- no gaps ----------------------------------------------------------------------------------------------------------

# Shapes that do not fill whole words: a server that pads to word boundaries shifts all later elements.
ODD_COUNT_ROWS = (
    *[Row(f"INT8-{count}", ([count],), role="identity_int8") for count in (1, 2, 3, 5, 7, 9)],
    *[Row(f"INT16-{count}", ([count],), role="identity_int16") for count in (1, 3, 5)],
    *[Row(f"INT32-{count}", ([count],), role="identity_int32") for count in (1, 3)],
    Row("INT16-odd-rows", ([3, 3, 3],), role="rank3"),
    Row("INT32-odd-rows", ([3, 3],), role="rank2"),
    Row("INT32-odd-items", ([3, 3],), role="batching"),
    Row("deployed", (None,), fit=ANY),
)
ODD_STRINGS = {"one-byte": [1], "one-to-seven": [1, 2, 3, 4, 5, 6, 7]}  # the lengths of strings
DEPLOYED_ODD_COUNT, DEPLOYED_EVEN_COUNT = (
    3,
    8,
)  # elements or items of a deployed model; eight of any size fill whole words


def _list_string_rows(role: str, *requirements: str) -> list[Row]:
    return [Row(f"strings-of-{name}", (lengths,), role, requirements) for name, lengths in ODD_STRINGS.items()]


@check("bytes.inputs-are-packed", requirements="BIN-PACKED-I")
@rows(*ODD_COUNT_ROWS, *_list_string_rows("string_length", "BIN-PACKED-I", "BIN-BYTES-I"))
def inputs_are_packed(target: Target, model: Model, shape: list[int] | None) -> None:
    """The server expects no padding between or after the elements of a binary input."""
    odd, even = _build_odd_and_even_inputs(model, shape)
    try:
        expect_read(target, model, odd, changed_tensors.shift_elements(odd), plain=even)
    except UnmetError as unmet:
        # Gaps also break tensors of equal elements; a wrong order of dimensions does not.
        if shape is None and is_right(target, model, changed_tensors.fill_with_one_element(odd)):
            unmet.requirement = "BIN-ROW-MAJOR-I"
        raise


@check("bytes.outputs-are-packed", requirements="BIN-PACKED-O")
@rows(*ODD_COUNT_ROWS, *_list_string_rows("identity_bytes", "BIN-PACKED-O", "BIN-BYTES-O"))
def outputs_are_packed(target: Target, model: Model, shape: list[int] | None) -> None:
    """The server writes no padding between or after the elements of a binary output."""
    odd, even = _build_odd_and_even_inputs(model, shape)
    expect_written(target, model, odd, plain=even)


def _build_odd_and_even_inputs(
    model: Model, shape: list[int] | None
) -> tuple[Sequence[Tensor], Sequence[Tensor] | None]:
    """Return inputs that do not fill whole words, and inputs that do, if the elements of the former may be the cause.

    `shape` is that of a tensor, or has the lengths of strings; None for a deployed model.
    """
    if shape is None:
        odd, even = (
            model.build_salted_inputs(count, model.salt) for count in (DEPLOYED_ODD_COUNT, DEPLOYED_EVEN_COUNT)
        )
        return odd, even
    if model.role.inputs[0].datatype == "BYTES":
        return [model.tensor([b"s" * length for length in shape])], [model.tensor([b"eight by"])]
    return [_build_symmetric_tensor(model, shape)], None


def _build_symmetric_tensor(model: Model, shape: Sequence[int]) -> Tensor:
    """Return a tensor that equals its transpose, of positive integers whose bytes are the same in both orders."""
    unit = {"INT8": 1, "INT16": 0x0101, "INT32": 0x010100}[model.role.inputs[0].datatype]
    return model.tensor((3 * np.indices(shape).sum(axis=0) + 35) * unit, shape)


# FP32 elements whose bytes are the same in both orders.
SYMMETRIC_FLOATS = np.array([0x41424241, 0xC14343C1, 0x3F44443F], dtype="<u4").view("<f4")


@check("bytes.input-tensors-are-packed", requirements="BIN-PACKED-I", role="multi")
@rows(*[(f"BOOL-{count}", count) for count in (1, 2, 3, 5)])
def input_tensors_are_packed(target: Target, multi: Model, count: int) -> None:
    """The server expects no padding between a short BOOL input and the FP32 input after it."""
    _expect_fp32_after_bools(target, multi, count, "read")


@check("bytes.output-tensors-are-packed", requirements="BIN-PACKED-O", role="multi")
@rows(*[(f"BOOL-{count}", count) for count in (1, 2, 3, 5)])
def output_tensors_are_packed(target: Target, multi: Model, count: int) -> None:
    """The server writes no padding between a short BOOL output and the FP32 output after it."""
    _expect_fp32_after_bools(target, multi, count, "written")


def _expect_fp32_after_bools(target: Target, multi: Model, count: int, side: Side) -> None:
    """Expect the correct FP32 tensor after `count` BOOL elements, in declared order; ignore the other tensors.

    Raises BlockedError: the FP32 tensor is wrong after eight BOOL elements as well.
    """

    def is_wrong_after_eight() -> bool:
        return not is_met(lambda: _compare_fp32_after_bools(target, multi, 8, side))

    with block_if(is_wrong_after_eight, "the FP32 tensor is also wrong after eight BOOL elements"):
        _compare_fp32_after_bools(target, multi, count, side)


def _compare_fp32_after_bools(target: Target, multi: Model, count: int, side: Side) -> None:
    """Send `count` BOOL elements before an FP32 tensor, and expect the correct FP32 output."""
    wide = Tensor.from_values("IN_FP32", "FP32", SYMMETRIC_FLOATS)
    tensors = [
        Tensor.from_values("IN_INT64", "INT64", [1, 2]),
        Tensor.from_values("IN_BOOL", "BOOL", [k % 2 == 0 for k in range(count)]),
        wide,
        Tensor.from_values("IN_BYTES", "BYTES", ["four"]),
    ]
    reply = target.infer(multi.request(tensors, **SIDES[side]))
    expected = Tensor("OUT_FP32", "FP32", wide.shape, wide.array)
    expect(reply).tensors([expected], through_json=True)


# --- directly after the JSON, any bytes -------------------------------------------------------------------------------

LOOKALIKE_ROWS = [Row(name, (octets,), role="identity_uint8") for name, octets in LOOKALIKES.items()]
_FLOAT_INPUT_FIT = Fit(some_input=WIDE_FLOATS)
DEPLOYED_STRINGS = "deployed-strings"


@check("bytes.input-bytes-are-opaque", requirements="BIN-BODY-I")
@rows(
    *LOOKALIKE_ROWS,
    *[Row(f"deployed-{name}", (name,), fit=_FLOAT_INPUT_FIT) for name in DEPLOYED_LOOKALIKES],
    Row(DEPLOYED_STRINGS, (DEPLOYED_STRINGS,), fit=TEXTS),
)
def input_bytes_are_opaque(target: Target, model: Model, octets: bytes | str) -> None:
    """The server reads binary data directly after the JSON, even if the bytes resemble JSON or HTTP."""
    if isinstance(octets, bytes):
        expect_right(target, model, [model.tensor(list(octets))])
        return
    plain = model.sample()
    if octets == DEPLOYED_STRINGS:
        texts = [text for text in LOOKALIKES.values() if text.isascii()]
        expect_read(target, model, fill_strings(plain, texts), plain, plain, datatypes=("BYTES",))
    else:
        expect_read(
            target,
            model,
            fill_floats_with_lookalike(plain, octets),
            plain,
            fill_floats_with_fractions(plain),
            datatypes=WIDE_FLOATS,
        )


@check("bytes.output-bytes-are-opaque", requirements="BIN-BODY-O")
@rows(
    *LOOKALIKE_ROWS,
    *[Row(f"deployed-{name}", (name,), fit=_FLOAT_INPUT_FIT) for name in ("closing-braces", "line-end")],
)
def output_bytes_are_opaque(target: Target, model: Model, octets: bytes | str) -> None:
    """The server writes binary data directly after the JSON, and changes none of the bytes."""
    if isinstance(octets, bytes):
        tensors = [model.tensor(list(octets))]
        reply = target.infer(model.request(tensors, send="json", want="binary"))
        expect(reply).tensors(model.expected(tensors)).free_of("trailing-bytes")
    else:
        _expect_lookalike_written(target, model, octets)


def _expect_lookalike_written(target: Target, model: Model, name: str) -> None:
    """Expect correct outputs whose bytes resemble syntax, such as closing braces or a line end.

    Raises NotApplicableError: no output contains these bytes.
    """
    tensors = fill_floats_with_lookalike(model.sample(), name)
    found = [
        right
        for right in model.find_outputs(tensors)
        if right.name not in model.binary_outputs
        and bytes(right.to_bytes()).startswith(tuple(DEPLOYED_LOOKALIKES[name].values()))
    ]
    if not found:
        raise NotApplicableError(f"no output of {model.name} contains the bytes of its input")
    for right in found:
        reply = request_single_output(target, model, tensors, right.name)
        expect(reply).tensors([right]).free_of("trailing-bytes")


@check("bytes.nothing-follows-the-last-tensor", requirements="BIN-BODY-O")
@rows(
    Row("four-outputs", (None, None), role="multi"),
    Row("json-output-last", (None, ("OUT_BOOL", "OUT_INT64", "OUT_BYTES")), role="multi"),
    Row("empty-output-last", ([3, 0], ("NUMBERS", "TEXTS")), role="emit"),
    Row("empty-numbers-last", ([0, 3], ("TEXTS", "NUMBERS")), role="emit"),
    Row("no-elements-at-all", ([0, 0], None), role="emit"),
    Row("deployed", (None, None), fit=ANY),
    Row("deployed-json-output-last", (None, ()), fit=SEVERAL_OUTPUTS),
)
def nothing_follows_the_last_tensor(
    target: Target, model: Model, values: list[int] | None, listed: tuple[str, ...] | None
) -> None:
    """The server ends the body with the last byte of the last binary output."""
    tensors = model.sample() if values is None else [model.tensor(values)]
    if listed == ():
        outputs = _list_outputs_json_last(model)
    else:
        names = listed or [spec.name for spec in model.role.outputs]
        outputs = [RequestedOutput(name, name != "OUT_BYTES" or listed is None) for name in names]
    expect(target.infer(model.request(tensors, send=model.binary_inputs, outputs=outputs))).free_of("trailing-bytes")


def _list_outputs_json_last(model: Model) -> list[RequestedOutput]:
    """Return the outputs to request from a deployed model: all as binary data, except for a JSON output at the end.

    Raises NotApplicableError: JSON can carry none of the outputs.
    """
    names = [spec.name for spec in model.role.outputs]
    last = next((name for name in reversed(names) if name not in model.binary_outputs), None)
    if last is None:
        raise NotApplicableError(f"JSON can carry no output of {model.name}")
    return [*[RequestedOutput(name, True) for name in names if name != last], RequestedOutput(last, False)]
