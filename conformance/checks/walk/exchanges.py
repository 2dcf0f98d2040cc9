"""The walk over HTTP: four arrays of steps, a row for each role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from conformance.checks.support.versions import default_version
from conformance.checks.walk import own_steps
from conformance.checks.walk.alone import FORM_AXES, Lead, single_values, with_plain_ones
from conformance.checks.walk.axes import KINDS, NEUTRAL, is_excluded, is_heavy
from conformance.checks.walk.covering import Space, Step
from conformance.checks.walk.own_steps import OwnSteps
from conformance.checks.walk.sending import Sender
from conformance.checks.walk.walking import SHRINKING, Walk, observed, taken
from conformance.expect.unmet import NotApplicable
from conformance.roles.model import Model
from conformance.survey.deployed import Deployed, raw_body
from conformance.terms.check import Row, check, rows
from conformance.terms.extensions import BINARY
from conformance.transport.target import Target
from conformance.wire.json_text import parse
from conformance.wire.request import Message

# Kind -> the requirement that a step breaks where nothing else is known of it.
ANSWERS = {"json": "OIP-ANSWER", "binary": "BIN-SAME-AS-JSON-I", "raw": "RAW-ENCODING", "classes": "CLS-HIGHEST"}
# What rows of a kind rest on beside the extension of their requirement: classes are crossed with binary data.
NEEDS: Mapping[str, tuple[str, ...]] = {"classes": BINARY}
PARTS = ("brief", "rest")
# Kind -> the plainest role, and the plainest forms of its tensors.
LEADS: Mapping[str, tuple[str, Sequence[Step]]] = {
    "json": ("identity_int32", ({},)),
    "binary": (
        "identity_int32",
        ({"send": "binary"}, {"want": "binary"}, {"send": "binary", "want": "binary"}),
    ),
    "raw": ("identity_int32", ({"send": "raw", "want": "raw"},)),
    "classes": ("scores", ({"classes": "2"}, {"classes": "2", "send": "binary", "want": "binary"})),
}
BRIEF = 4  # this part of the steps, the first of the array, cover the most and come first
_OTHER_MODELS = ("identity_uint8", "identity_int32")


@cache
def steps_of(kind: str) -> tuple[Step, ...]:
    """Return the steps of a kind of request: an array in which every two values of its axes meet."""
    space = Space(KINDS[kind], lambda *values: is_excluded(kind, *values), is_heavy)
    form = {"send": "raw", "want": "raw"} if kind == "raw" else {}
    return tuple({**NEUTRAL, **form, **step, "corner": str(k)} for k, step in enumerate(space.array()[0]))


@cache
def steps_of_row(kind: str, role: str, part: str) -> tuple[Step, ...]:
    """Return the steps of a role: the brief part, or the rest."""
    steps = steps_of(kind)
    brief = len(steps) // BRIEF
    chosen = steps[:brief] if part == "brief" else steps[brief:]
    return tuple(step for step in chosen if step["role"] == role)


def _rows() -> Iterator[Row]:
    for kind in ANSWERS:
        common: dict[str, Any] = {"answers": (ANSWERS[kind],), "needs": NEEDS.get(kind, ())}
        for role in KINDS[kind]["role"]:
            for part in PARTS:
                yield Row(f"{kind}-{role}-{part}", (kind, part), role=role, thorough=True, **common)
        for number in range(own_steps.PARTS):
            yield Row(
                f"{kind}-{number + 1}", (kind, str(number)), fit=own_steps.FITS[kind], thorough=number > 0, **common
            )


def _single_rows() -> Iterator[Row]:
    for kind, (role, _) in LEADS.items():
        common: dict[str, Any] = {"answers": (ANSWERS[kind],), "needs": NEEDS.get(kind, ())}
        for axis in KINDS[kind]:
            if axis not in ("role", *FORM_AXES):
                for value in dict.fromkeys(step[axis] for step in _single_steps(kind, axis)):
                    values, fit = (kind, axis, value), own_steps.FITS[kind]
                    yield Row("-".join(values), values, role=role, fit=fit, **common)


@cache
def _single_steps(kind: str, axis: str) -> tuple[Step, ...]:
    """Return steps with one value of an axis, plain but for that."""
    role, forms = LEADS[kind]
    plain = [{**NEUTRAL, "role": role, **form} for form in forms]
    return tuple(single_values(KINDS[kind], axis, plain, lambda *values: is_excluded(kind, *values)))


@check("walk.each-value-is-right-alone", answers="OIP-ANSWER")
@rows(*_single_rows())
def each_value_is_right_alone(target: Target, model: Model, kind: str, axis: str, value: str) -> str:
    """A request that is plain but for one thing is answered right, whatever that is."""
    if isinstance(model, Deployed):
        own = OwnSteps(kind, model)
        single, walk = own.single(axis, LEADS[kind][1]), _own_walk(target, own)
    else:
        single, walk = _single_steps(kind, axis), Walk(_sender(target, model))
    steps = with_plain_ones((step for step in single if step[axis] == value), NEUTRAL)
    if not steps:
        raise NotApplicable(f"{model.name} has no such request")
    return observed(len(steps), walk.along(taken(steps, model.salt)))


@check("walk.every-exchange-is-right", answers="OIP-ANSWER")
@rows(*_rows())
def every_exchange_is_right(target: Target, model: Model, kind: str, part: str) -> str:
    """Requests of every kind, in every spelling and on every way, are answered right, one after the other and at once."""
    if isinstance(model, Deployed):
        own = OwnSteps(kind, model)
        steps, walk = own.part(int(part)), _own_walk(target, own, with_lead=True)
    else:
        steps, walk = steps_of_row(kind, model.role.name, part), walk_over_http(target, model, kind)
    return observed(len(steps), walk.along(taken(steps, model.salt)))


def walk_over_http(target: Target, model: Model, kind: str) -> Walk:
    """Return a walk with a role, along whatever steps of a kind."""
    sender = _sender(target, model)
    plainest = target.model(LEADS[kind][0], model.salt)
    if plainest is None:
        return Walk(sender)
    leading = replace(_sender(target, plainest), answers=sender.answers)
    return Walk(sender, lead=Lead(leading, lambda axis: _single_steps(kind, axis), NEUTRAL, target.once))


def _own_walk(target: Target, own: OwnSteps, *, with_lead: bool = False) -> Walk:
    """Return a walk with a deployed model, which leads itself.

    Raises:
        NotApplicable: a raw request to it is refused; whether rightly, the checks of raw requests say.
    """
    if own.kind == "raw" and not target.send(own.model.raw(raw_body(own.model.items()[0])), fresh=True).succeeded:
        raise NotApplicable(f"a raw request to {own.model.name} is refused")
    sender, forms = _sender(target, own.model), LEADS[own.kind][1]
    lead = Lead(sender, lambda axis: own.single(axis, forms), NEUTRAL, target.once) if with_lead else None
    return Walk(sender, own.shrinking(SHRINKING), lead=lead)


def _sender(target: Target, model: Model) -> Sender:
    return Sender(target, model, other_model(target, model), cache(partial(_version, target, model)))


def other_model(target: Target, model: Model) -> Model | None:
    """Return another model, for requests beside those to this one; None where there is none."""
    found = (target.model(name) for name in _OTHER_MODELS if name != model.role.name)
    return next((other for other in found if other), None)


def _version(target: Target, model: Model) -> str:
    """Return the version that the model answers by without one, where its metadata list it; else an empty one."""
    if model.version:
        return model.version
    reply = target.send(Message(model.path, method="GET"))
    document = parse(reply.body).value if reply.succeeded else None
    listed = document.get("versions") if isinstance(document, dict) else None
    versions = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    found = default_version(target, model, versions)
    return found if found.isalnum() else ""
