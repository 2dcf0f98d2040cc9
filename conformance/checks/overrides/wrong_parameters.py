"""Parameters of a wrong type: refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.checks.support.refusals import Refusal, refusal_rows
from conformance.expect.refusals import expect_refusal
from conformance.roles.model import Model
from conformance.terms.check import check, rows
from conformance.transport.target import Target
from conformance.wire.request import Message, Output

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


def _wrong_output(value: Any) -> Callable[[Model], Message]:
    def message(model: Model) -> Message:
        return model.request(send="json", outputs=[Output(model.role.outputs[0].name, value)]).message()

    return message


def _wrong_default(value: Any) -> Callable[[Model], Message]:
    def message(model: Model) -> Message:
        return model.request(send="json", binary_data_output=value).message()

    return message


REFUSALS: tuple[Refusal, ...] = (
    *[
        Refusal(f"binary-data-is-{word}", "BIN-PARAMETER-TYPE", "cast_int32_fp32", _wrong_output(value))
        for word, value in _WRONG.items()
    ],
    *[
        Refusal(f"binary-data-output-is-{word}", "BIN-PARAMETER-TYPE", "cast_int32_fp32", _wrong_default(value))
        for word, value in _WRONG.items()
    ],
)


@check("overrides.parameter-of-wrong-type-is-refused")
@rows(*refusal_rows(REFUSALS))
def parameter_of_wrong_type_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A binary_data or binary_data_output that is no boolean is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
