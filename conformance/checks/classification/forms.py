"""Checks of classification: classes beside outputs that are not classified, and the form that classes come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.checks.support.class_forms import UNWRITTEN, are_written, expect_texts
from conformance.checks.support.classes import ITEMS, SCORES, TAKEN, ask, both_forms, classified, scored, texts
from conformance.expect import attribution
from conformance.expect.difference import difference
from conformance.expect.expectation import expect
from conformance.expect.unmet import Unmet, about, blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY, GRPC
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, Form, Output
from conformance.wire.tensor import Tensor


@check("classification.other-outputs-stay", answers="CLS-ONLY", role="scores_two_outputs")
@rows(
    ("json", "RANKS", ("SCORES", "RANKS"), ABSENT),
    ("json-listed-first", "RANKS", ("RANKS", "SCORES"), ABSENT),
    Row("binary", ("RANKS", ("SCORES", "RANKS"), True), needs=BINARY),
    ("floats", "SCORES", ("SCORES", "RANKS"), ABSENT),
    Row("binary-floats-listed-last", ("SCORES", ("RANKS", "SCORES"), True), needs=BINARY),
)
def other_outputs_stay(target: Target, model: Model, plain: str, order: Sequence[str], binary: Any) -> None:
    """An output that does not ask for classes keeps its datatype, shape and values beside one that does."""
    # Classes stay JSON, so that there is one binary tensor and no order of several to get wrong.
    outputs = [Output(name, binary) if name == plain else Output(name, classification=2) for name in order]
    _expect_stays(target, model, ask(target, model, model.sample(), *outputs), Output(plain, binary))


@check("classification.next-request-is-plain", answers="CLS-ONLY")
@rows(
    Row("", (True,), role="scores"),
    Row("unlisted", (False,), role="scores"),
    Row("unlisted-batch", (False,), role="scores_batching_labelled"),
    Row("unlisted-of-two", (False,), role="scores_two_outputs"),
    Row("unlisted-integers", (False,), role="identity_int32"),
)
def next_request_is_plain(target: Target, model: Model, listed: bool) -> None:
    """A request without the parameter gets the plain output, also right after one that had it."""
    name = scored(model)
    texts(ask(target, model, model.sample(), Output(name, classification=2)), name)
    reply = target.infer(model.request(send="json", outputs=[name] if listed else None))
    _expect_stays(target, model, reply, Output(name))


def _expect_stays(target: Target, model: Model, reply: Reply, plain: Output) -> None:
    """Expect the plain output, as it should be or as the server gives it when nothing is classified."""
    expect(reply).answered()
    got = reply.answer.output(plain.name)
    (right,) = (tensor for tensor in model.expected(model.sample()) if tensor.name == plain.name)
    found = difference(right, got, reply.body, through_json=True)
    if found is None:
        return
    own = ask(target, model, model.sample(), plain).answer.output(plain.name)
    if own is not None and own.array is not None and (own.datatype, own.shape) == (right.datatype, right.shape):
        usual = Tensor(plain.name, right.datatype, right.shape, own.array)
        if difference(usual, got, reply.body, through_json=True) is None:
            return
    about = attribution.of_output(reply, plain.name)
    raise Unmet(found.expected, found.actual, reply, offset=found.offset, requirement=about)


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
)
def binary_data_is_obeyed(
    target: Target, model: Model, values: Any, binary: bool, for_all: Any, requirement: str = "CLS-BINARY"
) -> None:
    """Classes come as binary BYTES elements where binary_data is true, and as JSON where it is false."""
    name, tensors = scored(model), [model.tensor(values)]
    wanted = [Output(name, binary, 2)]
    reply = classified(target, model.request(tensors, send="json", outputs=wanted, binary_data_output=for_all))
    if expect(reply, TAKEN).output(name).binary != binary:
        if _plain_obeys(target, model, tensors, binary, for_all):
            asked = f"binary_data {str(binary).lower()} and classification"
            expect(reply, requirement).forms({name: "binary" if binary else "json"}, asked)
        return  # the server does so with any output, which is for the checks of the parameter itself
    right = texts(ask(target, model, tensors, Output(name, classification=2)), name)
    with blocked_where(lambda: not are_written(target, right, reply.answer.output(name)), UNWRITTEN):
        expect_texts(reply, name, right)


def _plain_obeys(target: Target, model: Model, tensors: Sequence[Tensor], binary: bool, for_all: Any) -> bool:
    wanted = [Output(scored(model), binary)]
    reply = target.infer(model.request(tensors, send="json", outputs=wanted, binary_data_output=for_all))
    output = reply.answer.output(scored(model))
    return reply.succeeded and output is not None and output.binary == binary


@check("grpc.other-outputs-stay", answers="CLS-ONLY/grpc", role="scores_two_outputs", over=(GRPC,))
@rows(
    *both_forms(
        Row("integers", ("RANKS", ("SCORES", "RANKS"))),
        Row("integers-listed-first", ("RANKS", ("RANKS", "SCORES"))),
        Row("floats", ("SCORES", ("SCORES", "RANKS"))),
    )
)
def other_outputs_stay_over_grpc(
    target: GrpcTarget, model: Model, plain: str, order: Sequence[str], send: Form
) -> None:
    """An output that does not ask for classes keeps its datatype, shape and values beside one that does."""
    outputs = [Output(name) if name == plain else Output(name, classification=2) for name in order]
    reply = ask(target, model, model.sample(), *outputs, send=send)
    right = [tensor for tensor in model.expected(model.sample()) if tensor.name == plain]

    def is_wrong_unclassified() -> bool:
        usual = ask(target, model, model.sample(), *map(Output, order), send=send)
        return not holds(lambda: expect(usual).tensors(right, through_json=False))

    expect(reply).answered()
    with blocked_where(is_wrong_unclassified, f"{plain} is wrong where nothing is classified, too"), about(None):
        expect(reply).tensors(right, through_json=False)
