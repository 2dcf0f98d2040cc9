"""The order of several tensors in one message, and tensors in typed and in raw contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from conformance.checks.support.classes import find_scored_output, list_output_names
from conformance.checks.support.controls import (
    expect_answered_or_block,
    expect_right,
    is_right,
    is_right_alone,
    is_right_in_name_order,
    read_comparable_outputs,
    require_typed_inputs_accepted,
)
from conformance.checks.support.datatypes import KIB, PLAIN, get_identity_role
from conformance.checks.support.inputs import (
    choose_inputs_of_distinct_outputs,
    choose_revealing_inputs,
    reverse_similar_inputs,
)
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES_OVER_GRPC, GRPC
from conformance.spec.fit import ANY, JSON, SCORED, SEVERAL_INPUTS, SEVERAL_OUTPUTS
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_answer import parse_message
from conformance.wire.request import Form, RequestedOutput
from conformance.wire.tensor import Tensor

# --- several tensors ---------------------------------------------------------------------------------------------------


@check("grpc.raw-entries-follow-the-inputs", requirements="GRPC-ORDER-I", over=(GRPC,))
@rows(
    *[Row("-".join(map(str, order)), (order,), role="multi") for order in list(permutations(range(4)))[1::3]],
    Row("A-B", ((1, 0),), role="add_sub"),
    Row("deployed-reversed", (None,), fit=SEVERAL_INPUTS),
)
def raw_entries_follow_the_inputs(target: GrpcTarget, model: Model, order: Sequence[int] | None) -> None:
    """The server assigns raw entries to the inputs in the order of the request."""
    tensors = _choose_order_revealing_inputs(model)
    listed = tensors[::-1] if order is None else [tensors[k] for k in order]
    try:
        expect_right(target, model, listed)
    except UnmetError as unmet:
        if model.is_deployed and not (
            is_right(target, model, tensors) or is_right_in_name_order(target, model, tensors)
        ):
            raise BlockedError("the answer to raw contents in declared order is also wrong", unmet) from None
        if all(is_right(target, model, listed, outputs=[spec.name]) for spec in model.role.outputs):
            raise BlockedError("each output is correct if the request lists only this output", unmet) from None
        wrong = [tensor.datatype for tensor in tensors if not is_right_alone(target, tensor, "read")]
        if wrong:
            raise BlockedError(f"identity models also return raw contents of {', '.join(wrong)} wrong", unmet) from None
        raise


def _choose_order_revealing_inputs(model: Model) -> Sequence[Tensor]:
    """Return sample inputs; for a deployed model, inputs whose answer shows whether the server swaps them.

    Raises:
        NotApplicableError: no drawn inputs show a swap, the model receives one input, or it assigns inputs by position.
    """
    if len(model.sample()) < 2 or model.by_place:
        raise NotApplicableError(f"{model.name} has a single input, or assigns inputs by position")
    specs = [(tensor.datatype, tensor.shape) for tensor in model.sample()]
    return choose_revealing_inputs(model, reverse_similar_inputs if len(set(specs)) < len(specs) else None)


@check("grpc.typed-inputs-go-by-their-names", requirements="GRPC-INPUT-BY-NAME", over=(GRPC,))
@rows(
    Row("of-four-datatypes-reversed", ((3, 2, 1, 0),), role="multi"),
    Row("of-four-datatypes-turned", ((1, 2, 3, 0),), role="multi"),
    Row("of-one-datatype", ((1, 0),), role="add_sub"),
    Row("of-one-datatype-returned", ((1, 0),), role="raw_two_inputs"),
    Row("of-two-shapes", ((1, 0),), role="scores_two_outputs"),
    Row("deployed-reversed", (None,), fit=replace(SEVERAL_INPUTS, is_json=True)),
)
def typed_inputs_go_by_their_names(target: GrpcTarget, model: Model, order: Sequence[int] | None) -> None:
    """The server identifies inputs with typed contents by name, in any order."""
    tensors = _choose_order_revealing_inputs(model)
    listed = tensors[::-1] if order is None else [tensors[k] for k in order]
    with (
        block_if(
            lambda: not is_right(target, model, tensors, "json"),
            "the answer to the inputs in declared order is also wrong",
        ),
        attribute_to(None),
    ):
        expect_right(target, model, listed, "json")


@check("grpc.raw-entries-follow-the-outputs", requirements="GRPC-ORDER-O", over=(GRPC,))
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
    Row("deployed", (None,), fit=SEVERAL_OUTPUTS),
    Row("deployed-reversed", ("reversed",), fit=SEVERAL_OUTPUTS),
)
def raw_entries_follow_the_outputs(
    target: GrpcTarget, model: Model, order: Sequence[int] | str | None, counts: Sequence[int] | None = None
) -> None:
    """The server returns one raw entry for each output, in the order of the answer's outputs."""
    tensors = choose_inputs_of_distinct_outputs(model) if counts is None else [model.tensor(list(counts))]
    places = range(len(model.role.outputs))[::-1] if order == "reversed" else order
    listed = None if places is None else [model.role.outputs[int(k)].name for k in places]
    reply = expect_answered_or_block(target.infer(model.request(tensors, outputs=listed)))
    message = parse_message(reply.body)
    entries = 0 if message is None else len(message.raw_output_contents)
    if message is not None and entries not in (0, len(message.outputs)):
        raise UnmetError(f"{len(message.outputs)} raw entries, one for each output", f"{entries}", reply)
    if not entries:
        return  # typed contents are part of the outputs themselves
    right = [tensor for tensor in model.find_outputs(tensors) if listed is None or tensor.name in listed]
    try:
        expect(reply).tensors(right, through_json=False)
    except UnmetError as unmet:
        if unmet.tensor is not None and not is_right(target, model, tensors, outputs=[unmet.tensor.name]):
            reason = f"{unmet.tensor.name} is also wrong if the call requests no other output"
            raise BlockedError(reason, unmet) from None
        raise


