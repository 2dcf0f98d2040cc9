"""Classified outputs next to unclassified ones, and classes as JSON or as binary data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.class_expectations import (
    ALSO_WRONG_AS_BYTES,
    are_strings_written_right,
    expect_class_strings,
)
from conformance.checks.support.classes import (
    PARAMETER_REQUIREMENT,
    ask,
    find_scored_output,
    list_output_names,
    read_texts,
    request_classes,
)
from conformance.checks.support.ranked_inputs import (
    ITEMS,
    SCORES,
    SEVERAL_SCORED,
    choose_class_count,
    choose_inputs,
    repeat_in_both_forms,
)
from conformance.expect import attribution
from conformance.expect.difference import find_difference
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows, rows_for_role
from conformance.spec.extensions import BINARY, GRPC
from conformance.spec.fit import SCORED
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Form, RequestedOutput
from conformance.wire.tensor import Tensor


@check("classification.other-outputs-stay", answers="CLS-ONLY")
@rows(
    *rows_for_role(
        "scores_two_outputs",
        ("json", "RANKS", ("SCORES", "RANKS"), ABSENT),
        ("json-listed-first", "RANKS", ("RANKS", "SCORES"), ABSENT),
        Row("binary", ("RANKS", ("SCORES", "RANKS"), True), needs=BINARY),
        ("floats", "SCORES", ("SCORES", "RANKS"), ABSENT),
        Row("binary-floats-listed-last", ("SCORES", ("RANKS", "SCORES"), True), needs=BINARY),
    ),
    Row("own-listed-first", (None, False, ABSENT), fit=SEVERAL_SCORED),
    Row("own-binary", (None, True, True), fit=SEVERAL_SCORED, needs=BINARY),
)
def other_outputs_stay(
    target: Target, model: Model, plain: str | None, order: Sequence[str] | bool, binary: Any
) -> None:
    """The server returns an unclassified output unchanged if it classifies another output."""
    if isinstance(order, bool):
        _expect_other_outputs_unchanged(target, model, is_first=order, binary=binary)
        return
    # Classes stay JSON: with only one binary tensor, the order of binary data cannot be wrong.
    outputs = [
        RequestedOutput(name, binary) if name == plain else RequestedOutput(name, classification=2) for name in order
    ]
    reply = ask(target, model, model.sample(), *outputs)
    _expect_unclassified_output(target, model, model.sample(), reply, RequestedOutput(str(plain), binary))


def _expect_other_outputs_unchanged(target: Target, model: Model, *, is_first: bool, binary: Any) -> None:
    """Expect unchanged values in the unclassified outputs of a deployed model.

    If `binary` is True, the request asks for the first of these outputs as binary data.
    """
    chosen = find_scored_output(model)
    tensors, _ = choose_inputs(model, chosen)
    names = list_output_names(model, chosen, is_first=is_first)
    steady = [tensor.name for tensor in model.find_outputs(tensors) if tensor.name != chosen]
    if not steady:
        raise NotApplicableError(f"{model.name} has no deterministic output besides the classified one")
    listed = {name: model.build_plain_output(name) for name in names}
    listed[chosen] = RequestedOutput(chosen, classification=1)
    if binary is True:
        listed[steady[0]] = RequestedOutput(steady[0], True)
    reply = ask(target, model, tensors, *listed.values())
    for name in steady:
        _expect_unclassified_output(target, model, tensors, reply, listed[name])


@check("classification.next-request-is-plain", answers="CLS-ONLY")
@rows(
    Row("", (True,), role="scores"),
    Row("unlisted", (False,), role="scores"),
    Row("unlisted-batch", (False,), role="scores_batching_labelled"),
    Row("unlisted-of-two", (False,), role="scores_two_outputs"),
    Row("unlisted-integers", (False,), role="identity_int32"),
    Row("own", (True,), fit=SCORED),
    Row("own-unlisted", (False,), fit=replace(SCORED, is_json=True)),
)
def next_request_is_plain(target: Target, model: Model, listed: bool) -> None:
    """The server returns the unclassified output again after a request with classification."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name)
    read_texts(
        ask(target, model, tensors, RequestedOutput(name, classification=choose_class_count(model, right))), name
    )
    reply = target.infer(
        model.request(tensors, send="json", outputs=[name] if listed else model.build_outputs_member())
    )
    _expect_unclassified_output(target, model, tensors, reply, RequestedOutput(name))


def _expect_unclassified_output(
    target: Target, model: Model, tensors: Sequence[Tensor], reply: Reply, plain: RequestedOutput
) -> None:
    """Expect an unclassified output to be correct, or the same as in the answer to a request without classification."""
    expect(reply).answered()
    got = reply.answer.output(plain.name)
    (right,) = (tensor for tensor in model.find_outputs(tensors) if tensor.name == plain.name)
    found = find_difference(right, got, reply.body, through_json=True)
    if found is None:
        return
    own = ask(target, model, tensors, plain).answer.output(plain.name)
    if own is not None and own.array is not None and (own.datatype, own.shape) == (right.datatype, right.shape):
        usual = Tensor(plain.name, right.datatype, right.shape, own.array)
        if find_difference(usual, got, reply.body, through_json=True) is None:
            return
    about = attribution.attribute_unreadable_output(reply, plain.name)
    raise UnmetError(found.expected, found.actual, reply, offset=found.offset, requirement=about)


