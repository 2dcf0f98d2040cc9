"""Calls past their deadline harm no other call; HTTP and gRPC agree."""

from __future__ import annotations

from conformance.checks.support.controls import expect_answered_or_block, find_answer_form
from conformance.checks.support.datatypes import make_role_rows
from conformance.discovery.control_answers import read_outputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import BlockedError
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import GRPC, HTTP
from conformance.spec.fit import ANY
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Form

# --- calls past their deadline ------------------------------------------------------------------------------------------

# Deadlines of calls, in the notation of `grpc-timeout`: one passes before the call arrives, the others while it is read,
# computed and answered.
SHORT_TIMEOUTS = ("1u", "2m", "8m")
LATE_CALLS = 4  # for each deadline, at the same time
LATE_ELEMENTS = 100_000


@check(
    "grpc.calls-past-their-deadline-harm-nobody",
    requirements="OIP-ALIVE-LEGAL/grpc",
    over=(GRPC,),
    only=Only(GRPC, "requests of HTTP have no deadline"),
)
@rows(  # a server that was judged did not survive them in every third run
    Row("typed", ("json",), role="identity_int32", dangerous=True),
    Row("raw", ("binary",), role="identity_int32", dangerous=True),
)
def calls_past_their_deadline_harm_nobody(target: GrpcTarget, model: Model, send: Form) -> None:
    """The server still answers other calls after the deadlines of some calls have passed."""
    call = make_infer_message(model.request([model.tensor(range(LATE_ELEMENTS), (LATE_ELEMENTS,))], send=send))
    for timeout in SHORT_TIMEOUTS:
        target.send_together([call.with_header("grpc-timeout", timeout)] * LATE_CALLS)
        expect_alive(target, model, "OIP-ALIVE-LEGAL")


@check("grpc.answers-are-those-of-http", requirements="GRPC-SAME-AS-HTTP", over=(GRPC, HTTP))
@rows(*make_role_rows(), Row("deployed", fit=ANY))
def answers_are_those_of_http(target: GrpcTarget, model: Model) -> None:
    """The server returns the same outputs over gRPC as over HTTP."""
    if model.is_deployed:
        tensors = model.sample()
        reply = expect_answered_or_block(target.infer(model.request(tensors, send=find_answer_form(target, model))))
        expect(reply).tensors(model.find_outputs(tensors), through_json=True)
        return
    through_json = model.role.is_json_capable
    request = model.request(send="json" if through_json else "binary", want=None if through_json else "binary")
    over_http = target.over_http.infer(request)
    if not over_http.succeeded:
        raise BlockedError(f"over HTTP the request is not answered: {over_http.outcome()}")
    usual = read_outputs(model, over_http.answer.outputs)
    if {tensor.name for tensor in usual} != {spec.name for spec in model.role.outputs}:
        raise BlockedError("over HTTP the answer cannot be read")
    reply = expect_answered_or_block(target.infer(model.request(send=find_answer_form(target, model))))
    expect(reply).tensors(usual, through_json=through_json)
