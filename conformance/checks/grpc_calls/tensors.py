"""Tensors in typed and in raw contents.

Identity models show that a server returns a tensor unchanged. Models that compute (casts, lengths, sums by position)
show that a server reads a tensor correctly: an identity model cannot detect a server that misreads and miswrites bytes
in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from conformance.checks.support.controls import (
    OTHER_FORM,
    expect_contents,
    expect_outputs,
    is_right_in_name_order,
    read_comparable_outputs,
    require_typed_inputs_accepted,
)
from conformance.checks.support.datatypes import KIB, PLAIN, get_identity_role
from conformance.checks.support.inputs import choose_revealing_inputs
from conformance.expect.expectation import expect
from conformance.expect.raw_contents import PROBE_VALUES, is_big_endian
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.corner_values import (
    BINARY_ONLY_CORNERS,
    BYTE_STRINGS,
    FLOAT_CORNERS,
    INTEGER_CORNERS,
    TEXTS,
    from_bits,
    make_corner_tensor,
)
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_shape, make_sample_tensor
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.fit import JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.datatypes import INTEGERS
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import CONTENTS_FIELDS
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

CORNERS: dict[str, list[str]] = {
    datatype: [
        *{**INTEGER_CORNERS, **FLOAT_CORNERS}[datatype],
        *(BINARY_ONLY_CORNERS.get(datatype, ()) if datatype not in INTEGERS else ()),
    ]
    for datatype in PLAIN
}
# Roles with one input that reveal how the server reads its layout, besides the identity role of each datatype.
SHAPED_ROLES = ("cast_int32_fp32", "weighted_sum", "rank0", "rank2", "rank3", "rank4", "batching", "transpose")
BOOLS = (("true", (True,)), ("false", (False,)), ("mixed", (True, False, False, True, True, False, True, False, False)))


# Boolean patterns around byte and word boundaries, to detect packed bits: first, last, a single one, all.
_PLACES = (7, 8, 9, 15, 16, 17, 31, 32, 63, 64, 65, 127, 128)
LONG_BOOLS = {
    "all-of-9": (True,) * 9,
    "ninth-alone": (False,) * 8 + (True,),
    "around-8-16-and-64": tuple(k in _PLACES for k in range(130)),
    "all-but-those": tuple(k not in _PLACES for k in range(130)),
    "last-of-65": (False,) * 64 + (True,),
}


def _compute_distinct_values(count: int) -> tuple[int, ...]:
    """Return `count` integers that all differ."""
    return tuple(k * 7919 % 65_521 for k in range(count))


# Shapes in addition to those of the samples: five without elements, dimensions of 1, batches of other sizes.
SHAPES: dict[str, tuple[str, tuple[int, ...]]] = {
    "0x3": ("rank2", (0, 3)),
    "3x0": ("rank2", (3, 0)),
    "0x3x0": ("rank3", (0, 3, 0)),
    "0x0x1": ("rank3", (0, 0, 1)),
    "0x0x0": ("rank3", (0, 0, 0)),
    "1x1": ("rank2", (1, 1)),
    "5x1": ("rank2", (5, 1)),
    "1x5": ("rank2", (1, 5)),
    "2x1x3": ("rank3", (2, 1, 3)),
    "4x1x1": ("rank3", (4, 1, 1)),
    "1x3x1x2": ("rank4", (1, 3, 1, 2)),
    "batch-of-1": ("batching", (1, 3)),
    "batch-of-3": ("batching", (3, 3)),
    "batch-of-4": ("batching", (4, 3)),
    "batch-of-8": ("batching", (8, 3)),
    "batch-of-4-by-1": ("raw_batching_variable", (4, 1)),
    "batch-of-3-by-5": ("raw_batching_variable", (3, 5)),
}


def _list_numeric_rows() -> list[Row]:
    """Return the rows that typed and raw contents share: samples, corner values, booleans, shapes and sizes."""
    return [
        *[Row(datatype, role=get_identity_role(datatype)) for datatype in PLAIN],
        *[
            Row(f"{datatype}-{group}", (group,), role=get_identity_role(datatype))
            for datatype, groups in CORNERS.items()
            for group in groups
        ],
        *[Row(f"BOOL-{name}", (values,), role="identity_bool") for name, values in BOOLS],
        *[Row(f"BOOL-{name}", (values,), role="identity_bool") for name, values in LONG_BOOLS.items()],
        *[Row(role, role=role) for role in SHAPED_ROLES],
        *[Row(name, (tuple(range(prod(shape))), shape), role=role) for name, (role, shape) in SHAPES.items()],
        Row("INT32-none", ((), (0,)), role="identity_int32"),
        Row("INT32-64KiB", (_compute_distinct_values(16 * KIB),), role="identity_int32"),
        Row("sum-of-100KB", (_compute_distinct_values(25_000), (250, 100)), role="weighted_sum"),
    ]


# The rows of typed and raw contents.
NUMERIC_ROWS = _list_numeric_rows()


def _choose_tensors(
    model: Model, choice: str | Sequence[Any] | None, shape: Sequence[int] | None, times: int
) -> list[Tensor]:
    """Return sample inputs, the corner values in a group, or given values repeated `times` times.

    `choice` is None, the name of the group, or the values.
    """
    if choice is None:
        return list(_sample_other_sizes(model))
    spec = model.role.inputs[0]
    if isinstance(choice, str):
        return [make_corner_tensor(spec.name, spec.datatype, choice)]
    return [model.tensor(list(choice) * times, shape)]


def _sample_other_sizes(model: Model) -> Sequence[Tensor]:
    """Return the samples of a role, with different sizes for its variable dimensions."""
    if model.role.compute in ("emit", "table") or model.role.batching:
        return model.sample()
    return [
        make_sample_tensor(spec.name, spec.datatype, make_sample_shape(spec.shape), (model.salt + 7 * index) % 256)
        for index, spec in enumerate(model.role.inputs)
    ]


@check("grpc.raw-tensors-come-back", requirements="GRPC-RAW", over=(GRPC,))
@rows(
    *NUMERIC_ROWS,
    Row("UINT8-3MiB", (range(251), None, 3 * KIB * KIB // 251), role="identity_uint8"),
    # Above the default limit of many servers, 4 MiB; a server that reports its limit is not judged.
    Row("UINT8-5MiB", (range(251), None, 5 * KIB * KIB // 251), role="identity_uint8"),
    Row("deployed", fit=JSON),
)
def raw_tensors_come_back(
    target: GrpcTarget,
    model: Model,
    choice: str | Sequence[Any] | None = None,
    shape: Sequence[int] | None = None,
    times: int = 1,
) -> None:
    """The server reads and writes raw contents as elements of native size, in row-major order without padding."""
    if model.is_deployed:
        _expect_own_raw(target, model, lambda tensor: tensor.datatype != "BYTES")
        return
    _expect_tensors_returned(target, model, _choose_tensors(model, choice, shape, times), "binary")


@check("grpc.typed-tensors-come-back", requirements="GRPC-TYPED", over=(GRPC,))
@rows(
    *NUMERIC_ROWS,
    *[Row(f"BYTES-{name}", (group,), role="identity_bytes") for name, group in {**TEXTS, **BYTE_STRINGS}.items()],
    *[Row(f"length-{name}", (group,), role="string_length") for name, group in {**TEXTS, **BYTE_STRINGS}.items()],
    *[Row(role, role=role) for role in ("add_sub", "emit", "multi")],
    Row("BYTES-rank-2", role="rank2_bytes"),
    Row("UINT32-3MB", (range(2**21, 2**21 + 251), None, 3_187), role="identity_uint32"),
    Row("BYTES-none", ((), (0,)), role="identity_bytes"),
    Row("deployed", fit=JSON),
)
def typed_tensors_come_back(
    target: GrpcTarget,
    model: Model,
    choice: str | Sequence[Any] | None = None,
    shape: Sequence[int] | None = None,
    times: int = 1,
) -> None:
    """The server reads and writes typed contents in the field for their datatype, in row-major order."""
    if model.is_deployed:
        _expect_fields_of_datatypes(_expect_same_answer_as_http(target, model, choose_revealing_inputs(model), "json"))
        return
    _expect_tensors_returned(target, model, _choose_tensors(model, choice, shape, times), "json")


def _expect_tensors_returned(target: GrpcTarget, model: Model, tensors: Sequence[Tensor], send: Form) -> None:
    """Expect the correct outputs for tensors; a server may refuse empty tensors and batches of more than two items.

    A server that refuses such a batch in one form of contents only has no limit for batches, and is judged.
    """
    try:
        reply = expect_contents(target, model, tensors, send)
    except UnmetError as unmet:
        is_refused = unmet.reply is not None and unmet.reply.is_refusal
        if not tensors[0].elements and is_refused and _is_refused_in_other_form(target, model, tensors, send):
            return  # no document requires support for empty tensors
        if (
            model.role.batching
            and tensors[0].shape[0] > 2
            and is_refused
            and target.infer(model.request(send=send)).succeeded
            and _is_refused_in_other_form(target, model, tensors, send)
        ):
            raise NotApplicableError(f"a batch of {tensors[0].shape[0]} is refused, a batch of 2 is not") from None
        raise
    _expect_fields_of_datatypes(reply)


def _is_refused_in_other_form(target: GrpcTarget, model: Model, tensors: Sequence[Tensor], send: Form) -> bool:
    return target.infer(model.request(tensors, send=OTHER_FORM[send])).is_refusal


# The plain call to a deployed model has typed contents itself: what it should return is asked over HTTP.
def _expect_same_answer_as_http(target: GrpcTarget, model: Model, tensors: Sequence[Tensor], send: Form) -> Reply:
    """Expect a call with inputs in one form to get the same outputs as a request over HTTP; return the reply.

    If HTTP gives no answer, compare with a call whose inputs have the other form of contents.

    Raises:
        UnmetError: the answers over gRPC and HTTP differ, or HTTP gives no answer and the call is refused.
        BlockedError: HTTP gives no answer, and the two forms get different answers, of which either may be wrong.
    """
    reply = target.infer(model.request(tensors, send=send))
    over_http = _request_over_http(target, model, tensors)
    if over_http:
        expect(reply).tensors(over_http, through_json=True)
        return reply
    expect(reply).answered()
    other = target.infer(model.request(tensors, send=OTHER_FORM[send]))
    with block_if(lambda: True, "the same inputs in the other form of contents get another answer"):
        expect(reply).tensors(read_comparable_outputs(model, other), through_json=True)
    return reply


def _request_over_http(target: GrpcTarget, model: Model, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of a plain request over HTTP; an empty list if HTTP is not tested or the request fails."""
    if HTTP not in target.over_http.settings.transports:
        return []
    return read_comparable_outputs(
        model, target.over_http.infer(model.request(tensors, send=(), outputs=model.build_outputs_member()))
    )


