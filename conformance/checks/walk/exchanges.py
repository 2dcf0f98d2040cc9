"""The checks of the walk: covering arrays of steps over HTTP and over gRPC, with a row for each role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from conformance.checks.support.covering import Step
from conformance.checks.support.documents import list_versions
from conformance.checks.support.step_shrinking import Axes
from conformance.checks.support.versions import find_default_version
from conformance.checks.walk import attribution, attribution_over_grpc, axes_over_grpc
from conformance.checks.walk.axes import KINDS, NEUTRAL, is_excluded
from conformance.checks.walk.calls import CallSender
from conformance.checks.walk.covering_arrays import load_array
from conformance.checks.walk.deployed_steps import DeployedSteps
from conformance.checks.walk.expected import BusyWaits
from conformance.checks.walk.sending import Sender
from conformance.checks.walk.single_factor import BaselineWalker, Walker, interleave_plain_steps, list_single_values
from conformance.checks.walk.walk_rows import (
    Baselines,
    Judged,
    Kinds,
    make_array_rows,
    make_single_value_rows,
    select_part,
)
from conformance.checks.walk.walking import SHRINKING, FindRequirement, Walk, describe_walk, salt_steps
from conformance.discovery.deployed_model import DeployedModel, encode_raw_body
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.extensions import BINARY, CLASSES_OVER_GRPC, GRPC
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target

_OTHER_MODELS = ("identity_uint8", "identity_int32")


@dataclass(frozen=True, slots=True)
class Transport:
    """The walk over one transport.

    Attributes:
        kinds: the kinds of requests, with their axes.
        judged: the requirement of each kind; see `walk_rows`.
        baselines: the simplest role and forms of each kind; see `walk_rows`.
        is_excluded: says whether two values of two axes exclude each other in a kind.
    """

    kinds: Kinds
    judged: Judged
    baselines: Baselines
    neutral: Step
    is_excluded: Callable[[str, str, str, str, str], bool]
    axes: Axes
    find_requirement: FindRequirement
    sender: type[Walker]


# The rows of raw requests and of classes need binary data as well: both kinds are combined with binary data.
HTTP_WALK = Transport(
    kinds=KINDS,
    judged={
        "json": ("OIP-ANSWER", ()),
        "binary": ("BIN-SAME-AS-JSON-I", ()),
        "raw": ("RAW-ENCODING", BINARY),
        "classes": ("CLS-HIGHEST", BINARY),
    },
    baselines={
        "json": ("identity_int32", ({},)),
        "binary": ("identity_int32", ({"send": "binary"}, {"want": "binary"}, {"send": "binary", "want": "binary"})),
        "raw": ("identity_int32", ({"send": "raw", "want": "raw"},)),
        "classes": ("scores", ({"classes": "2"}, {"classes": "2", "send": "binary", "want": "binary"})),
    },
    neutral=NEUTRAL,
    is_excluded=is_excluded,
    axes=SHRINKING,
    find_requirement=attribution.find_requirement,
    sender=Sender,
)
GRPC_WALK = Transport(
    kinds=axes_over_grpc.CALLS,
    judged={"calls": ("GRPC-RAW-AS-TYPED", ()), "classified-calls": ("CLS-HIGHEST/grpc", CLASSES_OVER_GRPC)},
    baselines={
        "calls": ("identity_int32", ({}, {"send": "binary"})),
        "classified-calls": ("scores", ({"classes": "2"}, {"classes": "2", "send": "binary"})),
    },
    neutral=axes_over_grpc.PLAIN_CALL,
    is_excluded=axes_over_grpc.is_excluded_call,
    axes=axes_over_grpc.SHRINKING,
    find_requirement=attribution_over_grpc.find_requirement,
    sender=CallSender,
)
_TRANSPORTS: Mapping[str, Transport] = {kind: walk for walk in (HTTP_WALK, GRPC_WALK) for kind in walk.kinds}


@cache
def build_steps(kind: str) -> tuple[Step, ...]:
    """Return the steps of a kind of request: the steps of its covering array, with a value for every axis."""
    over = _TRANSPORTS[kind]
    form = {"send": "raw", "want": "raw"} if kind == "raw" else {}
    steps = load_array(kind, over.kinds[kind])
    return tuple({**over.neutral, **form, **step} for step in _number_corners(steps))


def _number_corners(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps with the first corner value of each: the steps of a role take one after another."""
    used: Counter[str] = Counter()
    for step in steps:
        yield {**step, "corner": str(used[step["role"]])}
        used[step["role"]] += {"corners": 3}.get(step["values"], int(step["values"].startswith("corner-")))


@cache
def _build_single_value_steps(kind: str, axis: str) -> tuple[Step, ...]:
    """Return the steps of a kind that are plain except for one value of this axis."""
    over = _TRANSPORTS[kind]
    role, forms = over.baselines[kind]
    plain = [{**over.neutral, "role": role, **form} for form in forms]
    return tuple(list_single_values(over.kinds[kind], axis, plain, partial(over.is_excluded, kind)))


def _list_single_value_rows(over: Transport) -> Any:
    return make_single_value_rows(over.kinds, over.judged, over.baselines, _build_single_value_steps)


