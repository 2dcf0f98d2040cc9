"""`binary_data` and `binary_data_output` at undefined places, and with values of a wrong type."""

from __future__ import annotations

from typing import Any

from conformance.checks.support.deployed_models import require_json
from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, Start, WrongRequest, make_refusals, send_binary, send_json
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal, is_refused
from conformance.expect.unmet import block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, JSON
from conformance.transport.target import Target
from conformance.wire.edits import Set, chain
from conformance.wire.message_edits import Edit
from conformance.wire.request import InferRequest, RequestedOutput

# --- misplaced --------------------------------------------------------------------------------------------------------
# `binary_data` belongs to a requested output, `binary_data_output` to the request, and both into their `parameters`.
# Elsewhere a server may define parameters with these names, so that an output without other parameters has either form.

ROLE = "cast_int32_fp32"
# Rows that also run on deployed models.
FOR_ANY_MODEL = (
    *("binary-data-false-on-the-request", "binary-data-output-false-on-an-output"),
    *("binary-data-is-the-string-true", "binary-data-is-the-number-1", "binary-data-output-is-the-string-true"),
)


def _list_output(model: Model) -> InferRequest:
    """Return a JSON request that lists the first output whose values can be compared."""
    return model.request(send="json", outputs=model.list_comparable_outputs()[:1])


def _make_row(name: str, requirement: str, edit: Edit, form: str | None = None, *, start: Start = send_json) -> Row:
    """Return a row for a misplaced parameter; `form` is that which a well-placed parameter beside it asks for."""
    fit = JSON if name in FOR_ANY_MODEL else None
    return Row(name, (WrongRequest(start, (edit,)), form), requirements=(requirement,), fit=fit)


ROWS = (
    _make_row("binary-data-on-the-request", "BIN-ALL-UNSET", Set("parameters", {"binary_data": True})),
    _make_row(
        "binary-data-on-the-request-of-a-listed-output",
        "BIN-OUTPUT-UNSET",
        Set("parameters", {"binary_data": True}),
        start=_list_output,
    ),
    _make_row("binary-data-on-an-input", "BIN-ALL-UNSET", Set("inputs.0.parameters", {"binary_data": True})),
    _make_row(
        "binary-data-false-on-the-request",
        "BIN-ALL-TRUE",
        Set("parameters", {"binary_data_output": True, "binary_data": False}),
        "binary",
    ),
    _make_row(
        "binary-data-output-on-an-output",
        "BIN-OUTPUT-UNSET",
        Set("outputs.0.parameters", {"binary_data_output": True}),
        start=_list_output,
    ),
    _make_row(
        "binary-data-output-false-on-an-output",
        "BIN-OUTPUT-TRUE",
        chain(
            Set("outputs.0.parameters", {"binary_data": True, "binary_data_output": False}),
            Set("parameters", {"binary_data_output": True}),
        ),
        "binary",
        start=_list_output,
    ),
    _make_row(
        "binary-data-output-on-an-input", "BIN-ALL-UNSET", Set("inputs.0.parameters", {"binary_data_output": True})
    ),
    _make_row(
        "binary-data-beside-the-parameters", "BIN-OUTPUT-UNSET", Set("outputs.0.binary_data", True), start=_list_output
    ),
    _make_row("binary-data-output-beside-the-parameters", "BIN-ALL-UNSET", Set("binary_data_output", True)),
)


@check("overrides.parameter-at-another-place-changes-no-form", role=ROLE)
@rows(*ROWS)
def parameter_at_another_place_changes_no_form(
    target: Target, model: Model, request: WrongRequest, form: str | None
) -> str:
    """A misplaced parameter neither overrides a correctly placed parameter nor changes a value."""
    require_json(model)
    name = model.list_comparable_outputs()[0]
    reply = target.send(request(model), fresh=True)
    if is_refused(target, model, reply, advises_status=True):
        return f"refused with {reply.status}"
    if form is not None:
        expect(reply).forms({name: form})
        return "passed over"
    expected = [tensor for tensor in model.expected(model.sample()) if tensor.name == name]

    def is_wrong_without_parameter() -> bool:
        return not is_met(lambda: expect(target.send(request.build_valid(model), fresh=True)).tensors(expected))

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
