"""An answer holds nothing of another request: before it, or in flight beside it."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.state.own_answers import expect_own, salted_request, salted_tensors
from conformance.expect.expectation import expect
from conformance.expect.unmet import Blocked, Unmet
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY
from conformance.transport.target import Target
from conformance.wire.request import Form

# Enough for several reads and writes of any server.
BIG = 65_536


IN_FLIGHT = 32


# --- one answer for one request ----------------------------------------------------------------------------------------


@check("state.answers-in-turn-are-their-own", answers="HTTP-ISOLATION")
@rows(
    *[
        Row(
            f"{role}-{name}-{form}",
            (lengths, form),
            role=role,
            needs=BINARY if form == "binary" else (),
            thorough=BIG in lengths and (role, form) != ("identity_int32", "binary"),
        )
        for role in ("identity_int32", "identity_bytes")
        for name, lengths in {
            "big-small": (BIG, 1),
            "small-big": (1, BIG),
            "shrinking": (1000, 999, 100, 2, 1),
            "growing": (1, 2, 100, 999, 1000),
        }.items()
        for form in ("json", "binary")
    ]
)
def answers_in_turn_are_their_own(target: Target, model: Model, lengths: Sequence[int], form: Form) -> None:
    """An answer holds nothing of the longer or shorter one before it."""
    for salt, length in enumerate(lengths):
        expect_own(
            target, target.infer(salted_request(model, form, length, salt)), model, length, salt, "HTTP-ISOLATION"
        )


@check("state.forms-in-turn-keep-apart", answers="HTTP-ISOLATION")
@rows(*[Row(role, role=role, needs=BINARY) for role in ("identity_int32", "identity_bytes")])
def forms_in_turn_keep_apart(target: Target, model: Model) -> None:
    """JSON and binary requests follow each other on one connection without a trace of the one before."""
    forms: tuple[Form, ...] = ("json", "binary", "json", "binary", "binary", "json")
    for salt, form in enumerate(forms):
        reply = target.infer(salted_request(model, form, 5 + salt, salt))
        expect_own(target, reply, model, 5 + salt, salt, "HTTP-ISOLATION")


@check("state.id-is-not-left-over", answers="HTTP-ISOLATION", role="identity_int32")
def id_is_not_left_over(target: Target, model: Model) -> None:
    """A request without an id is not answered with the id of the one before."""
    target.infer(model.request(send="json", request_id="the-one-before"))
    reply = target.infer(model.request(send="json"))
    if (expect(reply).answered().reply.answer.document or {}).get("id") == "the-one-before":
        raise Unmet("no id, or one of its own", 'id "the-one-before"', reply)


@check("state.like-requests-have-answers-of-their-own", answers="HTTP-ISOLATION", role="identity_int32")
@rows("json", Row("binary", ("binary",), needs=BINARY))
def like_requests_have_answers_of_their_own(target: Target, model: Model, form: Form) -> None:
    """A request that differs in its elements alone from the one before, with the same id, is not answered like it."""
    first, second = (salted_tensors(model, 3, salt) for salt in (1, 2))
    want: Form | None = "binary" if form == "binary" else None
    before, reply = (
        target.infer(model.request(tensors, send=form, want=want, request_id="the-same")) for tensors in (first, second)
    )
    try:
        expect(reply).tensors(model.expected(second))
    except Unmet as unmet:
        expect(before, "OIP-ANSWER").tensors(model.expected(first))
        if (reply.status, reply.body) == (before.status, before.body):
            raise
        raise Blocked("the second request is answered wrongly, and unlike the first", unmet) from None


@check("state.answers-in-flight-are-their-own", answers="HTTP-ISOLATION")
@rows(
    *[
        Row(f"{role}-{form}", (form,), role=role, needs=BINARY if form == "binary" else ())
        for role in ("identity_int32", "identity_bytes", "batching")
        for form in ("json", "binary")
    ],
    Row("multi-json", ("json",), role="multi"),
)
def answers_in_flight_are_their_own(target: Target, model: Model, form: Form) -> None:
    """Each of 32 requests in flight together gets its own id and tensors."""
    lengths = [1 + k % 5 if model.role.batching else 1 + 3 * k for k in range(IN_FLIGHT)]
    messages = [salted_request(model, form, length, k).message() for k, length in enumerate(lengths)]
    for k, reply in enumerate(target.send_together(messages)):
        expect_own(target, reply, model, lengths[k], k, "HTTP-ISOLATION")
