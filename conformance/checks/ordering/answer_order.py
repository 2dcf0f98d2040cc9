"""Binary outputs have the order of the answer's JSON; inputs are JSON, so that only the answer is judged."""

from __future__ import annotations

from itertools import permutations

from conformance.checks.ordering.tensors_and_orders import (
    CHOICES,
    OTHER_ORDERS,
    OUTPUTS,
    WRONG_AS_BINARY_DATA,
    Names,
    Order,
    label_order,
    make_choice_rows,
    make_constant_order,
    make_sample,
    make_tensors,
)
from conformance.checks.support.controls import expect_several_tensors, is_refused_as_json_too, is_right
from conformance.checks.support.inputs import InputsBuilder, make_empty_inputs, require_several_inputs
from conformance.expect.unmet import NotApplicableError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import SEVERAL_OUTPUTS, Fit
from conformance.transport.target import Target
from conformance.wire.request import RequestedOutput
from conformance.wire.tensor import Tensor

# --- answers -----------------------------------------------------------------------------------------------------------


def make_counts_builder(counts: tuple[int, int]) -> InputsBuilder:
    """Return a builder of inputs for the role `emit`, with these numbers of elements in its outputs."""
    return lambda emit: [emit.tensor(counts)]


@check("ordering.response-follows-its-json", requirements="BIN-ORDER-O")
@rows(
    *[Row(label_order(order), (make_constant_order(order),), role="multi") for order in permutations(OUTPUTS, 3)],
    *[Row(label_order(order), (make_constant_order(order),), role="multi") for order in permutations(OUTPUTS, 4)],
    *[Row(label_order(order), (make_constant_order(order),), role="multi") for order in permutations(OUTPUTS, 2)],
    *[Row(name, (order,), fit=SEVERAL_OUTPUTS) for name, order in OTHER_ORDERS.items()],
    *[
        Row(
            f"{'-'.join(order)}-{counts[0]}-{counts[1]}",
            (make_constant_order(order), make_counts_builder(counts)),
            "emit",
        )
        for order in permutations(("NUMBERS", "TEXTS"))
        for counts in ((0, 2), (3, 0), (3, 2))  # an empty output takes no bytes from the output beside it
    ],
)
def response_follows_its_json(target: Target, model: Model, order: Order, build: InputsBuilder = make_sample) -> None:
    """The server writes tensor bytes in the order in which the answer's JSON lists the outputs."""
    tensors, names = build(model), order(_list_output_names(model))
    reply = target.infer(model.request(tensors, send=model.binary_inputs, want="binary", outputs=names))
    right = [tensor for tensor in model.expected(tensors) if tensor.name in names]
    expect_several_tensors(reply, target, model, tensors, right, "written")


@check("ordering.all-outputs-follow-the-answers-json", requirements="BIN-ORDER-O")
@rows(*[Row(role, role=role) for role in ("multi", "add_sub", "raw_two_outputs")], Row("of-all", fit=SEVERAL_OUTPUTS))
def all_outputs_follow_the_answers_json(target: Target, model: Model) -> None:
    """The server writes tensor bytes in the order of the answer's JSON when the request lists no outputs."""
    tensors = make_sample(model)
    reply = target.infer(model.request(tensors, send=model.binary_inputs, binary_data_output=True))
    expect_several_tensors(reply, target, model, tensors, model.expected(tensors), "written")


# One output may be empty while another output has elements.
_SEVERAL = Fit(min_inputs=2, min_outputs=2, is_json=True)


@check("ordering.empty-output-between-others-takes-no-bytes", requirements="BIN-ORDER-O", role="multi")
@rows("IN_BOOL", "IN_FP32", Row("deployed", (None,), fit=_SEVERAL))
def empty_output_between_others_takes_no_bytes(target: Target, multi: Model, empty: str | None) -> None:
    """An empty binary output takes no bytes between two others."""
    if empty is None:
        _expect_own_outputs_with_empty_input(target, multi)
        return
    tensors = [Tensor.from_values(t.name, t.datatype, [], [0]) if t.name == empty else t for t in make_sample(multi)]
    reply = target.infer(multi.request(tensors, send="json", want="binary"))
    if not is_refused_as_json_too(target, multi, tensors, reply):
        expect_several_tensors(reply, target, multi, tensors, multi.expected(tensors), "written")


def _expect_own_outputs_with_empty_input(target: Target, model: Model) -> None:
    """Expect the correct binary outputs of a deployed model if its second input has no elements."""
    tensors = make_empty_inputs(target, model, require_several_inputs(model)[1].name)
    reply = target.infer(model.request(tensors, send=model.binary_inputs, want="binary"))
    expect_several_tensors(reply, target, model, tensors, model.find_outputs(tensors), "written")


@check("ordering.json-outputs-take-no-bytes", requirements="BIN-MIXED-O")
@rows(
    *make_choice_rows(OUTPUTS),
    *[Row(name, choice, fit=Fit(min_outputs=least)) for name, (least, choice) in CHOICES.items()],
)
def json_outputs_take_no_bytes(target: Target, model: Model, order: Order, choose: Order) -> None:
    """JSON outputs between binary ones take none of the bytes after the JSON."""
    tensors, names = make_tensors(model), order(_list_output_names(model))
    binary = {*choose(names), *model.binary_outputs}
    if not set(names) - binary:
        raise NotApplicableError("JSON cannot represent any output that the row requests as JSON")
    reply = target.infer(
        model.request(tensors, send=model.binary_inputs, outputs=[RequestedOutput(n, n in binary) for n in names])
    )
    doubled = bool(reply.answer.find_by_kind("data-and-size"))  # the checks of sizes judge this

    def are_binary_outputs_wrong() -> bool:
        """Say whether all outputs as binary data are wrong, in declared order or in this order."""
        return not all(is_right(target, model, tensors, "json", "binary", order) for order in (None, names))

    with block_if(lambda: doubled or are_binary_outputs_wrong(), WRONG_AS_BINARY_DATA):
        expect_several_tensors(reply, target, model, tensors, model.expected(tensors), "written")


def _list_output_names(model: Model) -> Names:
    return tuple(spec.name for spec in model.role.outputs)
