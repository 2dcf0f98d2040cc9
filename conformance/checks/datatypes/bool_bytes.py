"""Bytes of BOOL tensors that are neither 0 nor 1."""

from __future__ import annotations

from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import RAW
from conformance.spec.text import format_element
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor


@check("datatypes.bytes-that-are-no-booleans", answers=("BIN-BOOL-RANGE", "OIP-ALIVE"), role="identity_bool")
@rows(
    ("two", bytes([0, 2])),
    ("minus-one", bytes([1, 255, 0])),
    ("a-digit", b"01"),
    Row("raw", (bytes([0, 1, 128]), True), needs=RAW),
)
def bytes_that_are_no_booleans(target: Target, model: Model, octets: bytes, raw: bool = False) -> str:
    """The server refuses a BOOL byte that is neither 0 nor 1, or returns none."""
    other = Tensor.from_values(model.role.inputs[0].name, "BOOL", [False] * len(octets))
    message = model.request([other], want="binary").message()
    message = model.raw(octets) if raw else message.with_body(message.body[: message.json_length] + octets)
    reply = target.send(message, fresh=True)
    if is_refused(target, model, reply):
        return "refused"
    if reply.answer.find_by_kind("bool-byte"):
        raise expect(reply).unmet("a refusal, or bytes of 0 and 1", format_element(reply.body[-len(octets) :]))
    return "answered with 0 and 1"
