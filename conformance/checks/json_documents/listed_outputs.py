"""Which outputs come: those that are listed, or all."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.support.answers import asking, expect_only
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import Unmet
from conformance.roles.model import Make, Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import shown

# --- which outputs -----------------------------------------------------------------------------------------------------

_LISTED: tuple[tuple[str, ...], ...] = (
    ("OUT_FP32",),
    ("OUT_BYTES",),
    ("OUT_BYTES", "OUT_INT64"),
    ("OUT_BOOL", "OUT_FP32", "OUT_BYTES"),
    ("OUT_FP32", "OUT_BYTES", "OUT_BOOL", "OUT_INT64"),
)


@check("json.listed-outputs-come-alone", answers=("OIP-OUTPUTS-LISTED", "OIP-OUTPUTS-ONLY"), role="multi")
@rows(
    *[("-".join(listed), listed, asking(outputs=listed)) for listed in _LISTED],
    *[Row(f"{'-'.join(o)}-binary", (o, asking(outputs=o, want="binary")), needs=BINARY) for o in _LISTED],
    *[
        Row(f"{'-'.join(o)}-binary-by-default", (o, asking(outputs=o, binary_data_output=True)), needs=BINARY)
        for o in _LISTED
    ],
)
def listed_outputs_come_alone(target: Target, multi: Model, listed: tuple[str, ...], make: Make) -> None:
    """An answer has the outputs that the request lists, and no others."""
    reply = target.infer(make(multi))
    _expect_outputs(reply, listed)
    expect_only(reply, listed)


@check("json.all-outputs-come-unasked", answers="OIP-OUTPUTS-ALL")
@rows(
    *[Row(role, (asking(),), role=role) for role in ("multi", "add_sub", "raw_two_outputs", "emit")],
    Row("multi-binary-by-default", (asking(binary_data_output=True),), role="multi", needs=BINARY),
    Row("raw_two_outputs-binary-in", (lambda m: m.request(),), role="raw_two_outputs", needs=BINARY),
)
def all_outputs_come_unasked(target: Target, model: Model, make: Make) -> None:
    """An answer has all outputs of the model when the request lists none."""
    _expect_outputs(target.infer(make(model)), [spec.name for spec in model.role.outputs])


def _expect_outputs(reply: Reply, names: Sequence[str]) -> None:
    """Expect these outputs, in any order."""
    expect(reply).answered()
    found = list(reply.answer.names())
    if missing := [name for name in names if name not in found]:
        requirement = attribution.of_output(reply, missing[0])
        raise Unmet(f"outputs {shown(list(names))}", f"outputs {shown(found)}", reply, requirement=requirement)
