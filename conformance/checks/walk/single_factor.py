"""Single values: steps that are plain but for one of them, and which of these go wrong with the plainest role.

What a single value does to every role is said once, by the rows that take each value alone. The other rows of a walk
ask for the same here, and go on without a value that goes wrong by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from conformance.checks.walk.covering import Step
from conformance.expect.unmet import is_met
from conformance.roles.model import Model

# What every kind of request has its own plainest values of.
FORM_AXES = ("send", "want", "classes")
# Whether two values, each given as axis and value, never meet.
NeverMeet = Callable[[str, str, str, str], bool]


class Walker(Protocol):
    """Takes steps with one model, over one transport."""

    @property
    def model(self) -> Model:
        """The model."""

    def take(self, step: Step, salt: int, *, anew: bool = False) -> None:
        """Take a step, on the connection of the step before or, `anew`, on a fresh one.

        Raises:
            Unmet: an answer is wrong. That to the request before is nobody's business here, as long as there is one.
        """

    def wash(self) -> int:
        """Send a plain request on a connection of its own, which is answered or not; return its number in the check."""


@dataclass(frozen=True, slots=True)
class BaselineWalker:
    """A walker with the plainest role, which tells what goes wrong with a single value.

    Attributes:
        walker: takes the steps.
        steps: axis -> the steps with each value of it alone, as the rows of single values take them.
        neutral: the neutral values.
        once: asks a named question one time, whichever rows want to know.
    """

    walker: Walker
    steps: Callable[[str], Iterable[Step]]
    neutral: Step
    once: Callable[[str, Callable[[], bool]], bool]

    def is_wrong(self, axis: str, value: str) -> bool:
        """Whether a request that is plain but for a value is answered wrongly, or the plain one after it is."""
        if axis in FORM_AXES:
            return False
        return any(not self._is_right(step) for step in self.steps(axis) if step[axis] == value)

    def _is_right(self, step: Step) -> bool:
        name = f"alone {crc32(repr(sorted(step.items())).encode()):08x}"
        return self.once(name, lambda: is_met(lambda: self._take(step)))

    def _take(self, step: Step) -> None:
        self.walker.take(step, 0, anew=True)
        self.walker.take(make_plain(step, self.neutral), 1)


def list_single_values(
    axes: Mapping[str, Sequence[str]], axis: str, plain: Sequence[Step], is_never: NeverMeet
) -> Iterator[Step]:
    """Yield steps that are plain but for one value of an axis: each value with each of the plain steps."""
    others = [other for other in (*axes, "role") if other != axis]
    for value in axes.get(axis, ())[1:]:
        for step in plain:
            if not any(is_never(axis, value, other, step[other]) for other in others):
                yield {**step, axis: value}


def make_plain(step: Step, neutral: Step) -> Step:
    """Return the plainest step with the same role, in the same forms."""
    return {**neutral, **{name: step[name] for name in ("role", *FORM_AXES) if name in step}}


def interleave_plain_steps(steps: Iterable[Step], neutral: Step) -> list[Step]:
    """Return steps, a plain one after each: whatever a request was, the connection goes on after it."""
    return [one for step in steps for one in (step, make_plain(step, neutral))]
