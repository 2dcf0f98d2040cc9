"""Relations of outputs: JSON or binary data, in any order, one output is the same."""

from __future__ import annotations

from functools import partial

from conformance.checks.relations.plain_answer import (
    FEW,
    Names,
    ask,
    expect_json_answers,
    expect_json_capable_outputs,
    expect_same,
    form,
    is_same,
    orders,
    several,
    some,
)
from conformance.expect.unmet import Blocked, Unmet, blocked_where
from conformance.survey.deployed import FULL, Deployed
from conformance.terms.check import check
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import Output

# --- outputs ------------------------------------------------------------------------------------------------------


@check("relations.binary-outputs-are-json-outputs", answers="BIN-SAME-AS-JSON-O")
def binary_outputs_are_json_outputs(target: Target, model: Deployed) -> None:
    """An output has the same datatype, shape and values whether it is returned as JSON or as binary data."""
    for name in [name for name in expect_json_capable_outputs(model)[:FEW] if name in model.steady()]:
        expect_same(target, model, _alone(target, model, name), names=[name])


def _alone(target: Target, model: Deployed, name: str) -> Reply:
    """Ask for one output as binary data, and for no other; where it is the only one, that has been done."""
    if len(model.outputs) == 1:
        return model.answer(target, FULL)
    return ask(target, model, outputs=[Output(name, True)])


@check("relations.outputs-in-any-order", answers="BIN-ORDER-O")
def outputs_in_any_order(target: Target, model: Deployed) -> None:
    """Binary outputs are the same in whatever order the request lists them."""
    names = several(model.outputs, "output")
    _expect_as_if_alone(target, model, model.answer(target, FULL))
    for order in orders(names):
        _expect_as_if_alone(target, model, ask(target, model, outputs=[Output(name, True) for name in order]))


def _expect_as_if_alone(target: Target, model: Deployed, reply: Reply) -> None:
    """Expect the outputs of the plain answer, unless one differs also where it is the only binary output."""
    try:
        expect_same(target, model, reply)
    except Unmet as unmet:
        names = model.steady()[: 2 * FEW]
        wrong = [name for name in names if not is_same(target, model, _alone(target, model, name), [name])]
        if wrong:
            raise Blocked(f"{', '.join(wrong)} as the only binary output differs too", unmet) from None
        raise


@check("relations.json-outputs-beside-binary-ones", answers="BIN-MIXED-O")
def json_outputs_beside_binary_ones(target: Target, model: Deployed) -> None:
    """Outputs are the same where some of them are asked for as JSON and others as binary data."""
    expect_json_answers(model)
    for chosen in some(several(model.outputs, "output", model.json_capable)):
        with blocked_where(partial(_differ_together, target, model, chosen), _SEVERAL):
            _expect_as_if_alone(target, model, ask(target, model, outputs=form(model, chosen)))


_SEVERAL = "several binary outputs differ without JSON beside them too"


def _differ_together(target: Target, model: Deployed, chosen: Names) -> bool:
    return len(chosen) > 1 and not is_same(target, model, model.answer(target, FULL))
