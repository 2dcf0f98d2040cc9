"""The plainest sequence of steps that still goes wrong: what is left of it names the cause.

Steps before the wrong one are left out as long as it stays wrong; then each axis of the step itself is set to its
neutral value, what is farthest from the tensors first. Every trial begins on a fresh connection. Steps are shrunk along
the ledger's own axes, not by Hypothesis: a step is one of a covering array, of which Hypothesis knows nothing, and what
is left has to be a requirement's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conformance.checks.walk.covering import Step
from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import FailureKind

# A step, and the salt of its tensors.
SaltedStep = tuple[Step, int]
# Takes steps from a fresh connection on; returns what is unmet at the last one, or None.
Trial = Callable[[Sequence[SaltedStep]], UnmetError | None]

MAX_TRIALS = 150
FIRST_TRIALS = 3  # of a step by itself: not all inputs show what a server does wrong
MAX_WAITS = 8  # trials of one sequence that may end with no answer in time: each takes the whole timeout
SALT_INCREMENT = 38  # between the salts of two trials: odd numbers stay odd, where a server loses the last bit of them


@dataclass(frozen=True, slots=True)
class MinimalFailure:
    """What is left of a sequence.

    Attributes:
        earlier: the steps without which the last one goes right.
        step: the last one.
        unmet: what is unmet at it.
        is_lasting: whether it went wrong again at all.
    """

    earlier: tuple[SaltedStep, ...]
    step: Step
    unmet: UnmetError
    is_lasting: bool = True


@dataclass(frozen=True, slots=True)
class Axes:
    """What shrinking has to know of axes.

    Attributes:
        order: the axes, in the order in which they are tried.
        neutral: the neutral values.
        alone: what a step is without anything beside it.
        smaller: other values to try where the neutral one does not go wrong, the smallest first.
        forms: values of several axes that are only tried together, the plainest first.
        is_invalid: whether values make no request.
    """

    order: Sequence[str]
    neutral: Step
    alone: Step
    smaller: Mapping[str, Sequence[str]]
    forms: Sequence[Step]
    is_invalid: Callable[[Step], bool]


def shrink(sequence: Sequence[SaltedStep], unmet: UnmetError, trial: Trial, axes: Axes) -> MinimalFailure:
    """Return the plainest sequence that goes wrong at its end.

    Args:
        sequence: the steps that were taken, the last of which went wrong.
        unmet: in that way.
        trial: takes steps anew.
        axes: see there.
    """
    tries = _Tries(trial)
    *earlier, (step, salt) = sequence
    found = next(filter(None, (tries([(step, salt)]) for _ in range(FIRST_TRIALS))), None)
    if found is None and (alone := {**step, **axes.alone}) != step and (found := tries([(alone, salt)])):
        step = alone
    if found is None and earlier:
        found = tries(sequence)
        earlier = _needed(earlier, (step, salt), tries) if found else []
    else:
        earlier = []
    if found is None:
        return MinimalFailure((), step, unmet, is_lasting=False)
    plain = _PlainestStep(step, found)
    for make in (_neutral, _in_plain_forms, _neutral, _smaller):
        make(plain, axes, lambda candidate: tries([*earlier, (candidate, salt)]))
    return MinimalFailure(tuple(earlier), plain.step, plain.unmet)


class _Tries:
    """Counts trials, so that a server that is wrong in many ways does not hold a run up.

    Each has salts of its own: what a server keeps of one trial is no answer to the next.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._left = MAX_TRIALS
        self._waits = MAX_WAITS

    def __call__(self, sequence: Sequence[SaltedStep]) -> UnmetError | None:
        """Return what is unmet at the last step; nothing where there were trials, or waits, enough."""
        self._left -= 1
        if self._left < 0 or self._waits == 0:
            return None
        unmet = self._trial([(step, (salt + SALT_INCREMENT * self._left) % 256) for step, salt in sequence])
        self._waits -= _is_wait(unmet)
        return unmet


def _is_wait(unmet: UnmetError | None) -> bool:
    failure = unmet.reply.exchange.failure if unmet is not None and unmet.reply is not None else None
    return failure is not None and failure.kind is FailureKind.TIMEOUT


def _needed(earlier: Sequence[SaltedStep], last: SaltedStep, tries: _Tries) -> list[SaltedStep]:
    """Return the earlier steps that are needed: the shortest end of them that will do, without those that are not."""
    length = next((size for size in (1, 2, 4, 8) if size < len(earlier) and tries([*earlier[-size:], last])), None)
    kept = list(earlier[-length:] if length else earlier)
    for step in list(kept):
        without = [other for other in kept if other is not step]
        if without and tries([*without, last]):
            kept = without
    return kept


@dataclass(slots=True)
class _PlainestStep:
    """The plainest step so far that goes wrong, and what is unmet at it."""

    step: Step
    unmet: UnmetError

    def becomes(self, candidate: Step, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> bool:
        """Take a plainer step in its place if that goes wrong, too."""
        if candidate == self.step or axes.is_invalid(candidate):
            return False
        unmet = trial(candidate)
        if unmet is None:
            return False
        self.step, self.unmet = candidate, unmet
        return True


def _neutral(plain: _PlainestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Set each axis to its neutral value; once more as long as that makes others possible."""
    before: Step = {}
    while before != plain.step:
        before = plain.step
        for axis in axes.order:
            plain.becomes({**plain.step, axis: axes.neutral[axis]}, axes, trial)


def _in_plain_forms(plain: _PlainestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Give the step the plainest forms."""
    for form in axes.forms:
        if form.items() <= plain.step.items() or plain.becomes({**plain.step, **form}, axes, trial):
            return


def _smaller(plain: _PlainestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Give axes whose neutral value will not do the smallest value that does."""
    for axis, values in axes.smaller.items():
        if plain.step[axis] in values:
            for value in values[: values.index(plain.step[axis])]:
                if plain.becomes({**plain.step, axis: value}, axes, trial):
                    break
