"""Each call gets its own answer, after refusals and during concurrent calls; HTTP and gRPC agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance.checks.support.over_grpc import (
    NUMBERS,
    change_nothing,
    cut_raw_contents,
    expect_answered_or_block,
    find_answer_form,
    make_faulty_call,
    set_raw_contents,
    set_shape,
)
from conformance.checks.support.ranked_inputs import choose_inputs
from conformance.checks.support.refusals import DECLINED_STATUSES, Refusal
from conformance.discovery.control_oracle import find_differing_outputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, is_met
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.spec.check import Row, check, rows, rows_for_role
from conformance.spec.extensions import BINARY, CLASSES_OVER_GRPC, GRPC, HTTP
from conformance.spec.fit import ANY, JSON, SCORED, SEVERAL_OUTPUTS, Fit
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.finding import format_value
from conformance.wire.grpc_request import Pb, make_infer_message
from conformance.wire.request import Form, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

# --- after a refusal ---------------------------------------------------------------------------------------------------


def _name_unknown_model(request: Pb) -> None:
    request.model_name = "there-is-no-such-model"


def _request_unknown_output(request: Pb) -> None:
    request.outputs.add(name="THERE_IS_NO_SUCH_OUTPUT")


# One refusal of each kind: an unknown model, a wrong request, wrong typed and raw contents, and an invalid message.
_REFUSALS = (
    make_faulty_call("unknown-model", "OIP-REFUSAL/grpc", "identity_int32", _name_unknown_model),
    make_faulty_call("unknown-output", "OIP-REFUSAL/grpc", "identity_int32", _request_unknown_output, fit=ANY),
    make_faulty_call(
        "no-message", "OIP-REFUSAL/grpc", "identity_int32", change_nothing, body=lambda _: b"\xff\xff\xff", fit=ANY
    ),
    make_faulty_call("raw-one-byte-short", "GRPC-SIZE-WRONG", "identity_int32", set_raw_contents(bytes(11)), "binary"),
    make_faulty_call("typed-one-element-long", "GRPC-SIZE-WRONG", "identity_int32", set_shape(2)),
    make_faulty_call("own-raw-one-byte-short", "GRPC-SIZE-WRONG", None, cut_raw_contents, "binary", fit=NUMBERS),
)


@check("grpc.call-after-a-refusal-has-its-own-answer", answers="OIP-ALIVE/grpc", over=(GRPC,))
@rows(
    *[
        Row(
            f"{refusal.fault}{'-fresh' if fresh else ''}",
            (refusal, fresh),
            refusal.role,
            fit=None if fresh else refusal.fit,
        )
        for refusal in _REFUSALS
        for fresh in (False, True)
        if refusal.role or not fresh
    ]
)
def call_after_a_refusal_has_its_own_answer(target: GrpcTarget, model: Model, refusal: Refusal, fresh: bool) -> None:
    """The server answers the call after a refused one with its own tensors, on the same connection or a new one."""
    first, second = (replace(model, salt=(model.salt + step) % 256) for step in (53, 106))
    right, stale = second.expected(second.sample()), first.expected(first.sample())
    if not model.can_distinguish(first.sample(), second.sample()):
        raise NotApplicableError(f"{model.name} gives the same answer to different inputs")
    send = find_answer_form(target, model)
    before = target.infer(first.request(send=send, request_id="the-one-before"))
    target.send(refusal.message(model))
    after = target.send(make_infer_message(second.request(send=send)), fresh=fresh)
    if is_met(lambda: expect(after).tensors(right, through_json=False)):
        return
    if before.succeeded and is_met(lambda: expect(after).tensors(stale, through_json=False)):
        raise UnmetError(
            "the tensors of the call after the refused one", "the tensors of the call before the refused one", after
        )
    raise BlockedError(f"the call after the refused one is not answered correctly: {after.outcome()}")


# --- options of the previous call -------------------------------------------------------------------------------------


REFUSAL_REQUIREMENTS = ("OIP-ALIVE/grpc",)
UNKNOWN_OUTPUT = "THERE_IS_NO_SUCH_OUTPUT"


@check("grpc.option-of-the-call-before-is-gone", answers="OIP-ISOLATION/grpc", over=(GRPC,))
@rows(
    *rows_for_role(
        "scores_two_outputs",
        Row("list", (("RANKS",), False)),
        Row("list-of-a-refused-call", (("RANKS", UNKNOWN_OUTPUT), False), answers=REFUSAL_REQUIREMENTS),
        Row("classes", (("RANKS",), True), needs=CLASSES_OVER_GRPC),
        Row(
            "classes-of-a-refused-call",
            (("RANKS", UNKNOWN_OUTPUT), True),
            answers=REFUSAL_REQUIREMENTS,
            needs=CLASSES_OVER_GRPC,
        ),
    ),
    Row("own-list", ((), False), fit=SEVERAL_OUTPUTS),
    Row("own-classes", ((), True), fit=SCORED, needs=CLASSES_OVER_GRPC),
    Row(
        "own-classes-of-a-refused-call",
        ((UNKNOWN_OUTPUT,), True),
        fit=SCORED,
        answers=REFUSAL_REQUIREMENTS,
        needs=CLASSES_OVER_GRPC,
    ),
)
def option_of_the_call_before_is_gone(
    target: GrpcTarget, model: Model, listed: Sequence[str], classified: bool
) -> None:
    """The server forgets the options of a call before it handles the next."""
    if model.is_own_oracle:
        listed = (model.find_classifiable_outputs()[0] if classified else model.role.outputs[-1].name, *listed)
        model.find_outputs(model.sample())  # repeats the control request, to detect answers that differ
    plain = model.request(send="json")
    usual = target.infer(plain)
    outputs = [RequestedOutput(name, classification=1) if classified else RequestedOutput(name) for name in listed]
    target.infer(model.request(send="json", outputs=outputs))
    after = target.infer(plain)
    if usual.succeeded and not _has_same_content(model, after, usual):
        raise UnmetError(f"{_describe_answer(usual)}, as in the answer before", _describe_answer(after), after)


# --- concurrent calls -------------------------------------------------------------------------------------------------

KINDS = ("typed", "raw", "classes", "several-models")
MODELS = ("identity_int32", "identity_bytes", "multi", "add_sub", "identity_fp64", "string_length")


_FITS: Mapping[str, Fit] = {"typed": JSON, "raw": ANY, "classes": SCORED}


@check("grpc.calls-in-flight-are-answered-as-alone", answers="OIP-ISOLATION/grpc", over=(GRPC,))
@rows(
    *[
        Row(
            f"{count}-{kind}",
            (kind, count),
            role="scores" if kind == "classes" else "identity_int32",
            needs=CLASSES_OVER_GRPC if kind == "classes" else (),
            fit=_FITS.get(kind) if count > 2 else None,
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
        if usual.succeeded and found.status not in DECLINED_STATUSES and not _has_same_content(model, found, usual):
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
    if kind == "several-models":
        model = target.model(MODELS[number % len(MODELS)]) or model
        tensors = model.build_salted_inputs(3, number)
        return model.request(tensors, send=_choose_encoding(number), request_id=identity)
    send: Form = "json" if kind == "typed" else "binary"
    return model.request(model.build_salted_inputs(1 + number, number), send=send, request_id=identity)


def _build_own_request(_: GrpcTarget, model: Model, kind: str, number: int) -> InferRequest:
    """Return request `number` to a deployed model; the id and values depend on the number."""
    tensors: Sequence[Tensor] = model.build_salted_inputs(1 + number % 8, number)
    identity, send = f"request-{number}", "binary" if kind == "raw" else "json"
    if kind == "classes":
        if model.noise:
            raise NotApplicableError(f"the outputs of {model.name} differ a little each time, and so do its classes")
        tensors, right = choose_inputs(replace(model, salt=number), model.find_classifiable_outputs()[0])
        count = model.limit_classes(right, 1 + number % 4)
        return model.request(
            tensors, send="json", outputs=[RequestedOutput(right.name, classification=count)], request_id=identity
        )
    model.find_outputs(tensors)
    return model.request(tensors, send=send, request_id=identity)


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


@check("grpc.calls-past-their-deadline-harm-nobody", answers="OIP-ALIVE-LEGAL/grpc", over=(GRPC,))
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
