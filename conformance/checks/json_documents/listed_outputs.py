"""Which outputs come: those that are listed, or all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.checks.support.documents import expect_only, make_requester
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY, JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value

Choose = Callable[[Model], Sequence[str]]  # the outputs that a request lists

# --- which outputs -----------------------------------------------------------------------------------------------------

_LISTED: tuple[tuple[str, ...], ...] = (
    ("OUT_FP32",),
    ("OUT_BYTES",),
    ("OUT_BYTES", "OUT_INT64"),
    ("OUT_BOOL", "OUT_FP32", "OUT_BYTES"),
    ("OUT_FP32", "OUT_BYTES", "OUT_BOOL", "OUT_INT64"),
)


_BINARY: Mapping[str, Any] = {"want": "binary"}
_BY_DEFAULT: Mapping[str, Any] = {"binary_data_output": True}


def _these(listed: Sequence[str]) -> Choose:
    return lambda _: listed


def _last(model: Model) -> Sequence[str]:
    return [model.role.outputs[-1].name]


def _last_two_backwards(model: Model) -> Sequence[str]:
    return [spec.name for spec in model.role.outputs[:-3:-1]]


@check("json.listed-outputs-come-alone", answers=("OIP-OUTPUTS-LISTED", "OIP-OUTPUTS-ONLY"))
@rows(
    *[Row("-".join(o), (_these(o), {}), role="multi") for o in _LISTED],
    *[Row(f"{'-'.join(o)}-binary", (_these(o), _BINARY), role="multi", needs=BINARY) for o in _LISTED],
    *[Row(f"{'-'.join(o)}-binary-by-default", (_these(o), _BY_DEFAULT), role="multi", needs=BINARY) for o in _LISTED],
    Row("last", (_last, {}), fit=JSON),
    Row("last-binary", (_last, {**_BINARY, **_BY_DEFAULT}), needs=BINARY, fit=JSON),
    Row("last-two-backwards", (_last_two_backwards, {}), fit=Fit(min_outputs=2, is_json=True)),
)
def listed_outputs_come_alone(target: Target, model: Model, choose: Choose, options: Mapping[str, Any]) -> None:
    """An answer has the outputs that the request lists, and no others."""
    listed = choose(model)
    reply = target.infer(model.request(send="json", outputs=listed, **options))
    _expect_outputs(reply, listed)
    expect_only(reply, listed)


@check("json.all-outputs-come-unasked", answers="OIP-OUTPUTS-ALL")
@rows(
    *[Row(role, (make_requester(),), role=role) for role in ("multi", "add_sub", "raw_two_outputs", "emit")],
    Row("multi-binary-by-default", (make_requester(binary_data_output=True),), role="multi", needs=BINARY),
    Row("raw_two_outputs-binary-in", (lambda m: m.request(),), role="raw_two_outputs", needs=BINARY),
    Row("own", (make_requester(),), fit=JSON),
    Row("own-binary-by-default", (lambda m: m.request(binary_data_output=True),), needs=BINARY, fit=ANY),
)
def all_outputs_come_unasked(target: Target, model: Model, make: MessageBuilder) -> None:
    """An answer has all outputs of the model when the request lists none."""
    _expect_outputs(target.infer(make(model)), model.declared_outputs)


def _expect_outputs(reply: Reply, names: Sequence[str]) -> None:
    """Expect these outputs, in any order."""
    expect(reply).answered()
    found = list(reply.answer.names())
    if missing := [name for name in names if name not in found]:
        requirement = attribution.attribute_unreadable_output(reply, missing[0])
        raise UnmetError(
            f"outputs {format_value(list(names))}", f"outputs {format_value(found)}", reply, requirement=requirement
        )
