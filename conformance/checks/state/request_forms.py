"""Requests that can be told apart, in each of the three forms; what HTTP does to one it does to all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from conformance.checks.support.framing import WRONG_LENGTH
from conformance.checks.support.refusals import DECLINED_STATUSES
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY, JSON, Fit
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import INFERENCE_HEADER, Form, InferRequest, Message
from conformance.wire.tensor import Tensor


def make_salted_request(model: Model, form: Form, length: int, salt: int) -> InferRequest:
    """Return a request with tensors and an id that no other salt has."""
    want: Form | None = "binary" if form == "binary" else None
    return model.request(make_salted_tensors(model, length, salt), send=form, want=want, request_id=f"request-{salt}")


def make_salted_tensors(model: Model, length: int, salt: int) -> list[Tensor]:
    """Return inputs of so many elements, or of as many as a deployed model takes; other ones for each salt."""
    return model.salted(model.limit_length(length), salt)


def expect_own(target: Peer, reply: Reply, model: Model, length: int, salt: int, requirement: str) -> None:
    """Expect that an answer carries the tensors of its request, and the id of no other one."""
    if reply.status in DECLINED_STATUSES:
        return
    found = (reply.answer.document or {}).get("id") if reply.succeeded else None
    if isinstance(found, str) and found.startswith("request-") and found != f"request-{salt}":
        raise UnmetError(f"id request-{salt}", f"id {format_value(found)}", reply, requirement=requirement)
    expect_right(target, reply, model.expected(make_salted_tensors(model, length, salt)), requirement)


def expect_right(target: Peer, reply: Reply, tensors: Iterable[Tensor], requirement: str) -> None:
    """Expect the right tensors.

    Raises:
        Unmet: the answer is wrong.
        Blocked: it is wrong in the same way when the same request is sent alone and in one piece.
    """
    try:
        expect(reply, requirement).tensors(tensors).free_of(*WRONG_LENGTH)
    except UnmetError as unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        refused = not (alone.succeeded or reply.succeeded)
        same = (alone.body, alone.header(INFERENCE_HEADER)) == (reply.body, reply.header(INFERENCE_HEADER))
        if alone.status is not None and alone.status == reply.status and (refused or same):
            reason = "the same request is answered as wrongly when it is sent alone and in one piece"
            raise BlockedError(reason, unmet) from None
        raise


AnyForm = Form | Literal["raw"]
# A request, and its inputs.
SaltedRequest = tuple[Message, Sequence[Tensor]]

# Says that chunks are declined (RFC 9110, 15.5.12).
LENGTH_REQUIRED = 411

FORMS: tuple[AnyForm, ...] = ("json", "binary", "raw")
NEEDS: Mapping[AnyForm, tuple[str, ...]] = {"json": (), "binary": BINARY, "raw": ("raw",)}
_ROLES: Mapping[AnyForm, str] = {"json": "identity_int32", "binary": "identity_int32", "raw": "identity_uint8"}
# A raw request to a deployed model is a matter of its own: not every model takes one.
_FITS: Mapping[AnyForm, Fit | None] = {"json": JSON, "binary": ANY, "raw": None}


def make_form_row(name: str, form: AnyForm, *values: Any, thorough: bool = False, fits: bool = False) -> Row:
    """Return a row for one form, which its body gets in front of the values; `fits`: for deployed models, too."""
    fit = _FITS[form] if fits else None
    return Row(name, (form, *values), role=_ROLES[form], needs=NEEDS[form], thorough=thorough, fit=fit)


def make_form_request(model: Model, form: AnyForm, length: int, salt: int) -> SaltedRequest:
    """Return a request with so many elements, other ones for each salt; a raw one to a model of one UINT8 input."""
    tensors = make_salted_tensors(model, length, salt)
    if form == "raw":
        return model.raw(bytes(tensors[0].to_bytes())), tensors
    return make_salted_request(model, form, length, salt).message(), tensors


def send_answered_request(target: Target, model: Model, form: AnyForm, length: int) -> SaltedRequest:
    """Return a request, and the outputs with which the server was seen to answer it in the usual manner.

    Raises:
        Blocked: it is answered wrongly.
    """
    message, tensors = make_form_request(model, form, length, 1)
    expected = model.expected(tensors)
    with block_if(lambda: True, "the same request in the usual manner is answered wrongly"):
        expect(target.send(message)).tensors(expected).free_of(*WRONG_LENGTH)
    return message, expected


def expect_new_http(target: Target, reply: Reply) -> None:
    """Expect that the target answers the request of a reply, sent whole, in HTTP/1.1: no client sends more to an older one.

    Raises:
        NotApplicable: it answers in HTTP/1.0, which knows no chunks and no interim answers (RFC 9112, 6.1).
    """
    if reply.is_http_1_0 or target.send(reply.exchange.message, fresh=True).is_http_1_0:
        raise NotApplicableError("the target answers in HTTP/1.0")