def _expect_own_raw(target: GrpcTarget, model: Model, is_judged: Callable[[Tensor], bool]) -> None:
    """Expect a deployed model to answer raw contents correctly; judge only outputs for which `is_judged` is true.

    Raises BlockedError: an output that is not judged is wrong, or the server confuses the order of inputs or outputs.
    """
    tensors = choose_revealing_inputs(model)
    try:
        _expect_same_answer_as_http(target, model, tensors, "binary")
    except UnmetError as unmet:
        wrong = unmet.tensor
        if len(tensors) > 1 and is_right_in_name_order(target, model, tensors):
            raise BlockedError("the answer is correct if the call lists the inputs sorted by name", unmet) from None
        if wrong is not None and not is_judged(wrong):
            raise BlockedError(f"output {wrong.name} of datatype {wrong.datatype} is wrong", unmet) from None
        if wrong is not None and _is_output_right_alone(target, model, tensors, wrong):
            raise BlockedError(f"output {wrong.name} is correct if the call requests no other output", unmet) from None
        raise


def _is_output_right_alone(target: GrpcTarget, model: Model, tensors: Sequence[Tensor], output: Tensor) -> bool:
    """Say whether an output is correct if the request lists only this output; False if the model has one output."""
    if len(model.role.outputs) == 1:
        return False
    reply = target.infer(model.request(tensors, outputs=[output.name]))
    return is_met(lambda: expect(reply).tensors([output], through_json=True))


