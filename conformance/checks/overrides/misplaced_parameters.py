"""The two parameters where no document defines them: refused, or without effect on the form of any output.

`binary_data` belongs to a requested output, `binary_data_output` to the request, and both into their `parameters`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target

Edit = Callable[[dict[str, Any]], object]
ROLE = "cast_int32_fp32"


def _on_request(**parameters: Any) -> Edit:
    return lambda document: document.update(parameters=parameters)


def _on_input(**parameters: Any) -> Edit:
    return lambda document: document["inputs"][0].update(parameters=parameters)


def _on_output(members: dict[str, Any], **of_request: Any) -> Edit:
    """Return an edit that lists the output with further members, under parameters of the request."""

    def edit(document: dict[str, Any]) -> None:
        document.update(outputs=[{"name": "OUTPUT", **members}])
        if of_request:
            document.update(parameters=of_request)

    return edit


def _row(name: str, edit: Edit, form: str, requirement: str) -> Row:
    return Row(name, (edit, form), answers=(requirement,))


ROWS = (
    _row("binary-data-on-the-request", _on_request(binary_data=True), "json", "BIN-ALL-UNSET"),
    _row("binary-data-on-the-request-of-a-listed-output", _on_output({}, binary_data=True), "json", "BIN-OUTPUT-UNSET"),
    _row("binary-data-on-an-input", _on_input(binary_data=True), "json", "BIN-ALL-UNSET"),
    _row(
        "binary-data-false-on-the-request",
        _on_request(binary_data_output=True, binary_data=False),
        "binary",
        "BIN-ALL-TRUE",
    ),
    _row(
        "binary-data-output-on-an-output",
        _on_output({"parameters": {"binary_data_output": True}}),
        "json",
        "BIN-OUTPUT-UNSET",
    ),
    _row(
        "binary-data-output-false-on-an-output",
        _on_output({"parameters": {"binary_data": True, "binary_data_output": False}}, binary_data_output=True),
        "binary",
        "BIN-OUTPUT-TRUE",
    ),
    _row("binary-data-output-on-an-input", _on_input(binary_data_output=True), "json", "BIN-ALL-UNSET"),
    _row("binary-data-beside-the-parameters", _on_output({"binary_data": True}), "json", "BIN-OUTPUT-UNSET"),
    _row(
        "binary-data-output-beside-the-parameters",
        lambda document: document.update(binary_data_output=True),
        "json",
        "BIN-ALL-UNSET",
    ),
)


@check("overrides.parameter-at-another-place-changes-no-form", role=ROLE)
@rows(*ROWS)
def parameter_at_another_place_changes_no_form(target: Target, model: Model, edit: Edit, form: str) -> str:
    """A parameter at a place where no document defines it is refused, or changes the form of no output."""
    reply = target.send(model.request(send="json").edited(edit), fresh=True)
    if is_refused(target, model, reply):
        return f"refused with {reply.status}"
    expect(reply).forms({model.role.outputs[0].name: form})
    return "passed over"
