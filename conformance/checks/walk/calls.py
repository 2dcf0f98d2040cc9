"""The walk over gRPC: the same steps as calls, a row for each role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from conformance.checks.support.versions import find_default_version
from conformance.checks.walk import attribution_over_grpc, concurrent_requests, deployed_steps
from conformance.checks.walk.axes import is_heavy
from conformance.checks.walk.axes_over_grpc import CALLS, PLAIN_CALL, SHRINKING, is_excluded_call
from conformance.checks.walk.covering import Space, Step
from conformance.checks.walk.deployed_steps import DeployedSteps
from conformance.checks.walk.exchanges import BRIEF_STEPS, PARTS, find_other_model
from conformance.checks.walk.expected import EARLIER_IDS, expect_own
from conformance.checks.walk.requests import StepRequest, make_call
from conformance.checks.walk.single_factor import FORM_AXES, BaselineWalker, interleave_plain_steps, list_single_values
from conformance.checks.walk.walking import Walk, describe_walk, salt_steps
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES_OVER_GRPC, GRPC
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import make_infer_message
from conformance.wire.request import InferRequest, Message, RequestedOutput

_NEEDS: Mapping[str, tuple[str, ...]] = {"calls": (), "classified-calls": CLASSES_OVER_GRPC}
_ANSWERS = {"calls": "GRPC-RAW-AS-TYPED", "classified-calls": "CLS-HIGHEST/grpc"}
# kind -> the simplest role, and the simplest forms of its tensors
BASELINES: Mapping[str, tuple[str, Sequence[Step]]] = {
    "calls": ("identity_int32", ({}, {"send": "binary"})),
    "classified-calls": ("scores", ({"classes": "2"}, {"classes": "2", "send": "binary"})),
}


@cache
def build_steps(kind: str) -> tuple[Step, ...]:
    """Return the steps of a kind of call."""
    space = Space(CALLS[kind], lambda *values: is_excluded_call(kind, *values), is_heavy)
    return tuple({**PLAIN_CALL, **step, "corner": str(k)} for k, step in enumerate(space.array()[0]))


def _rows() -> Iterator[Row]:
    for kind, axes in CALLS.items():
        common: dict[str, Any] = {"answers": (_ANSWERS[kind],), "needs": _NEEDS[kind]}
        for role in axes["role"]:
            for part in PARTS:
                yield Row(f"{kind}-{role}-{part}", (kind, part), role=role, **common)
        for number in range(deployed_steps.PARTS):
            yield Row(
                f"{kind}-{number + 1}",
                (kind, str(number)),
                fit=deployed_steps.FITS[kind],
                **common,
            )


def _single_rows() -> Iterator[Row]:
    for kind, (role, _) in BASELINES.items():
        common: dict[str, Any] = {"answers": (_ANSWERS[kind],), "needs": _NEEDS[kind]}
        for axis in CALLS[kind]:
            if axis not in ("role", *FORM_AXES):
                for value in dict.fromkeys(step[axis] for step in _single_steps(kind, axis)):
                    values, fit = (kind, axis, value), deployed_steps.FITS[kind]
                    yield Row("-".join(values), values, role=role, fit=fit, **common)


@cache
def _single_steps(kind: str, axis: str) -> tuple[Step, ...]:
    """Return steps that are plain except for one value of an axis."""
    role, forms = BASELINES[kind]
    plain = [{**PLAIN_CALL, "role": role, **form} for form in forms]
    return tuple(list_single_values(CALLS[kind], axis, plain, lambda *values: is_excluded_call(kind, *values)))


@check("grpc.each-value-is-right-alone", answers="GRPC-RAW-AS-TYPED", over=(GRPC,))
@rows(*_single_rows())
def each_value_is_right_alone(target: GrpcTarget, model: Model, kind: str, axis: str, value: str) -> str:
    """The server answers a call correctly that differs from a plain one in one thing."""
    if isinstance(model, DeployedModel):
        own = DeployedSteps(kind, model)
        single, walk = own.single(axis, BASELINES[kind][1]), _own_walk(target, own)
    else:
        single, walk = (
            _single_steps(kind, axis),
            Walk(_caller(target, model), SHRINKING, attribution_over_grpc.find_requirement),
        )
    steps = interleave_plain_steps((step for step in single if step[axis] == value), PLAIN_CALL)
    if not steps:
        raise NotApplicableError(f"{model.name} has no such call")
    return describe_walk(len(steps), walk.along(salt_steps(steps, model.salt), plain=steps[1::2]))


@check("grpc.every-call-is-right", answers="GRPC-RAW-AS-TYPED", over=(GRPC,))
@rows(*_rows())
def every_call_is_right(target: GrpcTarget, model: Model, kind: str, part: str) -> str:
    """The server answers calls of every kind correctly, in sequence and concurrently."""
    if isinstance(model, DeployedModel):
        own = DeployedSteps(kind, model)
        chosen, walk = own.part(int(part)), _own_walk(target, own, with_lead=True)
    else:
        chosen = _steps_of_row(kind, model.role.name, part)
        walk = Walk(
            _caller(target, model), SHRINKING, attribution_over_grpc.find_requirement, _lead(target, model, kind)
        )
    return describe_walk(len(chosen), walk.along(salt_steps(chosen, model.salt)))


def _steps_of_row(kind: str, role: str, part: str) -> tuple[Step, ...]:
    steps = build_steps(kind)
    brief = len(steps) // BRIEF_STEPS
    return tuple(step for step in (steps[:brief] if part == "brief" else steps[brief:]) if step["role"] == role)


def _own_walk(target: GrpcTarget, own: DeployedSteps, *, with_lead: bool = False) -> Walk:
    """Return a walk with a deployed model, which is also its own baseline."""
    caller, forms = _caller(target, own.model), BASELINES[own.kind][1]
    lead = (
        BaselineWalker(caller, lambda axis: own.single(axis, forms), PLAIN_CALL, _once(target)) if with_lead else None
    )
    return Walk(caller, own.shrinking(SHRINKING), attribution_over_grpc.find_requirement, lead)


def _once(target: GrpcTarget) -> Callable[[str, Callable[[], bool]], bool]:
    """Return a function that evaluates a named question once and caches the result, for gRPC."""
    return lambda name, ask: target.over_http.ask_once(f"{name} over gRPC", ask)


def _lead(target: GrpcTarget, model: Model, kind: str) -> BaselineWalker | None:
    plainest = target.model(BASELINES[kind][0], model.salt)
    if plainest is None:
        return None
    caller = _caller(target, plainest)
    return BaselineWalker(caller, lambda axis: _single_steps(kind, axis), PLAIN_CALL, _once(target))


def _caller(target: GrpcTarget, model: Model) -> Caller:
    return Caller(target, model, find_other_model(target.over_http, model), cache(partial(_version, target, model)))


@dataclass(frozen=True, slots=True)
class Caller:
    """Sends steps to one model over gRPC; see `sending.Sender`."""

    target: GrpcTarget
    model: Model
    other: Model | None
    version: Callable[[], str]
    answers: set[int] = field(default_factory=set)

    def take(self, step: Step, salt: int, *, anew: bool = False) -> None:
        """Send the call of a step, with its earlier and concurrent calls, and judge the answers.

        Raises:
            Unmet: an answer is wrong.
        """
        model = replace(self.model, version=self.version()) if step["path"] == "version" else self.model
        main = make_call(step, model, salt)
        if earlier := _before(step, main):
            self.answers.add(hash(self.target.send(earlier, fresh=anew).body))
            anew = False
        everything = [main, *concurrent_requests.make_concurrent_requests(step, model, self.other, salt, make_call)]
        messages = [one.message for one in everything]
        alone = len(messages) == 1
        replies = [self.target.send(messages[0], fresh=anew)] if alone else self.target.send_together(messages)
        for reply, one in zip(replies, everything, strict=True):
            expect_own(reply, one, self.answers)

    def wash(self) -> int:
        """Send a plain call on a new connection and ignore its answer; return its number in the check."""
        plain = self.target.message(self.target.build_good_requests(self.model)[0])
        return self.target.send(plain, fresh=True).exchange.number


# --- the call before ------------------------------------------------------------------------------------------------


def _before(step: Step, main: StepRequest) -> Message | None:
    """Return the call to send before that of a step, or None."""
    kind = step["before"]
    if kind in ("near", "larger", "smaller"):
        return concurrent_requests.make_similar_request(step, main, kind, make_call)
    make = _OTHERS.get(kind)
    return make(concurrent_requests.make_good_request(main)) if make else None


def _edited(**fields: str) -> Callable[[InferRequest], Message]:
    def edit(message: Any) -> None:
        for name, value in fields.items():
            setattr(message, name, value)

    return lambda request: make_infer_message(request, edit)


def _other_form(request: InferRequest) -> Message:
    return make_infer_message(replace(request, inputs=tuple(replace(item, binary=True) for item in request.inputs)))


def _listing(**output: Any) -> Callable[[InferRequest], Message]:
    return lambda request: make_infer_message(replace(request, outputs=(RequestedOutput(**output),), id=EARLIER_IDS[1]))


def _classified(request: InferRequest) -> Message:
    wanted = tuple(replace(output, classification=1) for output in (request.outputs or ())[:1])
    return make_infer_message(replace(request, outputs=wanted))


def _without_contents(request: InferRequest) -> Message:
    def empty(message: Any) -> None:
        message.inputs[0].ClearField("contents")
        del message.raw_input_contents[:]

    return make_infer_message(replace(request, id=EARLIER_IDS[1]), empty)


def _wrong_size(request: InferRequest) -> Message:
    def lengthen(message: Any) -> None:
        message.raw_input_contents[0] += b"\x00\x00\x00"

    inputs = tuple(replace(item, binary=True) for item in request.inputs)
    return make_infer_message(replace(request, inputs=inputs, id=EARLIER_IDS[1]), lengthen)


_OTHERS: Mapping[str, Callable[[InferRequest], Message]] = {
    "other-form": _other_form,
    "with-id": _edited(id=EARLIER_IDS[0]),
    "classes-asked": _classified,
    "unknown-model": _edited(model_name="no-such-model", id=EARLIER_IDS[1]),
    "unknown-output": _listing(name="NO_SUCH_OUTPUT"),
    "wrong-size": _wrong_size,
    "no-contents": _without_contents,
}


def _version(target: GrpcTarget, model: Model) -> str:
    """Return the default version of a model if its metadata list it, else an empty string."""
    if model.version:
        return model.version
    reply = target.call("ModelMetadata", name=model.name)
    message = parse_message(reply.body, "ModelMetadata") if reply.succeeded else None
    return find_default_version(target, model, list(message.versions)) if message is not None else ""
