"""Relations of inputs: JSON or binary data, in any order, one question has one answer."""

from __future__ import annotations

from conformance.checks.relations.plain_answer import (
    Names,
    ask,
    expect_json_answers,
    expect_same,
    in_order,
    is_same,
    orders,
    several,
    some,
)
from conformance.expect.unmet import NotApplicable, blocked_where
from conformance.survey.deployed import Deployed
from conformance.terms.check import check
from conformance.transport.exchange import Reply
from conformance.transport.target import Target

# --- inputs -------------------------------------------------------------------------------------------------------


@check("relations.binary-inputs-are-json-inputs", answers="BIN-SAME-AS-JSON-I")
def binary_inputs_are_json_inputs(target: Target, model: Deployed) -> None:
    """Inputs give the same outputs whether they come as JSON or as binary data."""
    expect_json_answers(model)
    if not model.json_capable_inputs:
        raise NotApplicable("JSON carries no input")
    expect_same(target, model, ask(target, model, send=model.json_capable_inputs))


@check("relations.inputs-in-any-order", answers="BIN-ORDER-I")
def inputs_in_any_order(target: Target, model: Deployed) -> None:
    """Binary inputs give the same outputs in whatever order the request lists them."""
    names = several(model.inputs, "input")
    _expect_names_decide(target, model, names)
    for order in orders(names):
        _expect_as_if_declared(target, model, ask(target, model, in_order(model, order), send=names))


def _expect_names_decide(target: Target, model: Deployed, names: Names) -> None:
    """Expect that the model itself takes its inputs by their names: JSON inputs in another order are the same.

    Inputs that JSON does not carry keep their order among themselves, so that their bytes do.

    Raises:
        NotApplicable: it does not, or nobody knows.
    """
    expect_json_answers(model)
    if not model.json_capable_inputs:
        raise NotApplicable("JSON carries no input, so that nobody knows whether the model itself goes by order")
    in_json = model.json_capable_inputs[::-1]
    order = next(order for order in ((*in_json, *model.sends), (*model.sends, *in_json)) if order != names)
    if not is_same(target, model, ask(target, model, in_order(model, order))):
        raise NotApplicable("the model goes by the order of its inputs, not by their names, in plain JSON too")


def _expect_as_if_declared(target: Target, model: Deployed, reply: Reply) -> None:
    """Expect the outputs of the plain answer, unless all inputs as binary data in declared order change them too."""

    def differ_in_declared_order() -> bool:
        return not is_same(target, model, ask(target, model, send=model.inputs))

    reason = "all inputs as binary data, in declared order, give other outputs too"
    with blocked_where(differ_in_declared_order, reason):
        expect_same(target, model, reply)


@check("relations.json-inputs-beside-binary-ones", answers="BIN-MIXED-I")
def json_inputs_beside_binary_ones(target: Target, model: Deployed) -> None:
    """Inputs give the same outputs where some of them come as JSON and others as binary data."""
    expect_json_answers(model)
    for chosen in some(several(model.inputs, "input", model.json_capable_inputs)):
        _expect_as_if_declared(target, model, ask(target, model, send=chosen))
