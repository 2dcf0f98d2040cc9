"""The walk over HTTP: four covering arrays of steps, with a row for each role."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from conformance.checks.support.covering import Step
from conformance.checks.support.versions import find_default_version
from conformance.checks.walk.axes import KINDS, NEUTRAL, is_excluded
from conformance.checks.walk.covering_arrays import load_array
from conformance.checks.walk.deployed_steps import DeployedSteps
from conformance.checks.walk.expected import BusyWaits
from conformance.checks.walk.sending import Sender
from conformance.checks.walk.single_factor import BaselineWalker, interleave_plain_steps, list_single_values
from conformance.checks.walk.walk_rows import Baselines, Judged, make_array_rows, make_single_value_rows, select_part
from conformance.checks.walk.walking import SHRINKING, Walk, describe_walk, salt_steps
from conformance.discovery.deployed_model import DeployedModel, encode_raw_body
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.extensions import BINARY
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json
from conformance.wire.request import Message

# The rows of raw requests and of classes need binary data as well: both kinds are combined with binary data.
JUDGED: Judged = {
    "json": ("OIP-ANSWER", ()),
    "binary": ("BIN-SAME-AS-JSON-I", ()),
    "raw": ("RAW-ENCODING", BINARY),
    "classes": ("CLS-HIGHEST", BINARY),
}
BASELINES: Baselines = {
    "json": ("identity_int32", ({},)),
    "binary": (
        "identity_int32",
        ({"send": "binary"}, {"want": "binary"}, {"send": "binary", "want": "binary"}),
    ),
    "raw": ("identity_int32", ({"send": "raw", "want": "raw"},)),
    "classes": ("scores", ({"classes": "2"}, {"classes": "2", "send": "binary", "want": "binary"})),
}
_OTHER_MODELS = ("identity_uint8", "identity_int32")


@cache
def build_steps(kind: str) -> tuple[Step, ...]:
    """Return the steps of a kind of request: the steps of its covering array, with a value for every axis."""
    form = {"send": "raw", "want": "raw"} if kind == "raw" else {}
    return tuple({**NEUTRAL, **form, **step, "corner": str(k)} for k, step in enumerate(load_array(kind, KINDS[kind])))


@cache
def _build_single_value_steps(kind: str, axis: str) -> tuple[Step, ...]:
    """Return the steps of a kind that are plain except for one value of this axis."""
    role, forms = BASELINES[kind]
    plain = [{**NEUTRAL, "role": role, **form} for form in forms]
    return tuple(list_single_values(KINDS[kind], axis, plain, lambda *values: is_excluded(kind, *values)))


@check("walk.each-value-is-right-alone", answers="OIP-ANSWER")
@rows(*make_single_value_rows(KINDS, JUDGED, BASELINES, _build_single_value_steps))
def each_value_is_right_alone(target: Target, model: Model, kind: str, axis: str, value: str) -> str:
    """The server correctly answers a request that differs from a plain request in one property."""
    if isinstance(model, DeployedModel):
        deployed = DeployedSteps(kind, model)
        single, walk = deployed.list_single_value_steps(axis, BASELINES[kind][1]), _make_deployed_walk(target, deployed)
    else:
        single, walk = _build_single_value_steps(kind, axis), Walk(_make_sender(target, model))
    steps = interleave_plain_steps((step for step in single if step[axis] == value), NEUTRAL)
    if not steps:
        raise NotApplicableError(f"no request with this property is possible for {model.name}")
    return describe_walk(len(steps), walk.send_steps(salt_steps(steps, model.salt), plain=steps[1::2]))


@check("walk.every-exchange-is-right", answers="OIP-ANSWER")
@rows(*make_array_rows(KINDS, JUDGED, build_steps))
def every_exchange_is_right(target: Target, model: Model, kind: str, part: str) -> str:
    """The server answers requests of every kind and encoding correctly, in sequence and concurrently."""
    if isinstance(model, DeployedModel):
        deployed = DeployedSteps(kind, model)
        steps, walk = deployed.list_steps_of_part(int(part)), _make_deployed_walk(target, deployed, with_baseline=True)
    else:
        steps, walk = select_part(build_steps(kind), model.role.name, part), make_http_walk(target, model, kind)
    return describe_walk(len(steps), walk.send_steps(salt_steps(steps, model.salt)))


def make_http_walk(target: Target, model: Model, kind: str) -> Walk:
    """Return a walk that sends steps of a kind to the model of a role."""
    sender = _make_sender(target, model)
    simplest = target.model(BASELINES[kind][0], model.salt)
    if simplest is None:
        return Walk(sender)
    baseline_sender = replace(_make_sender(target, simplest), answers=sender.answers)
    return Walk(
        sender,
        baseline=BaselineWalker(
            baseline_sender,
            lambda axis: _build_single_value_steps(kind, axis),
            NEUTRAL,
            target.probe_once,
            lambda: target.has_hung,
        ),
    )


def _make_deployed_walk(target: Target, deployed: DeployedSteps, *, with_baseline: bool = False) -> Walk:
    """Return a walk with a deployed model.

    Pass `with_baseline` if the walk combines several values: the walk then avoids the values that fail by themselves.

    Raises:
        NotApplicable: the model refuses a raw request; the checks of raw requests judge this refusal.
    """
    if (
        deployed.kind == "raw"
        and not target.send(deployed.model.raw(encode_raw_body(deployed.model.items()[0])), fresh=True).succeeded
    ):
        raise NotApplicableError(f"the server refuses a raw request to {deployed.model.name}")
    sender, forms = _make_sender(target, deployed.model), BASELINES[deployed.kind][1]
    baseline = (
        BaselineWalker(
            sender,
            lambda axis: deployed.list_single_value_steps(axis, forms),
            NEUTRAL,
            target.probe_once,
            lambda: target.has_hung,
        )
        if with_baseline
        else None
    )
    return Walk(sender, deployed.adapt_axes(SHRINKING), baseline=baseline)


def _make_sender(target: Target, model: Model) -> Sender:
    version, waits = cache(partial(_find_version, target, model)), BusyWaits(target.pause)
    return Sender(target, model, find_other_model(target, model), version, waits)


def find_other_model(target: Target, model: Model) -> Model | None:
    """Return another model for concurrent requests; None if the server has no other suitable model."""
    found = (target.model(name) for name in _OTHER_MODELS if name != model.role.name)
    return next((other for other in found if other), None)


def _find_version(target: Target, model: Model) -> str:
    """Return the default version of a model if the metadata list that version, else an empty string."""
    if model.version:
        return model.version
    reply = target.send(Message(model.path, method="GET"))
    document = parse_json(reply.body).value if reply.succeeded else None
    listed = document.get("versions") if isinstance(document, dict) else None
    versions = [version for version in listed if isinstance(version, str)] if isinstance(listed, list) else []
    found = find_default_version(target, model, versions)
    return found if found.isalnum() else ""
