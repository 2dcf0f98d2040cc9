"""The first request after a connection was idle, as in a client's pool of connections."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.state.request_forms import (
    AnyForm,
    expect_own_answer,
    make_form_request,
    make_salted_request,
    make_salted_tensors,
    require_answer_alone,
)
from conformance.checks.support.inputs import require_distinct_answers
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.expect.expectation import expect
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, GRPC, RAW
from conformance.spec.fit import JSON
from conformance.transport.any_target import AnyTarget
from conformance.wire.request import Message

# Longer than any pause of the suite within a request, or between two requests on a connection. Real idle times are
# seconds, which are too long for every run: all connections of a row are idle at the same time.
IDLE_S = 0.2
LENGTH = 3
REQUEST_TIMEOUT = 408  # the status with which a server may end an idle connection (RFC 9110, 15.5.9)


@check("state.request-after-idling-is-answered", requirements=("OIP-ISOLATION", "OIP-ALIVE-LEGAL"))
@rows(
    Row("json", (("json",),), role="identity_int32", fit=JSON),
    Row("binary-and-raw", (("binary", "raw"),), role="identity_int32", needs=(*BINARY, *RAW)),
)
@check(
    "grpc.request-after-idling-is-answered", requirements=("OIP-ISOLATION/grpc", "OIP-ALIVE-LEGAL/grpc"), over=(GRPC,)
)
@rows(Row("typed-and-raw", (("json", "binary"),), role="identity_int32", fit=JSON))
def request_after_idling_is_answered(peer: AnyTarget, model: Model, forms: Sequence[AnyForm]) -> None:
    """The server answers the first request after a connection was idle, or has closed the connection."""
    require_distinct_answers(model, *(make_salted_tensors(model, LENGTH, salt) for salt in range(2)))
    pairs = [(_make_message(peer, model, form, 0), _make_message(peer, model, form, 1)) for form in forms]
    for reply in peer.send_after_idling(pairs, IDLE_S):
        if reply.status in (*LIMIT_STATUSES, REQUEST_TIMEOUT):
            continue
        if reply.is_refusal:
            require_answer_alone(peer, reply)
        expect(reply, "OIP-ALIVE-LEGAL").answered()
        expect_own_answer(peer, reply, model, LENGTH, 1, "OIP-ISOLATION")


def _make_message(peer: AnyTarget, model: Model, form: AnyForm, salt: int) -> Message:
    if form == "raw":
        return make_form_request(model, form, LENGTH, salt)[0]
    return peer.message(make_salted_request(model, form, LENGTH, salt))
