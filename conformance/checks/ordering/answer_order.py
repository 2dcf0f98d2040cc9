"""Answers: binary outputs follow the answer's own JSON. Seen alone: JSON in, binary out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from conformance.checks.ordering.tensors_and_orders import (
    _ALL_BINARY,
    OUTPUTS,
    Names,
    _alternating,
    _label,
    _sample,
    _some,
    _tensors,
)
from conformance.checks.support.binary_sides import expect_together, is_right, takes_none
from conformance.expect.unmet import blocked_where
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

# --- answers -----------------------------------------------------------------------------------------------------------


@check("ordering.response-follows-its-json", answers="BIN-ORDER-O", role="multi")
@rows(
    *[(_label(order), order) for order in permutations(OUTPUTS, 3)],
    *[Row(_label(order), (order,), thorough=True) for order in permutations(OUTPUTS, 4)],
    *[Row(_label(order), (order,), thorough=True) for order in permutations(OUTPUTS, 2)],
)
def response_follows_its_json(target: Target, multi: Model, order: Names) -> None:
    """Tensor bytes follow the order in which the answer's own JSON lists the outputs."""
    tensors = _sample(multi)
    reply = target.infer(multi.request(tensors, send="json", want="binary", outputs=order))
    right = [tensor for tensor in multi.expected(tensors) if tensor.name in order]
    expect_together(reply, target, tensors, right, "written")


@check("ordering.all-outputs-follow-the-answers-json", answers="BIN-ORDER-O")
@rows(*[Row(role, role=role) for role in ("multi", "add_sub", "raw_two_outputs")])
def all_outputs_follow_the_answers_json(target: Target, model: Model) -> None:
    """Tensor bytes follow the answer's own JSON when the request lists no outputs."""
    tensors = _sample(model)
    reply = target.infer(model.request(tensors, send="json", binary_data_output=True))
    expect_together(reply, target, tensors, model.expected(tensors), "written")


@check("ordering.empty-output-takes-no-bytes", answers="BIN-ORDER-O", role="emit")
@rows(
    *[
        (f"{'-'.join(order)}-{counts[0]}-{counts[1]}", order, counts)
        for order in permutations(("NUMBERS", "TEXTS"))
        for counts in ((0, 2), (3, 0), (3, 2))
    ]
)
def empty_output_takes_no_bytes(target: Target, emit: Model, order: Names, counts: tuple[int, int]) -> None:
    """A binary output without elements takes no bytes from the one beside it."""
    tensors = [emit.tensor(counts)]
    reply = target.infer(emit.request(tensors, send="json", want="binary", outputs=order))
    expect_together(reply, target, tensors, emit.expected(tensors), "written")


@check("ordering.empty-output-between-others-takes-no-bytes", answers="BIN-ORDER-O", role="multi")
@rows("IN_BOOL", "IN_FP32")
def empty_output_between_others_takes_no_bytes(target: Target, multi: Model, empty: str) -> None:
    """A binary output without elements takes no bytes between two that have some."""
    tensors = [Tensor.of(t.name, t.datatype, [], [0]) if t.name == empty else t for t in _sample(multi)]
    reply = target.infer(multi.request(tensors, send="json", want="binary"))
    if not takes_none(target, multi, tensors, reply):
        expect_together(reply, target, tensors, multi.expected(tensors), "written")


@check("ordering.json-outputs-take-no-bytes", answers="BIN-MIXED-O", role="multi")
@rows(
    *[(_label(OUTPUTS, chosen), OUTPUTS, chosen) for chosen in _some(OUTPUTS)],
    *[
        Row(label, (order, chosen), thorough=True)
        for label, order, chosen in map(_alternating, permutations(OUTPUTS))
        if order != OUTPUTS
    ],
)
def json_outputs_take_no_bytes(target: Target, multi: Model, order: Names, binary: Names) -> None:
    """JSON outputs stand between binary ones and take none of the bytes behind the JSON."""
    tensors = _tensors(multi)
    wanted = [Output(name, name in binary) for name in order]
    reply = target.infer(multi.request(tensors, send="json", outputs=wanted))
    doubled = bool(reply.answer.of_kind("data-and-size"))  # which is for the checks of the sizes
    with blocked_where(lambda: doubled or not _is_right_in_order(target, multi, tensors, order), _ALL_BINARY):
        expect_together(reply, target, tensors, multi.expected(tensors), "written")


def _is_right_in_order(target: Target, multi: Model, tensors: Sequence[Tensor], order: Names) -> bool:
    """Say whether the outputs are right where all are binary data, in this order and in the declared one."""
    return all(is_right(target, multi, tensors, "written", outputs) for outputs in (None, order))
