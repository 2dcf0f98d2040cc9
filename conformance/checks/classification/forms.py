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
from conformance.checks.support.ranked_inputs import ITEMS, SCORES, SEVERAL_SCORED, choose_class_count, choose_inputs
from conformance.expect import attribution
from conformance.expect.difference import find_difference
from conformance.expect.expectation import expect
from conformance.expect.unmet import NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, claim, rows, rows_for_role
from conformance.spec.extensions import BINARY, HTTP
from conformance.spec.fit import SCORED
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Form, RequestedOutput
from conformance.wire.tensor import Tensor

_FORM = Only(HTTP, "calls cannot ask for the form of an output")


@claim("classification.other-outputs-stay", requirements="CLS-ONLY")
@rows(
    *rows_for_role(
        "scores_two_outputs",
        ("json", "RANKS", ("SCORES", "RANKS")),
        ("json-listed-first", "RANKS", ("RANKS", "SCORES")),
        Row("binary", ("RANKS", ("SCORES", "RANKS"), True), needs=BINARY, only=_FORM),
        ("floats", "SCORES", ("SCORES", "RANKS")),
        Row("binary-floats-listed-last", ("SCORES", ("RANKS", "SCORES"), True), needs=BINARY, only=_FORM),
    ),
    Row("deployed-listed-first", (None, False), fit=SEVERAL_SCORED),
    Row("deployed-binary", (None, True, True), fit=SEVERAL_SCORED, needs=BINARY, only=_FORM),
)
def other_outputs_stay(
    target: AnyTarget,
    model: Model,
    plain: str | None,
    order: Sequence[str] | bool,
    binary: Any = ABSENT,
    send: Form = "json",
) -> None:
    """The server returns an unclassified output unchanged if it classifies another output."""
    if isinstance(order, bool):
        _expect_other_outputs_unchanged(target, model, is_first=order, binary=binary)
        return
    # Classes stay JSON: with only one binary tensor, the order of binary data cannot be wrong.
    outputs = [
        RequestedOutput(name, binary) if name == plain else RequestedOutput(name, classification=2) for name in order
    ]
    reply = ask(target, model, model.sample(), *outputs, send=send)
    with block_if(lambda: _is_order_wrong(target, model, model.sample(), order, send), _WRONG_ORDER):
        _expect_unclassified_output(target, model, model.sample(), reply, RequestedOutput(str(plain), binary))


def _expect_other_outputs_unchanged(target: AnyTarget, model: Model, *, is_first: bool, binary: Any) -> None:
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
    with block_if(lambda: _is_order_wrong(target, model, tensors, names, "json"), _WRONG_ORDER):
        for name in steady:
            _expect_unclassified_output(target, model, tensors, reply, listed[name])


_WRONG_ORDER = "the same outputs are also wrong without classification"


def _is_order_wrong(
    target: AnyTarget, model: Model, tensors: Sequence[Tensor], names: Sequence[str], send: Form
) -> bool:
    """Say whether these outputs are also wrong over gRPC without classification, such as in the order of raw entries.

    Over HTTP, at most one of them is binary data, so that no order can be wrong.
    """
    if not isinstance(target, GrpcTarget):
        return False
    right = [tensor for tensor in model.find_outputs(tensors) if tensor.name in names]
    usual = ask(target, model, tensors, *map(RequestedOutput, names), send=send)
    return not is_met(lambda: expect(usual).tensors(right, through_json=False))


@claim("classification.next-request-is-plain", requirements="CLS-ONLY")
@rows(
    Row("", (True,), role="scores"),
    Row("unlisted", (False,), role="scores"),
    Row("unlisted-batch", (False,), role="scores_batching_labelled"),
    Row("unlisted-of-two", (False,), role="scores_two_outputs"),
    Row("unlisted-integers", (False,), role="identity_int32"),
    Row("deployed", (True,), fit=SCORED),
    Row("deployed-unlisted", (False,), fit=replace(SCORED, is_json=True)),
)
def next_request_is_plain(target: AnyTarget, model: Model, listed: bool, send: Form = "json") -> None:
    """The server returns the unclassified output again after a request with classification."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name)
    classified = RequestedOutput(name, classification=choose_class_count(model, right))
    read_texts(ask(target, model, tensors, classified, send=send), name)
    outputs = [name] if listed else model.build_outputs_member()
    reply = target.infer(model.request(tensors, send=send, outputs=outputs))
    returned = [name] if listed else [spec.name for spec in model.role.outputs]
    with block_if(lambda: _is_order_wrong(target, model, tensors, returned, send), _WRONG_ORDER):
        _expect_unclassified_output(target, model, tensors, reply, RequestedOutput(name))


def _expect_unclassified_output(
    target: AnyTarget, model: Model, tensors: Sequence[Tensor], reply: Reply, plain: RequestedOutput
) -> None:
    """Expect an unclassified output to be correct, or the same as in the answer to a request without classification."""
    expect(reply).answered()
    got = reply.answer.output(plain.name)
    (right,) = (tensor for tensor in model.find_outputs(tensors) if tensor.name == plain.name)
    through_json = not reply.is_over_grpc
    found = find_difference(right, got, reply.body, through_json=through_json)
    if found is None:
        return
    own = ask(target, model, tensors, plain).answer.output(plain.name)
    if own is not None and own.array is not None and (own.datatype, own.shape) == (right.datatype, right.shape):
        usual = Tensor(plain.name, right.datatype, right.shape, own.array)
        if find_difference(usual, got, reply.body, through_json=through_json) is None:
            return
    about = attribution.attribute_unreadable_output(reply, plain.name)
    raise UnmetError(found.expected, found.actual, reply, offset=found.offset, requirement=about)


@check("classification.binary-data-is-obeyed", requirements="CLS-BINARY")
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
    Row("deployed-true", (None, True, ABSENT), fit=SCORED, needs=BINARY),
    Row(
        "deployed-false-over-true",
        (None, False, True, "BIN-FALSE-OVERRIDES"),
        requirements=("CLS-BINARY", "BIN-FALSE-OVERRIDES"),
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
            if binary and for_all is not ABSENT:  # nothing is overridden if the parameter does as little alone
                alone = target.infer(model.request(tensors, send="json", outputs=wanted))
                requirement = requirement if expect(alone).output(name).binary else "CLS-BINARY"
            expect(reply, requirement).forms({name: "binary" if binary else "json"}, asked)
        return  # the server does this with every output: checks of the parameter judge it
    right = read_texts(ask(target, model, tensors, RequestedOutput(name, classification=count)), name)
    with block_if(lambda: not are_strings_written_right(target, right, reply.answer.output(name)), ALSO_WRONG_AS_BYTES):
        expect_class_strings(reply, name, right, near=scores if model.is_deployed else None)


def _has_requested_encoding_unclassified(
    target: Target, model: Model, tensors: Sequence[Tensor], binary: bool, for_all: Any
) -> bool:
    """Say whether the server returns the same output in the requested encoding if it is not classified."""
    wanted = [RequestedOutput(find_scored_output(model), binary)]
    reply = target.infer(model.request(tensors, send="json", outputs=wanted, binary_data_output=for_all))
    output = reply.answer.output(find_scored_output(model))
    return reply.succeeded and output is not None and output.binary == binary
