"""The checks of the walk over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from conformance.checks.walk import blame
from conformance.checks.walk.axes import AXES, COUNTS, KINDS, NEUTRAL, is_excluded, is_heavy, is_invalid
from conformance.checks.walk.covering import Space, Step
from conformance.checks.walk.sending import Walker
from conformance.checks.walk.shrinking import Axes, Shrunk, Taken, shrunk
from conformance.expect.unmet import Unmet
from conformance.roles.model import Model
from conformance.roles.roles import load
from conformance.terms.check import Row, check, rows
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.json_text import parse
from conformance.wire.request import Message

# Kind -> the requirement that a step breaks where nothing else is known of it.
_ANSWERS = {"json": "OIP-ANSWER", "binary": "BIN-EQ-I", "raw": "RAW-ENC", "classes": "CLS-TOPN"}
_BRIEF = 4  # `quick` takes this part of the steps, the first of the array, which cover the most
_OTHER_MODELS = ("identity_uint8", "identity_int32")
SHRINKING = Axes(
    order=[axis for axis in AXES if axis not in ("send", "want", "classes")],
    neutral=NEUTRAL,
    smaller={"count": COUNTS},
    forms=(
        {"send": "json", "want": "nothing", "classes": "none"},
        {"send": "binary", "want": "nothing", "classes": "none"},
        {"send": "json", "want": "binary", "classes": "none"},
        {"send": "binary", "want": "binary", "classes": "none"},
        {"send": "json", "want": "nothing"},
        {"send": "binary", "want": "nothing"},
    ),
    is_invalid=is_invalid,
)


@cache
def steps_of(kind: str) -> tuple[Step, ...]:
    """Return the steps of a kind of request: an array in which every two values of its axes meet."""
    space = Space(KINDS[kind], lambda *values: is_excluded(kind, *values), is_heavy)
    form = {"send": "raw", "want": "raw"} if kind == "raw" else {}
    return tuple({**NEUTRAL, **form, **step} for step in space.array()[0])


@cache
def steps_of_row(kind: str, role: str, part: str) -> tuple[Step, ...]:
    """Return the steps of a role: the brief part, or the rest."""
    steps = steps_of(kind)
    brief = len(steps) // _BRIEF
    chosen = steps[:brief] if part == "brief" else steps[brief:]
    return tuple(step for step in chosen if step["role"] == role)


def _rows() -> Iterator[Row]:
    for kind, axes in KINDS.items():
        for role in axes["role"]:
            for part in ("brief", "rest"):
                name = f"{kind}-{role}-{part}"
                values = (kind, role, part)
                yield Row(name, values, role=role, thorough=part == "rest", answers=(_ANSWERS[kind],))


@check("walk.every-exchange-is-right", answers="OIP-ANSWER")
@rows(*_rows())
def every_exchange_is_right(target: Target, model: Model, kind: str, role: str, part: str) -> str:
    """Requests of every kind, in every spelling and on every way, are answered right, one after the other and at once."""
    steps = steps_of_row(kind, role, part)
    declined = Walk(target, model).along([(step, (model.salt + 7 * k) % 256) for k, step in enumerate(steps)])
    return f"{len(steps)} steps" + (f", {declined} of them declined" if declined else "")


class Walk:
    """A walk with one model."""

    def __init__(self, target: Target, model: Model) -> None:
        other = next((name for name in _OTHER_MODELS if name != model.role.name and target.model(name)), None)
        beside = target.model(other) if other else None
        self._walker = Walker(target, model, beside, _version(target, model))
        self._role = load()[model.role.name]

    def along(self, sequence: Sequence[Taken]) -> int:
        """Take steps one after the other on one connection; return how many requests the server had no room for.

        Raises:
            Unmet: a step is answered wrongly.
        """
        declined = 0
        for k, (step, salt) in enumerate(sequence):
            try:
                self._walker.take(step, salt, anew=k == 0)
            except Unmet as unmet:
                found = shrunk(sequence[: k + 1], unmet, self._trial, SHRINKING)
                if not (blame.is_declined(found) or (blame.is_like_a_limit(found) and self._is_limit(found, salt))):
                    raise self._named(found) from None
                declined += 1
        return declined

    def _trial(self, sequence: Sequence[Taken]) -> Unmet | None:
        """Take steps from a fresh connection on; return what is unmet at the last one, or None.

        A plain request goes first, on a connection of its own: what an earlier trial left behind is then not there.
        """
        unmet: Unmet | None = None
        self._walker.wash()
        for k, (step, salt) in enumerate(sequence):
            unmet = None
            try:
                self._walker.take(step, salt, anew=k == 0)
            except Unmet as found:
                unmet = found
        return unmet

    def _is_limit(self, found: Shrunk, salt: int) -> bool:
        """Whether what is larger than a refused request is refused, too; what has no elements has no limit to keep."""
        count = found.step["count"]
        if count in ("own", "0"):
            return True
        larger = [{**found.step, "count": other} for other in COUNTS[COUNTS.index(count) + 1 :]]
        candidates = [step for step in larger if not is_invalid(step)][-2:]
        unmets = [self._trial([(step, salt)]) for step in candidates]
        return all(unmet is not None and unmet.reply is not None and unmet.reply.is_refusal for unmet in unmets)

    def _named(self, found: Shrunk) -> Unmet:
        """Return what is unmet under the name of the requirement, and what it takes for it to be."""
        unmet, left = found.unmet, blame.remaining(found.step)
        needed = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in left.items())
        where = f", where the request has {needed}" if needed else ""
        after = f", after {len(found.earlier)} others on the connection" if found.earlier else ""
        seldom = "" if found.is_lasting else ", once"
        return Unmet(
            f"{unmet.expected}{where}{after}",
            f"{unmet.actual}{seldom}",
            unmet.reply,
            requirement=blame.requirement(found, self._role),
            offset=unmet.offset,
        )


def _version(target: Target, model: Model) -> str:
    """Return a version of the model that its metadata list; empty where they list none."""
    if model.version:
        return model.version
    reply: Reply = target.send(Message(model.path, method="GET"))
    document = parse(reply.body).value if reply.succeeded else None
    listed = document.get("versions") if isinstance(document, dict) else None
    first = listed[0] if isinstance(listed, list) and listed else ""
    return first if isinstance(first, str) and first.isalnum() else ""