@check("walk.each-value-is-right-alone", requirements="OIP-ANSWER")
@rows(*_list_single_value_rows(HTTP_WALK))
@check("grpc.each-value-is-right-alone", requirements="GRPC-RAW-AS-TYPED", over=(GRPC,))
@rows(*_list_single_value_rows(GRPC_WALK))
def each_value_is_right_alone(target: Target | GrpcTarget, model: Model, kind: str, axis: str, value: str) -> str:
    """The server correctly answers a request that differs from a plain request in one property."""
    over = _TRANSPORTS[kind]
    if isinstance(model, DeployedModel):
        deployed = DeployedSteps(kind, model)
        single = deployed.list_single_value_steps(axis, over.baselines[kind][1])
        walk = _make_deployed_walk(target, deployed)
    else:
        single = _build_single_value_steps(kind, axis)
        walk = Walk(_make_sender(target, model, over), over.axes, over.find_requirement)
    steps = interleave_plain_steps((step for step in single if step[axis] == value), over.neutral)
    if not steps:
        raise NotApplicableError(f"no request with this property is possible for {model.name}")
    return describe_walk(len(steps), walk.send_steps(salt_steps(steps, model.salt), plain=steps[1::2]))


@check("walk.every-exchange-is-right", requirements="OIP-ANSWER")
@rows(*make_array_rows(HTTP_WALK.kinds, HTTP_WALK.judged, build_steps))
@check("grpc.every-call-is-right", requirements="GRPC-RAW-AS-TYPED", over=(GRPC,))
@rows(*make_array_rows(GRPC_WALK.kinds, GRPC_WALK.judged, build_steps))
def every_exchange_is_right(target: Target | GrpcTarget, model: Model, kind: str, part: str) -> str:
    """The server answers requests of every kind and encoding correctly, in sequence and concurrently."""
    if isinstance(model, DeployedModel):
        deployed = DeployedSteps(kind, model)
        steps, walk = deployed.list_steps_of_part(int(part)), _make_deployed_walk(target, deployed, with_baseline=True)
    else:
        steps, walk = select_part(build_steps(kind), model.role.name, part), make_walk(target, model, kind)
    return describe_walk(len(steps), walk.send_steps(salt_steps(steps, model.salt)))


def make_walk(target: Target | GrpcTarget, model: Model, kind: str) -> Walk:
    """Return a walk that sends steps of a kind to the model of a role."""
    over = _TRANSPORTS[kind]
    sender = _make_sender(target, model, over)
    simplest = target.model(over.baselines[kind][0], model.salt)
    baseline = None
    if simplest is not None:
        walker = replace(_make_sender(target, simplest, over), answers=sender.answers)
        baseline = _make_baseline(target, walker, over, lambda axis: _build_single_value_steps(kind, axis))
    return Walk(sender, over.axes, over.find_requirement, baseline)


def _make_deployed_walk(target: Target | GrpcTarget, deployed: DeployedSteps, *, with_baseline: bool = False) -> Walk:
    """Return a walk with a deployed model.

    Pass `with_baseline` if the walk combines several values: the walk then avoids the values that fail by themselves.

    Raises NotApplicableError: the model refuses a raw request; the checks of raw requests judge this refusal.
    """
    if (
        deployed.kind == "raw"
        and not target.send(deployed.model.raw(encode_raw_body(deployed.model.items()[0])), fresh=True).succeeded
    ):
        raise NotApplicableError(f"the server refuses a raw request to {deployed.model.name}")
    over = _TRANSPORTS[deployed.kind]
    sender, forms = _make_sender(target, deployed.model, over), over.baselines[deployed.kind][1]
    list_steps = cache(partial(deployed.list_single_value_steps, forms=forms))  # the walk asks again for each step
    baseline = _make_baseline(target, sender, over, list_steps) if with_baseline else None
    return Walk(sender, deployed.adapt_axes(over.axes), over.find_requirement, baseline)


def _make_baseline(
    target: Target | GrpcTarget,
    walker: Walker,
    over: Transport,
    list_steps: Callable[[str], Sequence[Step]],
) -> BaselineWalker:
    """Return what finds the values that fail by themselves; the probes over gRPC have names of their own."""
    session = target.over_http if isinstance(target, GrpcTarget) else target
    suffix = " over gRPC" if isinstance(target, GrpcTarget) else ""

    def evaluate_once(name: str, evaluate: Callable[[], bool]) -> bool:
        return session.probe_once(f"{name}{suffix}", evaluate)

    return BaselineWalker(walker, list_steps, over.neutral, evaluate_once, lambda: session.has_hung)


def _make_sender(target: Target | GrpcTarget, model: Model, over: Transport) -> Walker:
    version, waits = cache(partial(_find_version, target, model)), BusyWaits(target.pause)
    return over.sender(target, model, _find_other_model(target, model), version, waits)


def _find_other_model(target: Target | GrpcTarget, model: Model) -> Model | None:
    """Return another model for concurrent requests; None if the server has no other suitable model."""
    found = (target.model(name) for name in _OTHER_MODELS if name != model.role.name)
    return next((other for other in found if other), None)


def _find_version(target: Target | GrpcTarget, model: Model) -> str:
    """Return the default version of a model if the metadata list it, and if it can be named; else an empty string."""
    if model.version:
        return model.version
    found = find_default_version(target, model, list_versions(target, model))
    return found if found.isalnum() or isinstance(target, GrpcTarget) else ""
