"""`classification` where no document defines it: it belongs into the parameters of a requested output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.checks.support.classes import scored
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.target import Target
from conformance.wire.request import Output
from conformance.wire.tensor import Tensor

Edit = Callable[[dict[str, Any]], object]
CLASSES: Mapping[str, Any] = {"classification": 2}


def _members(**members: Any) -> Edit:
    return lambda document: document.update(members)


def _on_an_input(document: dict[str, Any]) -> None:
    document["inputs"][0].update(parameters=dict(CLASSES))


@check("classification.parameter-at-another-place-classifies-nothing", answers="CLS-ONLY", role="scores")
@rows(
    ("on-the-request", _members(parameters=CLASSES)),
    ("on-the-request-of-a-listed-output", _members(parameters=CLASSES, outputs=[{"name": "SCORES"}])),
    ("on-an-input", _on_an_input),
    ("beside-the-parameters", _members(outputs=[{"name": "SCORES", **CLASSES}])),
)
def parameter_at_another_place_classifies_nothing(target: Target, model: Model, edit: Edit) -> str:
    """A number of classes where no document defines it is refused, or leaves the output as it is or rightly classified."""
    plain = model.request(send="json")
    reply = target.send(plain.edited(edit), fresh=True)
    if is_refused(target, model, reply):
        return f"refused with {reply.status}"
    expected = model.expected(model.sample())
    if holds(lambda: expect(reply).tensors(expected)):
        return "passed over"
    output = reply.answer.output(scored(model))
    if output is not None and output.array is not None:
        classified = target.infer(model.request(send="json", outputs=[Output(scored(model), **CLASSES)]))
        same = Tensor(output.name, output.datatype, output.array.shape, output.array)
        if holds(lambda: expect(classified).tensors([same])):
            return "taken as a parameter of the server's own"

    def is_wrong_without() -> bool:
        return not holds(lambda: expect(target.send(plain.message(), fresh=True)).tensors(expected))

    with blocked_where(is_wrong_without, "without that parameter the output is wrong, too"):
        expect(reply).tensors(expected)
    return "passed over"
