"""Make single-factor steps, which are plain except for one value, and find the values that fail by themselves.

A fault that a single value causes with every role is reported once, by the rows of single values, which use the
simplest role. The other rows of a walk query the results here, and avoid values that fail by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from conformance.checks.support.covering import Step
from conformance.expect.unmet import is_met
from conformance.roles.model import Model

# Axes whose plainest values differ between the kinds of request.
FORM_AXES = ("send", "want", "classes")
# Whether two values, each passed as axis and value, exclude each other.
IsExcluded = Callable[[str, str, str, str], bool]


class Walker(Protocol):
    """Sends steps to one model over one transport."""

    @property
    def model(self) -> Model:
        """The model."""

    def take_step(self, step: Step, salt: int, *, on_new_connection: bool = False) -> None:
        """Send a step on the previous step's connection, or on a new one, and judge the answers.

        Raises:
            Unmet: an answer is wrong, or the earlier request gets no answer; its content is not judged.
        """

    def send_plain_request(self) -> int:
        """Send a plain request on a new connection and ignore its answer; return its number in the check."""


@dataclass(frozen=True, slots=True)
class BaselineWalker:
    """Sends single-factor steps to the simplest role, to find the single values that fail.

    Attributes:
        walker: sends the steps.
        steps: axis -> its single-factor steps, as the rows of single values take them.
        neutral: the neutral values.
        once: evaluates a named condition once and caches the result for all rows.
        has_hung: says whether the server has hung in earlier rows, so that a failing step may take a whole timeout.
    """

    walker: Walker
    steps: Callable[[str], Iterable[Step]]
    neutral: Step
    once: Callable[[str, Callable[[], bool]], bool]
    has_hung: Callable[[], bool]

    def is_wrong(self, axis: str, value: str) -> bool:
        """Say whether a request that is plain except for this value fails, or breaks the plain request after it."""
        if axis in FORM_AXES:
            return False
        return any(not self._is_right(step) for step in self.steps(axis) if step[axis] == value)

    def _is_right(self, step: Step) -> bool:
        name = f"alone {crc32(repr(sorted(step.items())).encode()):08x}"
        return self.once(name, lambda: is_met(lambda: self._take_with_plain_step(step)))

    def _take_with_plain_step(self, step: Step) -> None:
        self.walker.take_step(step, 0, on_new_connection=True)
        self.walker.take_step(make_plain_step(step, self.neutral), 1)


def list_single_values(
    axes: Mapping[str, Sequence[str]], axis: str, plain: Sequence[Step], is_excluded: IsExcluded
) -> Iterator[Step]:
    """Yield steps that are plain except for one value of an axis: each value combined with each plain step."""
    others = [other for other in (*axes, "role") if other != axis]
    for value in axes.get(axis, ())[1:]:
        for step in plain:
            if not any(is_excluded(axis, value, other, step[other]) for other in others):
                yield {**step, axis: value}


def make_plain_step(step: Step, neutral: Step) -> Step:
    """Return the plainest step with the same role and forms."""
    return {**neutral, **{name: step[name] for name in ("role", *FORM_AXES) if name in step}}


def interleave_plain_steps(steps: Iterable[Step], neutral: Step) -> list[Step]:
    """Return the steps with a plain step after each, to show that the connection still works."""
    return [one for step in steps for one in (step, make_plain_step(step, neutral))]
