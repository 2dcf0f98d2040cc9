"""Binary data begin right after the JSON, end the body, and are taken for nothing else."""

from __future__ import annotations

from conformance.checks.support.binary_sides import expect_side
from conformance.expect.expectation import expect
from conformance.roles.corner_values import LOOKALIKES
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target
from conformance.wire.request import Output

# --- right after the JSON, and left alone -----------------------------------------------------------------------------


@check("bytes.input-bytes-are-opaque", answers="BIN-BODY-I", role="identity_uint8")
@rows(*[Row(name, (octets,)) for name, octets in LOOKALIKES.items()])
def input_bytes_are_opaque(target: Target, model: Model, octets: bytes) -> None:
    """The binary data of a request start right after its JSON and are taken for nothing else."""
    expect_side(target, model, [model.tensor(list(octets))], "read")


@check("bytes.output-bytes-are-opaque", answers="BIN-BODY-O", role="identity_uint8")
@rows(*[Row(name, (octets,)) for name, octets in LOOKALIKES.items()])
def output_bytes_are_opaque(target: Target, model: Model, octets: bytes) -> None:
    """The binary data of an answer start right after its JSON, are changed by nothing, and end the body."""
    tensors = [model.tensor(list(octets))]
    reply = target.infer(model.request(tensors, send="json", want="binary"))
    expect(reply).tensors(model.expected(tensors)).free_of("trailing-bytes")


@check("bytes.nothing-follows-the-last-tensor", answers="BIN-BODY-O")
@rows(
    Row("four-outputs", (None, None), role="multi"),
    Row("json-output-last", (None, ("OUT_BOOL", "OUT_INT64", "OUT_BYTES")), role="multi"),
    Row("empty-output-last", ([3, 0], ("NUMBERS", "TEXTS")), role="emit"),
    Row("empty-numbers-last", ([0, 3], ("TEXTS", "NUMBERS")), role="emit"),
    Row("no-elements-at-all", ([0, 0], None), role="emit"),
)
def nothing_follows_the_last_tensor(
    target: Target, model: Model, values: list[int] | None, listed: tuple[str, ...] | None
) -> None:
    """The body of an answer ends with the last byte of its last binary output."""
    tensors = model.sample() if values is None else [model.tensor(values)]
    names = listed or [spec.name for spec in model.role.outputs]
    outputs = [Output(name, name != "OUT_BYTES" or listed is None) for name in names]
    expect(target.infer(model.request(tensors, send="json", outputs=outputs))).free_of("trailing-bytes")
