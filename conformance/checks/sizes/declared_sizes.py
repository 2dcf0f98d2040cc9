"""Declared sizes of binary data: the server reads them in requests, and states them in answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.controls import (
    are_equal_inputs_right,
    expect_right,
    is_right,
    is_right_alone,
    is_right_in_name_order,
)
from conformance.checks.support.deployed_models import find_output_sizes, list_half_binary_outputs, require_json_outputs
from conformance.checks.support.inputs import make_empty_inputs, require_several_inputs
from conformance.expect.difference import find_difference
from conformance.expect.expectation import Expectation, expect
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, SEVERAL_INPUTS, SEVERAL_OUTPUTS
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import DecodeError
from conformance.wire.json_data import from_json
from conformance.wire.outputs import Output
from conformance.wire.request import ABSENT
from conformance.wire.request import RequestedOutput as Wanted
from conformance.wire.tensor import Tensor

# --- requests ---------------------------------------------------------------------------------------------------------

# No other bytes in the requests have this pattern.
BOOLEANS = Tensor.from_values("IN_BOOL", "BOOL", [True, False, True, True, False])


EIGHT_BYTES = (
    Tensor.from_values("IN_INT64", "INT64", [0x0101010101010101]),
    Tensor.from_values("IN_BOOL", "BOOL", [True, False, True, True, False, False, True, False]),
    Tensor.from_values("IN_FP32", "FP32", [1.5, -2.25]),
)


# --- requests ----------------------------------------------------------------------------------------------------


@check("sizes.input-takes-the-bytes-it-declares", requirements="BIN-SIZE-I")
@rows(
    Row("behind-numbers", (("IN_INT64", "IN_FP32", "IN_BOOL"), 3), role="multi"),
    Row("behind-strings", (("IN_BYTES", "IN_BOOL"), 3), role="multi"),
    Row("behind-long-strings", (("IN_BYTES", "IN_BOOL"), 300), role="multi"),
    Row("before-strings", (("IN_BOOL", "IN_BYTES"), 3), role="multi"),
    Row("every-input", ((), 0), fit=SEVERAL_INPUTS),
    Row("every-long-input", ((), 300), fit=SEVERAL_INPUTS),
)
def input_takes_the_bytes_it_declares(target: Target, model: Model, binary: tuple[str, ...], count: int) -> None:
    """The server gives each binary input as many bytes as its binary_data_size says."""
    if model.is_deployed:
        _expect_all_inputs_read(
            target, model, model.build_salted_inputs(count, model.salt) if count else require_several_inputs(model)
        )
        return
    strings = Tensor.from_values("IN_BYTES", "BYTES", [b"s" * (k % 7) for k in range(count)])
    sample = {tensor.name: tensor for tensor in model.sample()} | {"IN_BYTES": strings, "IN_BOOL": BOOLEANS}

    def is_simpler_request_wrong() -> bool:
        alone = (sample[name] for name in binary)
        return not (
            are_equal_inputs_right(target)
            and all(is_right_alone(target, tensor, "read") for tensor in alone)
            and _are_inputs_of_equal_size_read(target, model, binary)
        )

    with block_if(
        is_simpler_request_wrong,
        "the server also misreads one of these inputs alone, or a request whose inputs have eight bytes each",
    ):
        _expect_right_booleans(target, model, sample, binary)


def _expect_all_inputs_read(target: Target, model: Model, tensors: Sequence[Tensor]) -> None:
    """Send all inputs as binary data, in the declared order, and expect the correct outputs."""
    model.expected(tensors)  # raises if the answer would prove nothing

    def is_order_or_single_input_wrong() -> bool:
        alone = all(is_right(target, model, tensors, [tensor.name]) for tensor in tensors)
        return not alone or is_right_in_name_order(target, model, tensors)

    with block_if(
        is_order_or_single_input_wrong,
        "the server also misreads one binary input alone, or reads the inputs correctly in another order",
    ):
        expect_right(target, model, tensors)


def _expect_right_booleans(target: Target, multi: Model, sample: Mapping[str, Tensor], binary: Sequence[str]) -> None:
    """Send the `binary` inputs first, as binary data, and the others as JSON; expect the correct BOOL output."""
    tensors = [sample[name] for name in (*binary, *[name for name in sample if name not in binary])]
    reply = target.infer(multi.request(tensors, send=binary))
    expect(reply).tensors([tensor for tensor in multi.expected(tensors) if tensor.name == "OUT_BOOL"])


def _are_inputs_of_equal_size_read(target: Target, multi: Model, binary: Sequence[str]) -> bool:
    """Say whether the BOOL output is correct if every binary input has eight bytes.

    IN_FP32 replaces IN_BYTES, whose elements have no fixed size.
    """
    order = [name if name != "IN_BYTES" else "IN_FP32" for name in binary]
    sample = {tensor.name: tensor for tensor in (*multi.sample(), *EIGHT_BYTES)}
    return is_met(lambda: _expect_right_booleans(target, multi, sample, order))


# --- answers -----------------------------------------------------------------------------------------------------

SIZED_ROLES = (
    *[
        f"identity_{name}"
        for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
    ],
    *[f"identity_{name}" for name in ("fp16", "fp32", "fp64", "bytes", "bf16")],
    *("rank2", "rank3", "rank4", "rank2_bytes", "batching", "fixed", "multi", "emit"),
    *("cast_int32_fp32", "cast_fp32_fp16", "string_length", "weighted_sum", "raw_two_outputs"),
)


# How a request asks for binary outputs: of each listed output, or of all.
_LISTED: Mapping[str, Any] = {"want": "binary"}
_BY_DEFAULT: Mapping[str, Any] = {"binary_data_output": True}


@check("sizes.binary-output-states-its-size", requirements="BIN-SIZE-O")
@rows(
    *[Row(role, role=role) for role in SIZED_ROLES],
    Row("every-output", fit=ANY),
    *[Row(f"{role}-by-default", (_BY_DEFAULT,), role) for role in ("multi", "raw_two_outputs")],
    Row("every-output-by-default", (_BY_DEFAULT,), fit=SEVERAL_OUTPUTS),
)
def binary_output_states_its_size(target: Target, model: Model, asked: Mapping[str, Any] = _LISTED) -> None:
    """The server states the size of a binary output as an integer equal to its number of bytes."""
    sends = model.binary_inputs if model.is_deployed or model.role.is_json_capable else "binary"
    _expect_sizes(target.infer(model.request(send=sends, **asked)), model)


@check("sizes.output-without-elements-states-its-size", requirements="BIN-SIZE-O")
@rows(
    Row("beside-another", ([0, 2], ("NUMBERS", "TEXTS")), role="emit"),
    Row("behind-another", ([3, 0], ("NUMBERS", "TEXTS")), role="emit"),
    Row("alone", ([0, 0], ("NUMBERS",)), role="emit"),
    Row("deployed", (None, ()), fit=ANY),
)
def output_without_elements_states_its_size(
    target: Target, model: Model, counts: list[int] | None, names: tuple[str, ...]
) -> None:
    """The server states the size 0 for an empty binary output."""
    tensors = make_empty_inputs(target, model) if counts is None else [model.tensor(counts)]
    names = names or tuple(spec.name for spec in model.role.outputs)
    reply = target.infer(model.request(tensors, send=model.binary_inputs, want="binary", outputs=names))
    for name in names:
        output = expect(reply).output(name)
        _expect_no_faults(expect(reply), output, "data-missing", "size-not-integer", "size-negative")
        if 0 in (output.shape or ()) and output.binary and output.declared_size != 0:
            field = f"outputs[{output.index}].parameters.binary_data_size"
            raise expect(reply).unmet(f"{field}: 0", str(output.declared_size))


def _expect_sizes(reply: Reply, model: Model) -> None:
    """Expect the size of each binary output to match its shape and datatype.

    The size of a BYTES output is correct if the sizes of all outputs add up to the length of the binary data, or if
    it equals the size of the expected output.
    """
    expectation = expect(reply).free_of("data-missing", "size-not-integer", "size-negative")
    binary = [output for output in reply.answer.outputs if output.binary]
    fills = sum(output.declared_size or 0 for output in binary) == len(reply.body) - reply.answer.json_end
    sizes = find_output_sizes(model, model.sample())
    for output in binary:
        right = sizes.get(output.name) if output.native_size is None else output.native_size
        if output.declared_size != right and not (fills and output.native_size is None):
            field = f"outputs[{output.index}].parameters.binary_data_size"
            raise expectation.unmet(
                f"{field}: {right}, the number of bytes of {output.name}", str(output.declared_size)
            )


def _expect_no_faults(expectation: Expectation, output: Output, *kinds: str) -> None:
    """Expect an output to have no faults of these kinds, which are keys of `wire.finding.KINDS`."""
    for finding in output.findings:
        if finding.kind in kinds:
            raise expectation.unmet(f"{finding.field}: {finding.expected}", finding.actual)


FORMS = (
    Row("numbers", role="identity_int32"),
    Row("strings", role="identity_bytes"),
    Row("half-of-four", role="multi"),
    Row("batch", role="batching"),
)


@check("sizes.binary-output-has-no-data", requirements=("BIN-SIZE-WITHOUT-DATA", "BIN-SAME-AS-JSON-O"))
@rows(*FORMS, Row("every-other-output", fit=ANY), Row("every-output", (True,), fit=ANY))
def binary_output_has_no_data(target: Target, model: Model, is_every: bool = False) -> None:
    """The JSON of a binary output has no `data`, or `data` with the same values as the binary data."""
    listed = [Wanted(spec.name, True) for spec in model.role.outputs] if is_every else list_half_binary_outputs(model)
    reply = target.infer(model.request(send=model.binary_inputs, outputs=listed))
    outputs = [expect(reply).output(output.name) for output in listed if output.binary_data]
    for output in outputs:
        _expect_same_data(reply, output)
    for output in outputs:
        _expect_no_faults(expect(reply), output, "data-and-size")


def _expect_same_data(reply: Reply, output: Output) -> None:
    """Expect the `data` of a binary output, if present, to equal its binary data."""
    data = (reply.answer.document or {})["outputs"][output.index].get("data")
    if not data or not output.binary or output.array is None or output.shape is None:
        return
    must = expect(reply, "BIN-SAME-AS-JSON-O")
    try:
        as_json = replace(output, array=from_json(output.datatype, output.shape, data), span=None, binary=False)
    except DecodeError as error:
        raise must.unmet(f"the data of {output.name} to equal its binary data", error.finding.described) from None
    right = Tensor(output.name, output.datatype, output.shape, output.array)
    if found := find_difference(right, as_json, reply.body):
        raise must.unmet(f"data that equal the binary data: {found.expected}", found.actual)


@check("sizes.json-output-has-data-and-no-size", requirements="BIN-DATA-WITHOUT-SIZE")
@rows(
    *[
        Row(f"{row.id}-{how}", (want,), role=row.role)
        for row in FORMS
        for how, want in (("by-default", ABSENT), ("asked-for", False))
    ],
    Row("every-other-output", (ABSENT,), fit=ANY),
)
def json_output_has_data_and_no_size(target: Target, model: Model, want: object) -> None:
    """The server writes `data` and no binary_data_size for a JSON output."""
    as_json = require_json_outputs(model)[::2]
    names = [spec.name for spec in model.role.outputs]
    outputs = [Wanted(name, want if name in as_json else True) for name in names]
    reply = target.infer(model.request(send=model.binary_inputs, outputs=outputs))
    for name in as_json:
        _expect_no_faults(expect(reply), expect(reply).output(name), "data-and-size", "data-missing")


@check("sizes.json-output-without-elements-has-data", requirements="BIN-DATA-WITHOUT-SIZE", role="emit")
@rows(("numbers", [0, 2]), ("strings", [3, 0]), ("both", [0, 0]), Row("deployed", (None,), fit=ANY))
def json_output_without_elements_has_data(target: Target, model: Model, counts: list[int] | None) -> None:
    """The server writes an empty `data` array for an empty JSON output."""
    names = require_json_outputs(model)
    tensors = make_empty_inputs(target, model) if counts is None else [model.tensor(counts)]
    reply = target.infer(model.request(tensors, send=model.binary_inputs, outputs=model.build_outputs_member()))
    for name in names:
        _expect_no_faults(expect(reply), expect(reply).output(name), "data-and-size", "data-missing")
