"""Requests that can be told apart, and answers that have to be their own."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.checks.support.framing import WRONG_LENGTH
from conformance.checks.support.refusals import DECLINED_STATUSES
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer
from conformance.wire.finding import format_value
from conformance.wire.request import INFERENCE_HEADER, Form, InferRequest
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
