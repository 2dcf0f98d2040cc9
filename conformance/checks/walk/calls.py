"""The walk over gRPC: its checks send each step as a call, with a row for each role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from conformance.checks.support.covering import Step
from conformance.checks.support.versions import find_default_version
from conformance.checks.walk import attribution_over_grpc, concurrent_requests
from conformance.checks.walk.axes import CANCELLED
from conformance.checks.walk.axes_over_grpc import CALLS, PLAIN_CALL, SHRINKING, is_excluded_call
from conformance.checks.walk.covering_arrays import load_array
from conformance.checks.walk.deployed_steps import DeployedSteps
from conformance.checks.walk.exchanges import find_other_model
from conformance.checks.walk.expected import (
    EARLIER_IDS,
    BusyWaits,
    EarlierAnswers,
    add_answer,
    expect_right_answer,
    expect_right_answers,
)
from conformance.checks.walk.requests import StepRequest, make_call
from conformance.checks.walk.single_factor import BaselineWalker, interleave_plain_steps, list_single_values
from conformance.checks.walk.walk_rows import Baselines, Judged, make_array_rows, make_single_value_rows, select_part
from conformance.checks.walk.walking import Walk, describe_walk, salt_steps
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.extensions import CLASSES_OVER_GRPC, GRPC
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import InferRequest, Message, RequestedOutput

_JUDGED: Judged = {
    "calls": ("GRPC-RAW-AS-TYPED", ()),
    "classified-calls": ("CLS-HIGHEST/grpc", CLASSES_OVER_GRPC),
}
BASELINES: Baselines = {
    "calls": ("identity_int32", ({}, {"send": "binary"})),
    "classified-calls": ("scores", ({"classes": "2"}, {"classes": "2", "send": "binary"})),
}


@cache
def build_steps(kind: str) -> tuple[Step, ...]:
    """Return the steps of a kind of call: the steps of its covering array, with a value for every axis."""
    return tuple({**PLAIN_CALL, **step, "corner": str(k)} for k, step in enumerate(load_array(kind, CALLS[kind])))


@cache
def _build_single_value_steps(kind: str, axis: str) -> tuple[Step, ...]:
    """Return the steps of a kind that are plain except for one value of this axis."""
    role, forms = BASELINES[kind]
    plain = [{**PLAIN_CALL, "role": role, **form} for form in forms]
    return tuple(list_single_values(CALLS[kind], axis, plain, lambda *values: is_excluded_call(kind, *values)))


@check("grpc.each-value-is-right-alone", answers="GRPC-RAW-AS-TYPED", over=(GRPC,))
@rows(*make_single_value_rows(CALLS, _JUDGED, BASELINES, _build_single_value_steps))
def each_value_is_right_alone(target: GrpcTarget, model: Model, kind: str, axis: str, value: str) -> str:
    """The server correctly answers a call that differs from a plain call in one property."""
    if isinstance(model, DeployedModel):
        deployed = DeployedSteps(kind, model)
        single, walk = deployed.list_single_value_steps(axis, BASELINES[kind][1]), _make_deployed_walk(target, deployed)
    else:
        single, walk = (
            _build_single_value_steps(kind, axis),
            Walk(_make_call_sender(target, model), SHRINKING, attribution_over_grpc.find_requirement),
        )
    steps = interleave_plain_steps((step for step in single if step[axis] == value), PLAIN_CALL)
    if not steps:
        raise NotApplicableError(f"no call with this property is possible for {model.name}")
    return describe_walk(len(steps), walk.send_steps(salt_steps(steps, model.salt), plain=steps[1::2]))


@check("grpc.every-call-is-right", answers="GRPC-RAW-AS-TYPED", over=(GRPC,))
@rows(*make_array_rows(CALLS, _JUDGED, build_steps))
def every_call_is_right(target: GrpcTarget, model: Model, kind: str, part: str) -> str:
    """The server answers calls of every kind correctly, in sequence and concurrently."""
    if isinstance(model, DeployedModel):
        deployed = DeployedSteps(kind, model)
        chosen, walk = deployed.list_steps_of_part(int(part)), _make_deployed_walk(target, deployed, with_baseline=True)
    else:
        chosen = select_part(build_steps(kind), model.role.name, part)
        walk = Walk(
            _make_call_sender(target, model),
            SHRINKING,
            attribution_over_grpc.find_requirement,
            _make_baseline_walker(target, model, kind),
        )
    return describe_walk(len(chosen), walk.send_steps(salt_steps(chosen, model.salt)))


def _make_deployed_walk(target: GrpcTarget, deployed: DeployedSteps, *, with_baseline: bool = False) -> Walk:
    """Return a walk with a deployed model.

    Pass `with_baseline` if the walk combines several values: the walk then avoids the values that fail by themselves.
    """
    call_sender, forms = _make_call_sender(target, deployed.model), BASELINES[deployed.kind][1]
    baseline = (
        BaselineWalker(
            call_sender,
            lambda axis: deployed.list_single_value_steps(axis, forms),
            PLAIN_CALL,
            _make_condition_cache(target),
            lambda: target.over_http.has_hung,
        )
        if with_baseline
        else None
    )
    return Walk(call_sender, deployed.adapt_axes(SHRINKING), attribution_over_grpc.find_requirement, baseline)


def _make_condition_cache(target: GrpcTarget) -> Callable[[str, Callable[[], bool]], bool]:
    """Return a function that evaluates a named condition once and caches the result; HTTP has a separate cache."""
    return lambda name, ask: target.over_http.probe_once(f"{name} over gRPC", ask)


def _make_baseline_walker(target: GrpcTarget, model: Model, kind: str) -> BaselineWalker | None:
    simplest = target.model(BASELINES[kind][0], model.salt)
    if simplest is None:
        return None
    call_sender = _make_call_sender(target, simplest)
    return BaselineWalker(
        call_sender,
        lambda axis: _build_single_value_steps(kind, axis),
        PLAIN_CALL,
        _make_condition_cache(target),
        lambda: target.over_http.has_hung,
    )


def _make_call_sender(target: GrpcTarget, model: Model) -> CallSender:
    return CallSender(
        target,
        model,
        find_other_model(target.over_http, model),
        cache(partial(_find_version, target, model)),
        BusyWaits(target.over_http.pause),
    )


@dataclass(frozen=True, slots=True)
class CallSender:
    """Sends the calls of steps to one model over gRPC; see `sending.Sender` for the attributes."""

    target: GrpcTarget
    model: Model
    other: Model | None
    version: Callable[[], str]
    waits: BusyWaits
    answers: EarlierAnswers = field(default_factory=dict)

    def send_step(self, step: Step, salt: int, *, on_new_connection: bool = False) -> None:
        """Send the call of a step, with its earlier and concurrent calls, and judge the answers.

        Raises:
            Unmet: an answer is wrong.
        """
        self.waits.send(lambda: self._send_once(step, salt, on_new_connection=on_new_connection))

    def _send_once(self, step: Step, salt: int, *, on_new_connection: bool) -> None:
        model = replace(self.model, version=self.version()) if step["path"] == "version" else self.model
        main = make_call(step, model, salt)
        if step["before"] == CANCELLED:
            self.target.cancel(_name_earlier(concurrent_requests.make_good_request(main)), fresh=on_new_connection)
            on_new_connection = False
        elif earlier := _make_earlier_call(step, main):
            add_answer(self.answers, self.target.send(earlier, fresh=on_new_connection), earlier.body)
            on_new_connection = False
        all_requests = [main, *concurrent_requests.make_concurrent_requests(step, model, self.other, salt, make_call)]
        messages = [request.message for request in all_requests]
        alone = len(messages) == 1
        replies = (
            [self.target.send(messages[0], fresh=on_new_connection)] if alone else self.target.send_together(messages)
        )
        expect_right_answers(replies, all_requests, partial(expect_right_answer, answers=self.answers))

    def send_plain_request(self) -> int:
        """Send a plain call on a new connection, ignore its answer, and return the number of the call in the check."""
        plain = self.target.message(self.target.build_good_requests(self.model)[0])
        return self.target.send(plain, fresh=True).exchange.number


# --- earlier calls --------------------------------------------------------------------------------------------------


def _make_earlier_call(step: Step, main: StepRequest) -> Message | None:
    """Return the call to send before the call of a step; None if the step has no earlier call."""
    kind = step["before"]
    if kind in ("near", "larger", "smaller"):
        return concurrent_requests.make_similar_request(step, main, kind, make_call)
    build = _EARLIER_CALLS.get(kind)
    return build(concurrent_requests.make_good_request(main)) if build else None


def _set_fields(**fields: str) -> Callable[[InferRequest], Message]:
    """Return a function that makes the call of a request and sets these fields of its message."""

    def set_fields(message: Any) -> None:
        for name, value in fields.items():
            setattr(message, name, value)

    return lambda request: make_infer_message(request, set_fields)


def _use_raw_contents(request: InferRequest) -> Message:
    return make_infer_message(replace(request, inputs=tuple(replace(item, binary=True) for item in request.inputs)))


def _request_only_output(**output: Any) -> Callable[[InferRequest], Message]:
    return lambda request: make_infer_message(replace(request, outputs=(RequestedOutput(**output),), id=EARLIER_IDS[1]))


def _request_classes(request: InferRequest) -> Message:
    wanted = tuple(replace(output, classification=1) for output in (request.outputs or ())[:1])
    return make_infer_message(replace(request, outputs=wanted))


def _drop_contents(request: InferRequest) -> Message:
    def clear_contents(message: Any) -> None:
        message.inputs[0].ClearField("contents")
        del message.raw_input_contents[:]

    return make_infer_message(replace(request, id=EARLIER_IDS[1]), clear_contents)


def _lengthen_raw_contents(request: InferRequest) -> Message:
    def append_bytes(message: Any) -> None:
        message.raw_input_contents[0] += b"\x00\x00\x00"

    inputs = tuple(replace(item, binary=True) for item in request.inputs)
    return make_infer_message(replace(request, inputs=inputs, id=EARLIER_IDS[1]), append_bytes)


_name_earlier = _set_fields(id=EARLIER_IDS[0])

_EARLIER_CALLS: Mapping[str, Callable[[InferRequest], Message]] = {
    "other-form": _use_raw_contents,
    "with-id": _name_earlier,
    "classes-asked": _request_classes,
    "unknown-model": _set_fields(model_name="no-such-model", id=EARLIER_IDS[1]),
    "unknown-output": _request_only_output(name="NO_SUCH_OUTPUT"),
    "wrong-size": _lengthen_raw_contents,
    "no-contents": _drop_contents,
}


def _find_version(target: GrpcTarget, model: Model) -> str:
    """Return the default version of a model if the metadata list that version, else an empty string."""
    if model.version:
        return model.version
    reply = target.call("ModelMetadata", name=model.name)
    message = parse_message(reply.body, "ModelMetadata") if reply.succeeded else None
    return find_default_version(target, model, list(message.versions)) if message is not None else ""
