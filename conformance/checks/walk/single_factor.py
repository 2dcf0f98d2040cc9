"""Make steps that are plain except for one value, and find the values that fail by themselves.

Some values fail by themselves with every role. The rows of single values report such a failure only once, for the
simplest role. The other rows of the walk then avoid these values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

from conformance.checks.support.covering import PairRule, Step
from conformance.checks.walk.expected import BusyWaits, EarlierAnswers
from conformance.expect.unmet import is_met
from conformance.roles.model import Model
from conformance.transport.any_target import AnyTarget

# Axes whose plainest values differ between the kinds of request.
FORM_AXES = ("send", "want", "classes")


@dataclass(frozen=True, slots=True)
class Walker:
    """Sends steps to one model over one transport.

    Attributes:
        other: another model for concurrent requests; None if there is none.
        version: returns the default version of the model, or an empty string if the metadata do not list that version;
            called only if a step needs it.
    """

    target: AnyTarget
    model: Model
    other: Model | None
    version: Callable[[], str]
    waits: BusyWaits
    answers: EarlierAnswers = field(default_factory=EarlierAnswers)

    def send_step(self, step: Step, salt: int, *, on_new_connection: bool = False) -> None:
        """Send the requests of a step on the connection of the previous step, or on a new one, and judge the answers.

        Raises:
            UnmetError: an answer is wrong, or the earlier request gets no answer. The answer to the earlier request is not
                judged otherwise.
        """

        def send_once() -> None:
            model = replace(self.model, version=self.version()) if step["path"] == "version" else self.model
            self.send_requests(step, model, salt, on_new_connection=on_new_connection)

        self.waits.send(send_once)

    def send_requests(self, step: Step, model: Model, salt: int, *, on_new_connection: bool) -> None:
        """Send the requests of a step once, and judge the answers."""
        raise NotImplementedError

    def send_plain_request(self) -> int:
        """Send a plain request on a new connection, ignore its answer, and return its exchange number in the check."""
        plain = self.target.message(self.target.build_good_requests(self.model)[0])
        return self.target.send(plain, fresh=True).exchange.number


@dataclass(frozen=True, slots=True)
class BaselineWalker:
    """Sends steps that are plain except for one value to the simplest role, to find the values that fail.

    Attributes:
        steps: axis -> the steps that are plain except for a value of this axis, as the rows of single values send them.
        neutral: axis -> its neutral value.
        evaluate_once: evaluates a condition once, and caches the result for all rows under the condition's name.
        has_hung: says whether the server has hung in earlier rows, so that a failing step may take a whole timeout.
    """

    walker: Walker
    steps: Callable[[str], Iterable[Step]]
    neutral: Step
    evaluate_once: Callable[[str, Callable[[], bool]], bool]
    has_hung: Callable[[], bool]

    def is_value_wrong(self, axis: str, value: str) -> bool:
        """Say whether a step that is plain except for this value fails, or makes the next plain step fail."""
        if axis in FORM_AXES:
            return False
        return any(not self._is_step_right(step) for step in self.steps(axis) if step[axis] == value)

    def _is_step_right(self, step: Step) -> bool:
        name = f"alone {crc32(repr(sorted(step.items())).encode()):08x}"
        return self.evaluate_once(name, lambda: is_met(lambda: self._send_with_plain_step(step)))

    def _send_with_plain_step(self, step: Step) -> None:
        self.walker.send_step(step, 0, on_new_connection=True)
        self.walker.send_step(make_plain_step(step, self.neutral), 1)


def list_single_values(
    axes: Mapping[str, Sequence[str]], axis: str, plain: Sequence[Step], is_excluded: PairRule
) -> Iterator[Step]:
    """Yield steps that are plain except for one value of an axis: each value combined with each plain step."""
    others = [other for other in (*axes, "role") if other != axis]
    for value in axes.get(axis, ())[1:]:
        for step in plain:
            if not any(is_excluded(axis, value, other, step[other]) for other in others):
                yield {**step, axis: value}


def make_plain_step(step: Step, neutral: Step) -> Step:
    """Return the plain step with the same role and the same forms of tensors."""
    return {**neutral, **{name: step[name] for name in ("role", *FORM_AXES) if name in step}}


def interleave_plain_steps(steps: Iterable[Step], neutral: Step) -> list[Step]:
    """Return the steps with a plain step after each, to show that the connection still works."""
    return [item for step in steps for item in (step, make_plain_step(step, neutral))]
