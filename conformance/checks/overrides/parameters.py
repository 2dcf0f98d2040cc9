"""`binary_data` and `binary_data_output` at undefined places, and with values of a wrong type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.checks.support.deployed_models import require_json
from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, make_refusals, send_binary
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal, has_declined
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, JSON
from conformance.transport.target import Target
from conformance.wire.edits import Set
from conformance.wire.request import InferRequest, RequestedOutput

# --- misplaced --------------------------------------------------------------------------------------------------------
# `binary_data` belongs to a requested output, `binary_data_output` to the request, and both into their `parameters`.
# Elsewhere a server may define parameters with these names, so that an output without other parameters has either form.

# Changes the JSON of a request; receives the name of an output as well.
Edit = Callable[[dict[str, Any], str], object]
ROLE = "cast_int32_fp32"
# Rows that also run on deployed models.
FOR_ANY_MODEL = (
    *("binary-data-false-on-the-request", "binary-data-output-false-on-an-output"),
    *("binary-data-is-the-string-true", "binary-data-is-the-number-1", "binary-data-output-is-the-string-true"),
)


def _set_request_parameters(**parameters: Any) -> Edit:
    """Return an edit that sets parameters of the request."""
    return lambda document, _: document.update(parameters=parameters)


def _set_input_parameters(**parameters: Any) -> Edit:
    """Return an edit that sets parameters of the first input."""
    return lambda document, _: document["inputs"][0].update(parameters=parameters)


def _set_output_members(members: dict[str, Any], **request_parameters: Any) -> Edit:
    """Return an edit that lists an output with these members, and sets parameters of the request."""

    def list_output(document: dict[str, Any], name: str) -> None:
        document.update(outputs=[{"name": name, **members}])
        if request_parameters:
            document.update(parameters=request_parameters)

    return list_output


def _make_row(name: str, edit_document: Edit, form: str | None, requirement: str) -> Row:
    return Row(name, (edit_document, form), answers=(requirement,), fit=JSON if name in FOR_ANY_MODEL else None)


ROWS = (
    _make_row("binary-data-on-the-request", _set_request_parameters(binary_data=True), None, "BIN-ALL-UNSET"),
    _make_row(
        "binary-data-on-the-request-of-a-listed-output",
        _set_output_members({}, binary_data=True),
        None,
        "BIN-OUTPUT-UNSET",
    ),
    _make_row("binary-data-on-an-input", _set_input_parameters(binary_data=True), None, "BIN-ALL-UNSET"),
    _make_row(
        "binary-data-false-on-the-request",
        _set_request_parameters(binary_data_output=True, binary_data=False),
        "binary",
        "BIN-ALL-TRUE",
    ),
    _make_row(
        "binary-data-output-on-an-output",
        _set_output_members({"parameters": {"binary_data_output": True}}),
        None,
        "BIN-OUTPUT-UNSET",
    ),
    _make_row(
        "binary-data-output-false-on-an-output",
        _set_output_members(
            {"parameters": {"binary_data": True, "binary_data_output": False}}, binary_data_output=True
        ),
        "binary",
        "BIN-OUTPUT-TRUE",
    ),
    _make_row("binary-data-output-on-an-input", _set_input_parameters(binary_data_output=True), None, "BIN-ALL-UNSET"),
    _make_row(
        "binary-data-beside-the-parameters", _set_output_members({"binary_data": True}), None, "BIN-OUTPUT-UNSET"
    ),
    _make_row(
        "binary-data-output-beside-the-parameters",
        lambda document, _: document.update(binary_data_output=True),
        None,
        "BIN-ALL-UNSET",
    ),
)


@check("overrides.parameter-at-another-place-changes-no-form", role=ROLE)
@rows(*ROWS)
def parameter_at_another_place_changes_no_form(
    target: Target, model: Model, edit_document: Edit, form: str | None
) -> str:
    """A misplaced parameter neither overrides a correctly placed parameter nor changes a value."""
    require_json(model)
    plain, name = model.request(send="json"), model.list_comparable_outputs()[0]
    reply = target.send(plain.encode_with(lambda document: edit_document(document, name)), fresh=True)
    if has_declined(target, model, reply):
        return f"refused with {reply.status}"
    if form is not None:
        expect(reply).forms({name: form})
        return "passed over"
    expected = [tensor for tensor in model.expected(model.sample()) if tensor.name == name]

    def is_wrong_without_parameter() -> bool:
        return not is_met(lambda: expect(target.send(plain.message(), fresh=True)).tensors(expected))

    with block_if(is_wrong_without_parameter, "the output is also wrong without the misplaced parameter"):
        expect(reply).tensors(expected)
    output = reply.answer.output(name)
    return "taken as a parameter of the server's own" if output and output.binary else "passed over"


# --- parameters of a wrong type ----------------------------------------------------------------------------------------

_WRONG: dict[str, Any] = {
    "the-string-true": "true",
    "the-string-false": "false",
    "the-number-1": 1,
    "the-number-0": 0,
    "a-fraction": 0.5,
    "an-array": [True],
    "an-object": {"value": True},
}


def _send_output_parameter(model: Model) -> InferRequest:
    """Return a request whose first output has the parameter `binary_data`."""
    outputs = [RequestedOutput(model.role.outputs[0].name, True)]
    return model.request(send=model.binary_inputs, outputs=outputs)


def _send_request_parameter(model: Model) -> InferRequest:
    """Return a request with the parameter `binary_data_output`."""
    return model.request(send=model.binary_inputs, binary_data_output=True)


WRONG_TYPES = [
    Fault(
        f"{name}-is-{word}", ROLE, Set(path, value), ANY if f"{name}-is-{word}" in FOR_ANY_MODEL else None, start=start
    )
    for name, path, start in (
        ("binary-data", "outputs.0.parameters.binary_data", _send_output_parameter),
        ("binary-data-output", "parameters.binary_data_output", _send_request_parameter),
    )
    for word, value in _WRONG.items()
]
REFUSALS: tuple[Refusal, ...] = make_refusals("BIN-PARAMETER-TYPE", send_binary, WRONG_TYPES)


@check("overrides.parameter-of-wrong-type-is-refused")
@rows(*make_refusal_rows(REFUSALS))
def parameter_of_wrong_type_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a binary_data or binary_data_output that is not a boolean."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
