"""Raw requests under another content type than that of the documents' example. Other types still: `headers`."""

from __future__ import annotations

from conformance.checks.raw.deployed_models import expect_own_served, expect_right
from conformance.checks.raw.raw_answers import NOTHING_TAKEN, expect_agreement, takes_any
from conformance.checks.support.control_sides import is_wrong
from conformance.expect.expectation import expect
from conformance.expect.unmet import block_if
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ONE_INPUT
from conformance.transport.target import Target
from conformance.wire.request import JSON

VALUES = [200, 201, 202, 203]  # neither JSON nor white space nor UTF-8


TYPES = (("as-json", JSON), ("without-content-type", None))


@check("raw.request-of-another-type-is-served", answers="RAW-CONTENT-TYPE-OTHER")
@rows(
    *[Row(name, (content_type,), role="identity_uint8") for name, content_type in TYPES],
    *[Row(f"own-{name}", (content_type, True), fit=ONE_INPUT) for name, content_type in TYPES],
)
def request_of_another_type_is_served(
    target: Target, model: Model, content_type: str | None, own: bool = False
) -> None:
    """A raw request with Content-Type application/json, or without any, is served."""
    if own:
        first, tensor = expect_own_served(target, model)
        reply = target.send(first.exchange.message.with_header("Content-Type", content_type), fresh=True)
        expect(reply).answered()
        with block_if(lambda: is_wrong(lambda: expect_right(target, model, first, tensor)), "so it is without"):
            expect_right(target, model, reply, tensor)
        return
    tensor = model.tensor(VALUES)
    message = model.raw(bytes(tensor.to_bytes()))
    reply = target.infer(message.with_header("Content-Type", content_type))
    with block_if(lambda: not takes_any(target), NOTHING_TAKEN):
        expect(reply).answered()
    expect_agreement(target, model, reply, tensor)
