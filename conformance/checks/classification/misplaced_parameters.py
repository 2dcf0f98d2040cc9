"""`classification` where no document defines it: it belongs into the parameters of a requested output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from conformance.checks.support.classes import find_scored_output
from conformance.checks.support.ranked_inputs import choose_inputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import SCORED
from conformance.transport.target import Target
from conformance.wire.request import RequestedOutput
from conformance.wire.tensor import Tensor

_SCORED_IN_JSON = replace(SCORED, is_json=True)
Edit = Callable[[dict[str, Any], str], object]  # of a document, by the name of the output
CLASSES: Mapping[str, Any] = {"classification": 2}


def _on_the_request(document: dict[str, Any], _: str) -> None:
    document.update(parameters=CLASSES)


def _on_the_request_of_a_listed_output(document: dict[str, Any], name: str) -> None:
    document.update(parameters=CLASSES, outputs=[{"name": name}])


def _on_an_input(document: dict[str, Any], _: str) -> None:
    parameters = document["inputs"][0].setdefault("parameters", {})
    parameters.update(CLASSES)


def _beside_the_parameters(document: dict[str, Any], name: str) -> None:
    document.update(outputs=[{"name": name, **CLASSES}])


@check("classification.parameter-at-another-place-classifies-nothing", answers="CLS-ONLY", role="scores")
@rows(
    Row("on-the-request", (_on_the_request,), fit=_SCORED_IN_JSON),
    ("on-the-request-of-a-listed-output", _on_the_request_of_a_listed_output),
    ("on-an-input", _on_an_input),
    Row("beside-the-parameters", (_beside_the_parameters,), fit=_SCORED_IN_JSON),
)
def parameter_at_another_place_classifies_nothing(target: Target, model: Model, edit: Edit) -> str:
    """A number of classes where no document defines it is refused, or leaves the output as it is or rightly classified."""
    name = find_scored_output(model)
    tensors, right = choose_inputs(model, name)
    plain = model.request(tensors, send="json")
    reply = target.send(plain.edited(lambda document: edit(document, name)), fresh=True)
    if is_refused(target, model, reply):
        return f"refused with {reply.status}"
    if is_met(lambda: expect(reply).tensors([right])):
        return "passed over"
    output = reply.answer.output(name)
    if output is not None and output.array is not None:
        classified = target.infer(model.request(tensors, send="json", outputs=[RequestedOutput(name, **CLASSES)]))
        same = Tensor(output.name, output.datatype, output.array.shape, output.array)
        if is_met(lambda: expect(classified).tensors([same])):
            return "taken as a parameter of the server's own"

    def is_wrong_without() -> bool:
        return not is_met(lambda: expect(target.send(plain.message(), fresh=True)).tensors([right]))

    with block_if(is_wrong_without, "without that parameter the output is wrong, too"):
        expect(reply).tensors([right])
    return "passed over"
