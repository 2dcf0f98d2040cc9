"""A call has an answer of its own, whatever was refused before it and whatever is in flight beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.checks.support.grpc_edits import faulty_call, nothing, set_raw, set_shape
from conformance.checks.support.over_grpc import form_of
from conformance.checks.support.refusals import DECLINED, Refusal
from conformance.expect.expectation import expect
from conformance.expect.unmet import Blocked, Unmet, holds
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import CLASSES_OVER_GRPC, GRPC
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.finding import shown
from conformance.wire.grpc_request import Pb, infer_message
from conformance.wire.request import Form, InferRequest, Output

# --- after a refusal ---------------------------------------------------------------------------------------------------


def _unknown_model(request: Pb) -> None:
    request.model_name = "there-is-no-such-model"


def _unknown_output(request: Pb) -> None:
    request.outputs.add(name="THERE_IS_NO_SUCH_OUTPUT")


# One refusal of each kind: before the model is known, by what is asked of it, by contents of both forms, and no message.
_REFUSED = (
    faulty_call("unknown-model", "OIP-REFUSAL/grpc", "identity_int32", _unknown_model),
    faulty_call("unknown-output", "OIP-REFUSAL/grpc", "identity_int32", _unknown_output),
    faulty_call("no-message", "OIP-REFUSAL/grpc", "identity_int32", nothing, body=lambda _: b"\xff\xff\xff"),
    faulty_call("raw-one-byte-short", "GRPC-SIZE-WRONG", "identity_int32", set_raw(bytes(11)), "binary"),
    faulty_call("typed-one-element-long", "GRPC-SIZE-WRONG", "identity_int32", set_shape(2)),
)


@check("grpc.call-after-a-refusal-has-its-own-answer", answers="OIP-ALIVE/grpc", over=(GRPC,))
@rows(
    *[
        Row(f"{refusal.fault}{'-fresh' if fresh else ''}", (refusal, fresh), role=refusal.role)
        for refusal in _REFUSED
        for fresh in (False, True)
    ]
)
def call_after_a_refusal_has_its_own_answer(target: GrpcTarget, model: Model, refusal: Refusal, fresh: bool) -> None:
    """The call after a refused one is not answered like the one before that, on its connection or on another."""
    first, second = (replace(model, salt=(model.salt + step) % 256) for step in (53, 106))
    send = form_of(target, model)
    before = target.infer(first.request(send=send, request_id="the-one-before"))
    target.send(refusal.message(model))
    after = target.send(infer_message(second.request(send=send)), fresh=fresh)
    right = second.expected(second.sample())
    if holds(lambda: expect(after).tensors(right, through_json=False)):
        return
    stale = first.expected(first.sample())
    if before.succeeded and holds(lambda: expect(after).tensors(stale, through_json=False)):
        raise Unmet("the tensors of this call", "those of the call before the refused one", after)
    raise Blocked(f"the call after the refused one is not answered right: {after.outcome()}")


# --- an option of the call before --------------------------------------------------------------------------------------


@check("grpc.option-of-the-call-before-is-gone", answers="OIP-ISOLATION/grpc", role="scores_two_outputs", over=(GRPC,))
@rows(
    Row("list", (("RANKS",), False)),
    Row("list-of-a-refused-call", (("RANKS", "THERE_IS_NO_SUCH_OUTPUT"), False), answers=("OIP-ALIVE/grpc",)),
    Row("classes", (("RANKS",), True), needs=CLASSES_OVER_GRPC),
    Row(
        "classes-of-a-refused-call",
        (("RANKS", "THERE_IS_NO_SUCH_OUTPUT"), True),
        answers=("OIP-ALIVE/grpc",),
        needs=CLASSES_OVER_GRPC,
    ),
)
def option_of_the_call_before_is_gone(
    target: GrpcTarget, model: Model, listed: Sequence[str], classified: bool
) -> None:
    """A call that lists no outputs gets all, unclassified, also after one that listed or classified some."""
    plain = model.request(send="json")
    usual = target.infer(plain)
    outputs = [Output(name, classification=1) if classified else Output(name) for name in listed]
    target.infer(model.request(send="json", outputs=outputs))
    after = target.infer(plain)
    if usual.succeeded and _gist(after) != _gist(usual):
        raise Unmet(f"{_told(usual)}, as before", _told(after), after)


# --- in flight ---------------------------------------------------------------------------------------------------------

KINDS = ("typed", "raw", "classes", "several-models")
MODELS = ("identity_int32", "identity_bytes", "multi", "add_sub", "identity_fp64", "string_length")


@check("grpc.calls-in-flight-are-answered-as-alone", answers="OIP-ISOLATION/grpc", over=(GRPC,))
@rows(
    *[
        Row(
            f"{count}-{kind}",
            (kind, count),
            role="scores" if kind == "classes" else "identity_int32",
            needs=CLASSES_OVER_GRPC if kind == "classes" else (),
        )
        for kind in KINDS
        for count in (2, 32)
    ]
)
def calls_in_flight_are_answered_as_alone(target: GrpcTarget, model: Model, kind: str, count: int) -> None:
    """Calls in flight together on one connection are each answered as they are alone."""
    messages = [infer_message(_request(target, model, kind, place)) for place in range(count)]
    alone = [target.send(message) for message in messages]
    if not any(reply.succeeded for reply in alone):
        raise Blocked(f"alone the calls are not answered, either: {alone[0].outcome()}")
    for usual, found in zip(alone, target.send_together(messages), strict=True):
        if usual.succeeded and found.status not in DECLINED and _gist(found) != _gist(usual):
            raise Unmet(f"{_told(usual)}, as alone", _told(found), found)


def _request(target: GrpcTarget, model: Model, kind: str, place: int) -> InferRequest:
    """Return a request that no other place has, with an id."""
    identity = f"request-{place}"
    if kind == "classes":
        scores = model.tensor([float((place * 7 + k * 13) % 97) for k in range(4)])
        wanted = [Output(model.role.outputs[0].name, classification=1 + place % 4)]
        return model.request([scores], send=_form(place), outputs=wanted, request_id=identity)
    if kind == "several-models":
        model = target.model(MODELS[place % len(MODELS)]) or model
        tensors = model.salted(3, place)
        return model.request(tensors, send=_form(place), request_id=identity)
    send: Form = "json" if kind == "typed" else "binary"
    return model.request(model.salted(1 + place, place), send=send, request_id=identity)


def _form(place: int) -> Form:
    return "json" if place // len(MODELS) % 2 else "binary"


def _gist(reply: Reply) -> object:
    """Return what an answer says, in whichever form, but for an id that nobody gave it."""
    if not reply.succeeded:
        return reply.status_line if reply.status else reply.outcome()
    document = reply.answer.document or {}
    given = str(document.get("id", ""))
    own = given if given.startswith("request-") else ""
    outputs = sorted(
        (output.name, output.datatype, str(output.shape), _values(output.array)) for output in reply.answer.outputs
    )
    return own, document.get("model_name"), outputs


def _values(array: object) -> str:
    elements = getattr(array, "tolist", lambda: array)()
    return repr(elements)


def _told(reply: Reply) -> str:
    if not reply.succeeded:
        return reply.outcome()
    identity = (reply.answer.document or {}).get("id")
    texts = [f"{shown(output.name)} {_values(output.array)[:80]}" for output in reply.answer.outputs]
    return f"{f'id {shown(identity)}: ' if identity else ''}{', '.join(texts)}"
