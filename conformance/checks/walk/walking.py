"""A walk along steps: each is taken, and what goes wrong is shrunk, named, or found to be a limit of the server's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from conformance.checks.walk import blame
from conformance.checks.walk.axes import AXES, COUNTS, NEUTRAL, is_invalid
from conformance.checks.walk.covering import Step
from conformance.checks.walk.shrinking import Axes, Shrunk, Taken, shrunk
from conformance.expect.unmet import Unmet
from conformance.roles.model import Model
from conformance.roles.roles import Role, load

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

Blamed = Callable[[Shrunk, Role], str | None]


class Walker(Protocol):
    """Takes steps with one model, over one transport."""

    @property
    def model(self) -> Model:
        """The model."""

    def take(self, step: Step, salt: int, *, anew: bool = False) -> None:
        """Take a step, on the connection of the step before or, `anew`, on a fresh one.

        Raises:
            Unmet: an answer is wrong. That to the request before is nobody's business here.
        """

    def wash(self) -> None:
        """Send a plain request on a connection of its own, which is answered or not."""


class Walk:
    """A walk of one walker."""

    def __init__(self, walker: Walker, axes: Axes = SHRINKING, blamed: Blamed = blame.requirement) -> None:
        """Put a walk together.

        Args:
            walker: who takes the steps.
            axes: by which they are shrunk.
            blamed: the requirement that is broken by what is left of one.
        """
        self._walker = walker
        self._axes = axes
        self._blamed = blamed
        self._role = load()[walker.model.role.name]

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
                found = shrunk(sequence[: k + 1], unmet, self._trial, self._axes)
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
        candidates = [step for step in larger if not self._axes.is_invalid(step)][-2:]
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
            requirement=self._blamed(found, self._role),
            offset=unmet.offset,
        )


def taken(steps: Sequence[Step], salt: int) -> list[Taken]:
    """Return steps with salts, so that no two near each other send the same tensors."""
    return [(step, (salt + 7 * k) % 256) for k, step in enumerate(steps)]


def observed(steps: int, declined: int) -> str:
    """Return what is said of a walk that went right."""
    return f"{steps} steps" + (f", {declined} of them declined" if declined else "")