def _expect_fields_of_datatypes(reply: Reply) -> None:
    """Expect typed outputs to use the fields for their datatypes."""
    message = parse_message(reply.body)
    for entry in message.outputs if message is not None else ():
        filled = [field.name for field, _ in entry.contents.ListFields()]
        right = CONTENTS_FIELDS.get(entry.datatype)
        if filled and filled != [right]:
            raise UnmetError(
                f"{entry.datatype} elements in {right or 'raw contents'}",
                f"elements in {', '.join(filled)}",
                reply,
                requirement="GRPC-TYPED",
            )


@check(
    "grpc.raw-contents-are-little-endian", requirements="GRPC-RAW-LITTLE-ENDIAN", role="cast_int32_fp32", over=(GRPC,)
)
def raw_contents_are_little_endian(target: GrpcTarget, model: Model) -> None:
    """The server reads and writes raw contents as little-endian."""
    if is_big_endian(target, model):
        reply = target.infer(model.request([model.tensor(PROBE_VALUES)], send="binary"))
        raise UnmetError(
            "the least significant byte first", "the most significant byte first, in requests and answers", reply
        )


@check("grpc.raw-strings-come-back", requirements=("GRPC-RAW-BYTES", "GRPC-RAW"), over=(GRPC,))
@rows(
    *[Row(name, (group,), role="identity_bytes") for name, group in {**TEXTS, **BYTE_STRINGS}.items()],
    *[Row(f"length-{name}", (group,), role="string_length") for name, group in {**TEXTS, **BYTE_STRINGS}.items()],
    Row("none", ((), (0,)), role="identity_bytes"),
    Row("one-of-1MiB", ((b"s" * KIB * KIB,),), role="identity_bytes"),
    Row("65536-empty", ((b"",) * 65_536,), role="identity_bytes"),
    Row("deployed", (None,), fit=Fit(some_input=frozenset({"BYTES"}), is_json=True)),
)
def raw_strings_come_back(
    target: GrpcTarget, model: Model, choice: Sequence[bytes] | None, shape: Sequence[int] | None = None
) -> None:
    """The server reads and writes a raw BYTES element as a length of four bytes and its bytes."""
    if model.is_deployed:
        has_others = any(tensor.datatype != "BYTES" for tensor in model.sample())
        _expect_own_raw(target, model, lambda tensor: tensor.datatype == "BYTES" or not has_others)
        return
    _expect_tensors_returned(target, model, _choose_tensors(model, choice, shape, 1), "binary")


