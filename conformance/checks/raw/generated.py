"""Stored tensors that Hypothesis generated, as the body of a raw request."""

from __future__ import annotations

from conformance.checks.raw.raw_answers import expect_agreement, send_raw
from conformance.checks.support.generated import expect_generated, make_generated_rows
from conformance.checks.support.tensor_shrinking import get_plain_element
from conformance.expect.unmet import UnmetError
from conformance.roles import roles
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor


def _list_requirements(role: str) -> tuple[str, ...]:
    """Return the requirements on raw requests to the model of a role."""
    is_text = roles.load()[role].inputs[0].datatype == "BYTES"
    return ("RAW-BYTES",) if is_text else ("RAW-ENCODING", "RAW-HEADER-ZERO")


@check("raw.generated-bodies-are-tensor-data", requirements="RAW-ENCODING")
@rows(*make_generated_rows("raw", _list_requirements))
def generated_bodies_are_tensor_data(target: Target, model: Model) -> None:
    """The server reads a raw body that Hypothesis generated as it reads the same bytes in a binary request."""
    expect_read = _expect_string_read if model.role.inputs[0].datatype == "BYTES" else _expect_tensor_read
    expect_generated(model, "raw", lambda tensor: expect_read(target, model, tensor))


def _expect_tensor_read(target: Target, model: Model, tensor: Tensor) -> None:
    """Expect the server to read a tensor; attribute a refusal to RAW-HEADER-ZERO if the server accepts other bytes."""
    try:
        expect_agreement(target, model, send_raw(target, model, tensor), tensor)
    except UnmetError as unmet:
        plain = model.tensor([get_plain_element(tensor.datatype)] * tensor.elements, tensor.shape)
        if unmet.reply is not None and unmet.reply.is_refusal and send_raw(target, model, plain).succeeded:
            unmet.requirement = "RAW-HEADER-ZERO"
        raise


def _expect_string_read(target: Target, model: Model, tensor: Tensor) -> None:
    """Expect the server to read a string with a length prefix, whether or not it takes the prefix for content."""
    whole = model.tensor([bytes(tensor.to_bytes())], tensor.shape)
    expect_agreement(target, model, send_raw(target, model, tensor), whole, tensor)
