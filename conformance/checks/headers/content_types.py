"""Requests under content types of other things: a form, a picture, or none at all.

Command-line clients send a form's type by themselves, and some libraries send none. No document names the type of a
request, so that a server may go by it or not; but it may not make anything else of the body than what it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks.support.deployed_models import require_json
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import attribute_to, block_if, is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, RAW
from conformance.spec.fit import ANY, JSON, Fit
from conformance.transport.target import Target
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

TYPES: Mapping[str, str | None] = {
    "form": "application/x-www-form-urlencoded",
    "multipart-form": "multipart/form-data; boundary=0123456789",
    "text": "text/plain; charset=utf-8",
    "none": None,
}
FOR_ANY_MODEL = ("json-as-multipart-form", "binary-as-form", "json-as-none")
VALUES = [123, 34, 38, 61, 200]  # `{"&=` and a byte that is no UTF-8


def _as_json(model: Model) -> Message:
    require_json(model)
    return model.request(model.fill(VALUES), send="json").message()


FORMS: Mapping[str, tuple[MessageBuilder, tuple[str, ...], Fit | None]] = {
    "json": (_as_json, (), JSON),
    "binary": (lambda model: model.request(model.fill(VALUES), outputs=model.listed()).message(), BINARY, ANY),
    "raw": (lambda model: model.raw(bytes(VALUES)), RAW, None),
}


@check("headers.content-type-of-something-else-alters-nothing", answers="OIP-CONTENT-TYPE-OTHER", role="identity_uint8")
@rows(
    *[
        Row(row, (make, content_type), needs=needs, fit=fit if row in FOR_ANY_MODEL else None)
        for name, content_type in TYPES.items()
        for form, (make, needs, fit) in FORMS.items()
        for row in (f"{form}-as-{name}",)
        if content_type is not None or form == "json"  # the others are advice of their own
    ]
)
def content_type_of_something_else_alters_nothing(
    target: Target, model: Model, make: MessageBuilder, content_type: str | None
) -> str:
    """A request under a content type of something else is refused, or answered as under its own."""
    message, expected = make(model), model.expected(model.fill(VALUES))
    reply = target.send(message.with_header("Content-Type", content_type), fresh=True)
    if is_refused(target, model, reply):
        return f"refused with {reply.status}"
    also_wrong = "the request is answered wrongly under its own type, too"
    with block_if(lambda: not _is_right(target, message, expected), also_wrong), attribute_to("OIP-CONTENT-TYPE-OTHER"):
        expect(reply).tensors(expected)
    return "answered"


def _is_right(target: Target, message: Message, expected: tuple[Tensor, ...]) -> bool:
    return is_met(lambda: expect(target.send(message, fresh=True)).tensors(expected))
