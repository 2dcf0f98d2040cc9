"""Distinguishable requests in each of the three forms: JSON, binary data and raw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from conformance.checks.support.framing import WRONG_LENGTH
from conformance.checks.support.refusals import DECLINED_STATUSES
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY, JSON, RAW_FLOATS, Fit
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import INFERENCE_HEADER, Form, InferRequest, Message
from conformance.wire.tensor import Tensor


def make_salted_request(model: Model, form: Form, length: int, salt: int) -> InferRequest:
    """Return a request whose tensors and id are unique to its salt."""
    want: Form | None = "binary" if form == "binary" else None
    return model.request(make_salted_tensors(model, length, salt), send=form, want=want, request_id=f"request-{salt}")


def make_salted_tensors(model: Model, length: int, salt: int) -> list[Tensor]:
    """Return inputs of `length` elements, or as many as a deployed model accepts; they depend on the salt."""
    return model.build_salted_inputs(model.limit_length(length), salt)


def expect_own(target: Peer, reply: Reply, model: Model, length: int, salt: int, requirement: str) -> None:
    """Expect the correct outputs for a request, and not the id of another request."""
    if reply.status in DECLINED_STATUSES:
        return
    found = (reply.answer.document or {}).get("id") if reply.succeeded else None
    if isinstance(found, str) and found.startswith("request-") and found != f"request-{salt}":
        raise UnmetError(f"id request-{salt}", f"id {format_value(found)}", reply, requirement=requirement)
    expect_correct_outputs(target, reply, model.expected(make_salted_tensors(model, length, salt)), requirement)


def expect_correct_outputs(target: Peer, reply: Reply, tensors: Iterable[Tensor], requirement: str) -> None:
    """Expect an answer to contain these tensors; block if the request fails in the same way when sent alone.

    If it is answered correctly alone, the failure breaks `requirement`, whatever part of the answer is wrong.

    Raises:
        Unmet: the answer is wrong.
        Blocked: the same request, sent alone and in one piece, gets the same wrong answer.
    """
    tensors = list(tensors)
    try:
        expect(reply, requirement).tensors(tensors).free_of(*WRONG_LENGTH)
    except UnmetError as unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        refused = not (alone.succeeded or reply.succeeded)
        same = (alone.body, alone.header(INFERENCE_HEADER)) == (reply.body, reply.header(INFERENCE_HEADER))
        if alone.status is not None and alone.status == reply.status and (refused or same):
            reason = "the same request is answered as wrongly when it is sent alone and in one piece"
            raise BlockedError(reason, unmet) from None
        if is_met(lambda: expect(alone).tensors(tensors).free_of(*WRONG_LENGTH)):
            unmet.requirement = requirement  # whatever is wrong with the answer, the other requests are the cause
        raise


def require_answer_alone(target: Peer, reply: Reply) -> None:
    """Require that the server answers a failed request if it is sent alone, on a new connection.

    Raises:
        Blocked: it does not.
    """
    alone = target.send(reply.exchange.message, fresh=True)
    if not alone.succeeded:
        raise BlockedError(f"the same request on a new connection is not answered: {alone.outcome()}")


AnyForm = Form | Literal["raw"]
# A request and its inputs.
SaltedRequest = tuple[Message, Sequence[Tensor]]

# Status of a server that refuses chunks (RFC 9110, 15.5.12).
LENGTH_REQUIRED = 411

FORMS: tuple[AnyForm, ...] = ("json", "binary", "raw")
NEEDS: Mapping[AnyForm, tuple[str, ...]] = {"json": (), "binary": BINARY, "raw": ("raw",)}
_ROLES: Mapping[AnyForm, str] = {"json": "identity_int32", "binary": "identity_int32", "raw": "identity_uint8"}
_FITS: Mapping[AnyForm, Fit] = {"json": JSON, "binary": ANY, "raw": RAW_FLOATS}


def make_form_row(name: str, form: AnyForm, *values: Any, fits: bool = False) -> Row:
    """Return a row for one form, passed to the check before `values`; with `fits`, it also runs on deployed models."""
    fit = _FITS[form] if fits else None
    return Row(name, (form, *values), role=_ROLES[form], needs=NEEDS[form], fit=fit)


def make_form_request(model: Model, form: AnyForm, length: int, salt: int) -> SaltedRequest:
    """Return a request with `length` elements that depend on the salt; a raw one needs a model with one input."""
    tensors = make_salted_tensors(model, length, salt)
    if form == "raw":
        return model.raw(bytes(tensors[0].to_bytes())), tensors
    return make_salted_request(model, form, length, salt).message(), tensors


def send_answered_request(target: Target, model: Model, form: AnyForm, length: int) -> SaltedRequest:
    """Send a request in the usual way and expect the correct answer; return the request and those outputs.

    Raises:
        NotApplicable: a deployed model refuses raw requests.
        Blocked: the answer is wrong.
    """
    message, tensors = make_form_request(model, form, length, 1)
    expected = model.expected(tensors)
    if form == "raw":
        require_raw(target, model, message)
    with block_if(lambda: True, "the same request in the usual manner is answered wrongly"):
        expect(target.send(message)).tensors(expected).free_of(*WRONG_LENGTH)
    return message, expected


def require_raw(target: Target, model: Model, message: Message) -> None:
    """Require an answer to a raw request to a deployed model.

    Raises:
        NotApplicable: the server refuses the request; metadata do not tell whether it may do so.
    """
    if model.is_own_oracle and target.send(message, fresh=True).is_refusal:
        raise NotApplicableError(f"{model.name} may be refused in a raw request")


def require_http_1_1(target: Target, reply: Reply) -> None:
    """Require a target that answers in HTTP/1.1; if needed, send the request of `reply` again to find out.

    Raises:
        NotApplicable: the target answers in HTTP/1.0, which has no chunks and no interim responses (RFC 9112, 6.1).
    """
    if reply.is_http_1_0 or target.send(reply.exchange.message, fresh=True).is_http_1_0:
        raise NotApplicableError("the target answers in HTTP/1.0")
