"""Tensors that Hypothesis drew, as the body of a raw request."""

from __future__ import annotations

from conformance.checks.raw.raw_answers import expect_agreement, send_raw
from conformance.checks.support.generated import expect_generated, make_generated_rows
from conformance.roles import roles
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor


def _list_answers(role: str) -> tuple[str, ...]:
    return ("RAW-BYTES",) if roles.load()[role].inputs[0].datatype == "BYTES" else ("RAW-ENCODING",)


@check("raw.generated-bodies-are-tensor-data", answers="RAW-ENCODING")
@rows(*make_generated_rows("raw", _list_answers))
def generated_bodies_are_tensor_data(target: Target, model: Model) -> None:
    """A raw body that Hypothesis drew is read as the tensor that a binary request brings."""
    expect_generated(model, "raw", lambda tensor: _expect_read(target, model, tensor))


def _expect_read(target: Target, model: Model, tensor: Tensor) -> None:
    # Of a string, the body has a length prefix: right in both interpretations of RAW-BYTES-BODY.
    body = bytes(tensor.to_bytes())
    candidates = [model.tensor([body], (1,)), tensor] if tensor.datatype == "BYTES" else [tensor]
    expect_agreement(target, model, send_raw(target, model, tensor), *candidates)