# --- typed and raw contents -------------------------------------------------------------------------------------------


@check("grpc.answer-has-one-form", requirements="GRPC-ONE-FORM", over=(GRPC,))
@rows(
    *[
        Row(f"{role}-{form}", (form,), role=role)
        for role in ("identity_int32", "identity_bytes", "multi")
        for form in ("json", "binary")
    ],
    *[
        Row(f"{size}-{form}", (form, None, count), role="identity_int32")
        for size, count in (("4KiB", KIB), ("20KiB", 5 * KIB), ("48KiB", 12 * KIB))
        for form in ("json", "binary")
    ],
    Row("40KiB-of-strings", ("binary", None, 2 * KIB), role="identity_bytes"),
    Row("fp16", ("binary",), role="identity_fp16"),
    *[Row(f"fp16-beside-fp32-{form}", (form,), role="documented_all_outputs") for form in ("json", "binary")],
    Row("classes-json", ("json", 2), role="scores", needs=CLASSES_OVER_GRPC),
    Row("classes-binary", ("binary", 2), role="scores", needs=CLASSES_OVER_GRPC),
    *[
        Row(f"classes-beside-a-tensor{end}", (form, 2), role="scores_two_outputs", needs=CLASSES_OVER_GRPC)
        for end, form in (("", "json"), ("-binary", "binary"))
    ],
    Row("deployed-json", ("json",), fit=JSON),
    Row("deployed-binary", ("binary",), fit=ANY),
    Row("deployed-20KiB", ("binary", None, 5 * KIB), fit=replace(ANY, is_variable=True)),
    Row("deployed-classes", ("json", 1), fit=SCORED, needs=CLASSES_OVER_GRPC),
)
def answer_has_one_form(
    target: GrpcTarget, model: Model, send: Form, count: int | None = None, elements: int | None = None
) -> None:
    """The server returns no typed contents beside raw contents, at any size."""
    wanted = None
    if count is not None:
        first, *others = list_output_names(model, find_scored_output(model), is_first=True)
        wanted = [RequestedOutput(first, classification=count), *map(RequestedOutput, others)]
    tensors = None if elements is None else model.build_salted_inputs(elements, model.salt)
    if tensors and model.is_deployed:
        model.find_outputs(tensors)  # raises if the model does not accept so many elements
    reply = target.infer(model.request(tensors, send=send, outputs=wanted))
    if send == "json":
        require_typed_inputs_accepted(reply, model)
    expect_answered_or_block(reply)
    message = parse_message(reply.body)
    if message is not None and message.raw_output_contents:
        for entry in message.outputs:
            if entry.contents.ListFields():
                raise UnmetError(
                    "either raw or typed contents", f"raw contents, and typed contents of {entry.name}", reply
                )


EQUAL = ("BOOL", *PLAIN, "BYTES")


@check("grpc.forms-give-one-answer", requirements="GRPC-RAW-AS-TYPED", over=(GRPC,))
@rows(
    *[Row(datatype, role=get_identity_role(datatype)) for datatype in EQUAL],
    *[
        Row(role, role=role)
        for role in ("cast_int32_fp32", "string_length", "weighted_sum", "multi", "rank3", "batching")
    ],
    Row("deployed", fit=JSON),
)
def forms_give_one_answer(target: GrpcTarget, model: Model) -> None:
    """The server computes the same outputs from typed as from raw contents."""
    tensors = choose_revealing_inputs(model)
    typed = expect_answered_or_block(target.infer(model.request(tensors, send="json")))
    raw = expect_answered_or_block(target.infer(model.request(tensors, send="binary")))
    usual = [tensor for tensor in read_comparable_outputs(model, typed) if not _is_unreadable(tensor.array)]
    expect(raw).tensors(usual, through_json=model.is_deployed)


def _is_unreadable(array: np.ndarray[Any, Any]) -> bool:
    """Say whether an array of strings has elements that are not bytes."""
    return array.dtype == object and not all(isinstance(element, bytes) for element in array.flat)
