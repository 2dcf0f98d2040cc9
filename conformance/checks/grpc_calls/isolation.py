"""Each call gets its own answer, after refusals and during concurrent calls; HTTP and gRPC agree."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.support.controls import expect_answered_or_block, find_answer_form
from conformance.checks.support.ranked_inputs import choose_inputs
from conformance.checks.support.refusals import LIMIT_STATUSES
from conformance.discovery.control_oracle import find_differing_outputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES_OVER_GRPC, GRPC, HTTP
from conformance.spec.fit import ANY, SCORED
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.finding import format_value
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

# --- concurrent calls -------------------------------------------------------------------------------------------------

KINDS = ("classes", "several-models")  # `state.answers-in-flight-are-their-own` has those of one model
MODELS = ("identity_int32", "identity_bytes", "multi", "add_sub", "identity_fp64", "string_length")


@check(
    "grpc.calls-in-flight-are-answered-as-alone",
    answers="OIP-ISOLATION/grpc",
    over=(GRPC,),
    only=Only(GRPC, "`state.forms-in-flight-keep-apart` compares with the role, not with answers alone"),
)
@rows(
    *[
        Row(
            f"{count}-{kind}",
            (kind, count),
            role="scores" if kind == "classes" else "identity_int32",
            needs=CLASSES_OVER_GRPC if kind == "classes" else (),
            fit=SCORED if kind == "classes" and count > 2 else None,
        )
        for kind in KINDS
        for count in (2, 32)
    ]
)
def calls_in_flight_are_answered_as_alone(target: GrpcTarget, model: Model, kind: str, count: int) -> None:
    """The server answers concurrent calls on one connection as it answers each call alone."""
    build_request = _build_own_request if model.is_own_oracle else _build_role_request
    messages = [make_infer_message(build_request(target, model, kind, number)) for number in range(count)]
    alone = [target.send(message) for message in messages]
    if not any(reply.succeeded for reply in alone):
        raise BlockedError(f"a single call is not answered either: {alone[0].outcome()}")
    for usual, found in zip(alone, target.send_together(messages), strict=True):
        if usual.succeeded and found.status not in LIMIT_STATUSES and not _has_same_content(model, found, usual):
            raise UnmetError(
                f"{_describe_answer(usual)}, as in the answer to the call alone", _describe_answer(found), found
            )


def _build_role_request(target: GrpcTarget, model: Model, kind: str, number: int) -> InferRequest:
    """Return request `number` to the model of a role; the id and values are unique to this request."""
    identity = f"request-{number}"
    if kind == "classes":
        scores = model.tensor([float((number * 7 + k * 13) % 97) for k in range(4)])
        wanted = [RequestedOutput(model.role.outputs[0].name, classification=1 + number % 4)]
        return model.request([scores], send=_choose_encoding(number), outputs=wanted, request_id=identity)
    model = target.model(MODELS[number % len(MODELS)]) or model
    tensors = model.build_salted_inputs(3, number)
    return model.request(tensors, send=_choose_encoding(number), request_id=identity)


def _build_own_request(_: GrpcTarget, model: Model, kind: str, number: int) -> InferRequest:
    """Return request `number` for classes of a deployed model; the id and values depend on the number."""
    del kind
    if model.noise:
        raise NotApplicableError(f"the outputs of {model.name} differ a little each time, and so do its classes")
    tensors, right = choose_inputs(replace(model, salt=number), model.find_classifiable_outputs()[0])
    wanted = [RequestedOutput(right.name, classification=model.limit_classes(right, 1 + number % 4))]
    return model.request(tensors, send="json", outputs=wanted, request_id=f"request-{number}")


def _choose_encoding(number: int) -> Form:
    """Return whether request `number` has typed or raw contents, which alternate between rounds of `MODELS`."""
    return "json" if number // len(MODELS) % 2 else "binary"


def _has_same_content(model: Model, found: Reply, usual: Reply) -> bool:
    """Say whether two answers agree; for a deployed model, in its deterministic outputs and within tolerance."""
    if not model.is_own_oracle or not found.succeeded:
        return _summarize_content(found) == _summarize_content(usual)
    frames = [(_read_sent_id(reply), sorted(reply.answer.names())) for reply in (found, usual)]
    return frames[0] == frames[1] and not find_differing_outputs(
        usual, found, model.list_comparable_outputs(), model.noise
    )


def _summarize_content(reply: Reply) -> object:
    """Return the content of an answer, the same for typed and raw contents, without an id that the server invented."""
    if not reply.succeeded:
        return reply.status_line if reply.status else reply.outcome()
    document = reply.answer.document or {}
    outputs = sorted(
        (output.name, output.datatype, str(output.shape), _format_values(output.array))
        for output in reply.answer.outputs
    )
    return _read_sent_id(reply), document.get("model_name"), outputs


def _read_sent_id(reply: Reply) -> str:
    """Return the id of an answer if a request had this id; empty if the server invented the id."""
    found = str((reply.answer.document or {}).get("id", ""))
    return found if found.startswith("request-") else ""


def _format_values(array: object) -> str:
    """Return the elements of an array as text."""
    elements = getattr(array, "tolist", lambda: array)()
    return repr(elements)


def _describe_answer(reply: Reply) -> str:
    """Describe the id and outputs of an answer, or its error."""
    if not reply.succeeded:
        return reply.outcome()
    identity = (reply.answer.document or {}).get("id")
    texts = [f"{format_value(output.name)} {_format_values(output.array)[:80]}" for output in reply.answer.outputs]
    return f"{f'id {format_value(identity)}: ' if identity else ''}{', '.join(texts)}"


# --- calls past their deadline ------------------------------------------------------------------------------------------

# Deadlines of calls, in the notation of `grpc-timeout`: one passes before the call arrives, the others while it is read,
# computed and answered.
SHORT_TIMEOUTS = ("1u", "2m", "8m")
LATE_CALLS = 4  # for each deadline, at the same time
LATE_ELEMENTS = 100_000


@check(
    "grpc.calls-past-their-deadline-harm-nobody",
    answers="OIP-ALIVE-LEGAL/grpc",
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


# --- HTTP and gRPC -----------------------------------------------------------------------------------------------------


@check("grpc.answers-are-those-of-http", answers="GRPC-SAME-AS-HTTP", over=(GRPC, HTTP))
@rows(
    *[Row(name, role=name, needs=() if role.is_json_capable else BINARY) for name, role in load().items()],
    Row("own", fit=ANY),
)
def answers_are_those_of_http(target: GrpcTarget, model: Model) -> None:
    """The server returns the same outputs over gRPC as over HTTP."""
    if model.is_own_oracle:
        tensors = model.sample()
        reply = expect_answered_or_block(target.infer(model.request(tensors, send=find_answer_form(target, model))))
        expect(reply).tensors(model.find_outputs(tensors), through_json=True)
        return
    through_json = model.role.is_json_capable
    request = model.request(send="json" if through_json else "binary", want=None if through_json else "binary")
    over_http = target.over_http.infer(request)
    if not over_http.succeeded:
        raise BlockedError(f"over HTTP the request is not answered: {over_http.outcome()}")
    usual = [
        Tensor(output.name, output.datatype, output.array.shape, output.array)
        for output in over_http.answer.outputs
        if output.array is not None
    ]
    if {tensor.name for tensor in usual} != {spec.name for spec in model.role.outputs}:
        raise BlockedError("over HTTP the answer cannot be read")
    reply = expect_answered_or_block(target.infer(model.request(send=find_answer_form(target, model))))
    expect(reply).tensors(usual, through_json=through_json)
