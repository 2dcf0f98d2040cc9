"""Requests in three forms (JSON, binary data, raw) whose answers can be told apart, and expectations on the answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from conformance.checks.support.framing import WRONG_LENGTH
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.expect.attribution import attribute_missing_answer
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row
from conformance.spec.extensions import BINARY
from conformance.spec.fit import ANY, JSON, RAW_FLOATS, Fit
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import INFERENCE_HEADER, Form, InferRequest, Message
from conformance.wire.tensor import Tensor


def make_salted_request(model: Model, form: Form, length: int, salt: int) -> InferRequest:
    """Return a request whose tensors and id are derived from `salt`."""
    want: Form | None = "binary" if form == "binary" else None
    return model.request(
        make_salted_tensors(model, length, salt), send=form, want=want, request_id=make_salted_id(salt)
    )


def make_salted_id(salt: int) -> str:
    """Return an id derived from `salt`; all have one length, so that no part of one is another."""
    return f"request-{salt:04}"


def make_salted_tensors(model: Model, length: int, salt: int) -> list[Tensor]:
    """Return inputs of `length` elements, or as many as a deployed model accepts, with values derived from `salt`."""
    return model.build_salted_inputs(model.limit_length(length), salt)


def expect_own_answer(target: AnyTarget, reply: Reply, model: Model, length: int, salt: int, requirement: str) -> None:
    """Expect the correct outputs for the request made from `salt`, and not the id of another request.

    A refusal because of load or size is not judged.
    """
    if reply.status in LIMIT_STATUSES:
        return
    found = (reply.answer.document or {}).get("id") if reply.succeeded else None
    own = make_salted_id(salt)
    if isinstance(found, str) and found != own and re.fullmatch(r"request-\d{4}", found):
        raise UnmetError(f"id {own}", f"id {format_value(found)}", reply, requirement=requirement)
    expect_correct_outputs(target, reply, model.expected(make_salted_tensors(model, length, salt)), requirement)


def is_closed_under_load(target: AnyTarget, reply: Reply) -> bool:
    """Return whether the server or its gateway gave up a concurrent request, but answers the same request alone.

    A server may limit its connections, and may close a connection at any time (RFC 9112, 9.4 and 9.5); a gateway may
    wait no longer (RFC 9110, 15.6.5). They mix up no requests by that.

    Raises UnmetError: the server ends the connection of the same request alone as well.
    """
    if reply.is_over_grpc or not reply.has_no_server_answer:
        return False
    alone = target.send(reply.exchange.message, fresh=True)
    if alone.has_ended_unanswered:
        raise expect(alone, attribute_missing_answer(alone)).unmet(
            "an answer or a refusal", escape_text(alone.outcome())
        )
    return alone.succeeded


def expect_correct_outputs(target: AnyTarget, reply: Reply, tensors: Iterable[Tensor], requirement: str) -> None:
    """Expect an answer to contain these tensors; after a failure, send the request again, alone and in one piece.

    If the second answer is correct, any fault in the first answer breaks `requirement`.

    Raises BlockedError: the second answer has the same fault.
    """
    tensors = list(tensors)
    try:
        expect(reply, requirement).tensors(tensors).free_of(*WRONG_LENGTH)
    except UnmetError as unmet:
        alone = target.send(reply.exchange.message, fresh=True)
        refused = not (alone.succeeded or reply.succeeded)
        same = (alone.body, alone.header(INFERENCE_HEADER)) == (reply.body, reply.header(INFERENCE_HEADER))
        if alone.status is not None and alone.status == reply.status and (refused or same):
            reason = "the same request, sent alone and in one piece, gets the same wrong answer"
            raise BlockedError(reason, unmet) from None
        if is_met(lambda: expect(alone).tensors(tensors).free_of(*WRONG_LENGTH)):
            unmet.requirement = requirement  # whatever is wrong with the answer, the other requests are the cause
        raise


def require_answer_alone(target: AnyTarget, reply: Reply) -> None:
    """Require that the server answers a failed request if it is sent alone, on a new connection.

    Raises BlockedError: the server does not answer the request.
    """
    alone = target.send(reply.exchange.message, fresh=True)
    if not alone.succeeded:
        raise BlockedError(f"the server does not answer the same request on a new connection: {alone.outcome()}")


AnyForm = Form | Literal["raw"]
# A request, and its inputs or the expected outputs.
SaltedRequest = tuple[Message, Sequence[Tensor]]

# Status of a server that refuses chunks (RFC 9110, 15.5.12).
LENGTH_REQUIRED = 411

FORMS: tuple[AnyForm, ...] = ("json", "binary", "raw")
NEEDS: Mapping[AnyForm, tuple[str, ...]] = {"json": (), "binary": BINARY, "raw": ("raw",)}
_ROLES: Mapping[AnyForm, str] = {"json": "identity_int32", "binary": "identity_int32", "raw": "identity_uint8"}
_FITS: Mapping[AnyForm, Fit] = {"json": JSON, "binary": ANY, "raw": RAW_FLOATS}


def make_form_row(name: str, form: AnyForm, *values: Any, fits: bool = False) -> Row:
    """Return a row whose values are `form` and then `values`; with `fits`, the row also runs on deployed models."""
    fit = _FITS[form] if fits else None
    return Row(name, (form, *values), role=_ROLES[form], needs=NEEDS[form], fit=fit)


def make_form_request(model: Model, form: AnyForm, length: int, salt: int) -> SaltedRequest:
    """Return a request with inputs of `length` elements derived from `salt`; `raw` needs a model with one input."""
    tensors = make_salted_tensors(model, length, salt)
    if form == "raw":
        return model.raw(bytes(tensors[0].to_bytes())), tensors
    return make_salted_request(model, form, length, salt).message(), tensors


def send_answered_request(target: Target, model: Model, form: AnyForm, length: int) -> SaltedRequest:
    """Send a request without codings, chunks or `Expect`, and require the correct answer.

    Return the request and the expected outputs.

    Raises:
        NotApplicableError: a deployed model refuses raw requests.
        BlockedError: the answer is wrong.
    """
    message, tensors = make_form_request(model, form, length, 1)
    expected = model.expected(tensors)
    if form == "raw":
        require_raw_answered(target, model, message)
    with block_if(lambda: True, "the answer to the same request without the property under test is wrong"):
        expect(target.send(message)).tensors(expected).free_of(*WRONG_LENGTH)
    return message, expected


def require_raw_answered(target: AnyTarget, model: Model, message: Message) -> None:
    """Require that a deployed model does not refuse raw requests; `message` is such a request.

    Raises NotApplicableError: the server refuses the request; the metadata do not tell whether a refusal is allowed.
    """
    if model.is_deployed and target.send(message, fresh=True).is_refusal:
        raise NotApplicableError(f"the server may refuse raw requests to {model.name}")


def require_http_1_1(target: Target, reply: Reply) -> None:
    """Require a target that answers in HTTP/1.1; if needed, send the request of `reply` again to find out.

    Raises:
        NotApplicableError: the target answers in HTTP/1.0, which has no chunks and no interim responses (RFC 9112, 6.1).
    """
    if reply.is_http_1_0 or target.send(reply.exchange.message, fresh=True).is_http_1_0:
        raise NotApplicableError("the target answers in HTTP/1.0")