@check("classification.binary-data-is-obeyed", answers="CLS-BINARY")
@rows(
    Row("true", (SCORES, True, ABSENT), role="scores", needs=BINARY),
    Row("true-labelled", (SCORES, True, ABSENT), role="scores_odd_labels", needs=BINARY),
    Row("true-batch", (ITEMS, True, ABSENT), role="scores_batching_labelled", needs=BINARY),
    Row("true-integers", ((5, -7, 9), True, ABSENT), role="identity_int64", needs=BINARY),
    Row(
        "true-over-false",
        (SCORES, True, False, "BIN-TRUE-OVERRIDES"),
        "scores",
        ("CLS-BINARY", "BIN-TRUE-OVERRIDES"),
        needs=BINARY,
    ),
    Row(
        "false", (SCORES, False, ABSENT, "BIN-OUTPUT-FALSE"), "scores", ("CLS-BINARY", "BIN-OUTPUT-FALSE"), needs=BINARY
    ),
    Row(
        "false-over-true",
        (SCORES, False, True, "BIN-FALSE-OVERRIDES"),
        "scores",
        ("CLS-BINARY", "BIN-FALSE-OVERRIDES"),
        needs=BINARY,
    ),
    Row("own-true", (None, True, ABSENT), fit=SCORED, needs=BINARY),
    Row(
        "own-false-over-true",
        (None, False, True, "BIN-FALSE-OVERRIDES"),
        answers=("CLS-BINARY", "BIN-FALSE-OVERRIDES"),
        fit=SCORED,
        needs=BINARY,
    ),
)
def binary_data_is_obeyed(
    target: Target, model: Model, values: Any, binary: bool, for_all: Any, requirement: str = "CLS-BINARY"
) -> None:
    """The server returns classes as binary BYTES where binary_data is true, and as JSON where it is false."""
    name = find_scored_output(model)
    tensors, scores = choose_inputs(model, name, values)
    count = choose_class_count(model, scores)
    wanted = [RequestedOutput(name, binary, count)]
    reply = request_classes(target, model.request(tensors, send="json", outputs=wanted, binary_data_output=for_all))
    if expect(reply, PARAMETER_REQUIREMENT).output(name).binary != binary:
        if _has_requested_encoding_unclassified(target, model, tensors, binary, for_all):
            asked = f"binary_data {str(binary).lower()} and classification"
            expect(reply, requirement).forms({name: "binary" if binary else "json"}, asked)
        return  # the server does this with every output: checks of the parameter judge it
    right = read_texts(ask(target, model, tensors, RequestedOutput(name, classification=count)), name)
    with block_if(lambda: not are_strings_written_right(target, right, reply.answer.output(name)), ALSO_WRONG_AS_BYTES):
        expect_class_strings(reply, name, right, near=scores if model.is_own_oracle else None)


def _has_requested_encoding_unclassified(
    target: Target, model: Model, tensors: Sequence[Tensor], binary: bool, for_all: Any
) -> bool:
    """Say whether the server returns the same output in the requested encoding if it is not classified."""
    wanted = [RequestedOutput(find_scored_output(model), binary)]
    reply = target.infer(model.request(tensors, send="json", outputs=wanted, binary_data_output=for_all))
    output = reply.answer.output(find_scored_output(model))
    return reply.succeeded and output is not None and output.binary == binary


@check("grpc.other-outputs-stay", answers="CLS-ONLY/grpc", over=(GRPC,))
@rows(
    *repeat_in_both_forms(
        *rows_for_role(
            "scores_two_outputs",
            Row("integers", ("RANKS", ("SCORES", "RANKS"))),
            Row("integers-listed-first", ("RANKS", ("RANKS", "SCORES"))),
            Row("floats", ("SCORES", ("SCORES", "RANKS"))),
        )
    ),
    Row("own", (None, False, "json"), fit=SEVERAL_SCORED),
)
def other_outputs_stay_over_grpc(
    target: GrpcTarget, model: Model, plain: str | None, order: Sequence[str] | bool, send: Form
) -> None:
    """The server returns an unclassified output unchanged if it classifies another output."""
    if isinstance(order, bool):
        chosen, count = find_scored_output(model), 1
        names = list_output_names(model, chosen, is_first=order)
    else:
        chosen, count, names = next(name for name in order if name != plain), 2, list(order)
    tensors, _ = choose_inputs(model, chosen)
    outputs = [
        RequestedOutput(name, classification=count) if name == chosen else RequestedOutput(name) for name in names
    ]
    reply = ask(target, model, tensors, *outputs, send=send)
    right = [tensor for tensor in model.find_outputs(tensors) if tensor.name in names and tensor.name != chosen]
    if not right:
        raise NotApplicableError(f"{model.name} has no deterministic output besides the classified one")

    def is_wrong_unclassified() -> bool:
        usual = ask(target, model, tensors, *map(RequestedOutput, names), send=send)
        return not is_met(lambda: expect(usual).tensors(right, through_json=False))

    wrong = ", ".join(tensor.name for tensor in right)
    expect(reply).answered()
    with block_if(is_wrong_unclassified, f"{wrong} is also wrong without classification"), attribute_to(None):
        expect(reply).tensors(right, through_json=False)
