"""Parameters of a wrong type: refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.expect.refusals import expect_refusal
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import check, rows
from conformance.spec.fit import ANY
from conformance.transport.target import Target
from conformance.wire.request import Message, RequestedOutput

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
        return model.request(send=model.sends, outputs=[RequestedOutput(model.role.outputs[0].name, value)]).message()

    return message


def _wrong_default(value: Any) -> Callable[[Model], Message]:
    def message(model: Model) -> Message:
        return model.request(send=model.sends, binary_data_output=value).message()

    return message


# Those that go to deployed models, too.
_FOR_ANY_MODEL = (
    "binary-data-is-the-string-true",
    "binary-data-is-the-number-1",
    "binary-data-output-is-the-string-true",
)


def _refusal(fault: str, make: MessageBuilder) -> Refusal:
    return Refusal(fault, "BIN-PARAMETER-TYPE", "cast_int32_fp32", make, fit=ANY if fault in _FOR_ANY_MODEL else None)


REFUSALS: tuple[Refusal, ...] = (
    *[_refusal(f"binary-data-is-{word}", _wrong_output(value)) for word, value in _WRONG.items()],
    *[_refusal(f"binary-data-output-is-{word}", _wrong_default(value)) for word, value in _WRONG.items()],
)


@check("overrides.parameter-of-wrong-type-is-refused")
@rows(*make_refusal_rows(REFUSALS))
def parameter_of_wrong_type_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A binary_data or binary_data_output that is no boolean is refused."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