# datatype -> groups of bits, and the requirement that its elements are raw
HALF_FLOATS: Mapping[str, tuple[Mapping[str, Sequence[int]], str]] = {
    "FP16": (
        {
            "ordinary": (0x3E00, 0xC100, 0x3400),
            "largest": (0x7BFF, 0xFBFF),
            "subnormal": (0x0001, 0x8001, 0x03FF),
            "zeros": (0x0000, 0x8000),
            "infinities": (0x7C00, 0xFC00),
        },
        "GRPC-FP16",
    ),
    "BF16": ({"ordinary": (0x3FC0, 0xC020, 0x3E80)}, "GRPC-BF16-RAW"),
}


def _list_half_float_rows() -> Iterator[Row]:
    for datatype, (groups, raw) in HALF_FLOATS.items():
        name, values = datatype.lower(), f"GRPC-{datatype}"
        both = tuple(dict.fromkeys((values, raw)))
        for group, bits in groups.items():
            yield Row(f"{datatype}-both-{group}", (datatype, bits), f"identity_{name}", both)
            yield Row(f"{datatype}-read-{group}", (datatype, bits), f"cast_{name}_fp32", (values,))
            yield Row(f"{datatype}-written-{group}", (datatype, bits), f"cast_fp32_{name}", both)
        typed = (datatype, groups["ordinary"], "json")
        yield Row(f"{datatype}-written-for-typed-inputs", typed, f"cast_fp32_{name}", both)
        yield Row(f"{datatype}-own", (datatype,), requirements=(raw,), fit=Fit(outputs=frozenset({datatype})))


@check("grpc.half-floats-are-raw", requirements=("GRPC-FP16", "GRPC-BF16", "GRPC-BF16-RAW"), over=(GRPC,))
@rows(*_list_half_float_rows())
def half_floats_are_raw(
    target: GrpcTarget, model: Model, datatype: str, bits: Sequence[int] = (), send: Form = "binary"
) -> None:
    """The server reads and writes raw FP16 as IEEE 754 binary16, and raw BF16 as the upper two bytes of FP32.

    Raises NotApplicableError: the server refuses typed inputs of a model whose outputs cannot be typed.
    """
    tensors = [_build_floats(model, from_bits("INPUT", datatype, bits))] if bits else model.sample()
    reply = target.infer(model.request(tensors, send=send))
    if send == "json":
        require_typed_inputs_accepted(reply, model)
    for output in reply.answer.outputs:
        if output.datatype == datatype and not output.binary:
            raise UnmetError(
                f"{datatype} as raw contents", "typed contents", reply, requirement=HALF_FLOATS[datatype][1]
            )
    expect_outputs(reply, model, tensors)


def _build_floats(model: Model, floats: Tensor) -> Tensor:
    """Return 16-bit floats, converted to FP32 if the model has an FP32 input."""
    (spec,) = model.role.inputs
    if spec.datatype == floats.datatype:
        return floats
    return Tensor.from_values("INPUT", "FP32", floats.array.astype("<f4"))


@check("grpc.fp16-call-is-answered", requirements="GRPC-FP16", role="identity_fp16", infers=False, over=(GRPC,))
def fp16_call_is_answered(target: GrpcTarget, model: Model) -> None:
    """The server answers a call with an FP16 input if it answers one with raw contents of an INT32 input."""
    other = target.model("identity_int32")
    if other is None or not target.infer(other.request(send="binary")).succeeded:
        raise BlockedError("a call with raw contents of an INT32 input is not answered either")
    expect(target.infer(model.request(send="binary"))).answered()
