"""Shrink a failing sequence of steps to the plainest one that still fails, to show the cause.

A step is one request, described by a value for each of several axes. Earlier steps are removed as long as the last step
still fails. Then each axis of that step is set to its neutral value, the axes farthest from the tensors first. Every
trial starts on a new connection. Hypothesis cannot shrink these steps: they come from a covering array, and the axes
that remain have to identify a requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from conformance.checks.support.covering import Step
from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import FailureKind

# A step and the salt of its tensors.
SaltedStep = tuple[Step, int]
# Sends the requests of some steps on a new connection; returns the failure of the last step, or None.
Trial = Callable[[Sequence[SaltedStep]], UnmetError | None]

MAX_TRIALS = 150
FIRST_TRIALS = 3  # trials of a step by itself: not all inputs reveal a fault
MAX_WAITS = 8  # trials of one sequence that may time out: each takes the whole timeout
SALT_INCREMENT = 38  # between the salts of two trials; even, to keep odd numbers odd: servers may lose the last bit


@dataclass(frozen=True, slots=True)
class MinimalFailure:
    """The result of shrinking a failing sequence.

    Attributes:
        earlier: the earlier steps that the failure needs.
        step: the failing step.
        unmet: its failure.
        is_lasting: whether a trial reproduced the failure.
    """

    earlier: tuple[SaltedStep, ...]
    step: Step
    unmet: UnmetError
    is_lasting: bool = True


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of the steps, with the values that shrinking tries.

    Attributes:
        order: the axes, in the order in which they are tried.
        neutral: the neutral values.
        alone: the values of a step without concurrent requests.
        smaller: axis -> other values to try if the neutral one does not fail, smallest first.
        forms: values of several axes that are tried together, plainest first.
        is_invalid: says whether a step makes no valid request.
    """

    order: Sequence[str]
    neutral: Step
    alone: Step
    smaller: Mapping[str, Sequence[str]]
    forms: Sequence[Step]
    is_invalid: Callable[[Step], bool]


def shrink(sequence: Sequence[SaltedStep], unmet: UnmetError, trial: Trial, axes: Axes) -> MinimalFailure:
    """Return the plainest sequence whose last step fails.

    Args:
        sequence: the steps whose requests were sent; the last one failed.
        unmet: the failure of the last step.
        trial: sends the requests of a sequence of steps again.
        axes: the axes of the steps.
    """
    tries = _TrialLimiter(trial)
    *earlier, (step, salt) = sequence
    found = next(filter(None, (tries([(step, salt)]) for _ in range(FIRST_TRIALS))), None)
    if found is None and (alone := {**step, **axes.alone}) != step and (found := tries([(alone, salt)])):
        step = alone
    if found is None and earlier:
        found = tries(sequence)
        earlier = _find_needed_steps(earlier, (step, salt), tries) if found else []
    else:
        earlier = []
    if found is None:
        return MinimalFailure((), step, unmet, is_lasting=False)
    plain = _PlainestStep(step, found)
    for make in (_set_neutral_values, _set_plain_forms, _set_neutral_values, _set_smaller_values):
        make(plain, axes, lambda candidate: tries([*earlier, (candidate, salt)]))
    return MinimalFailure(tuple(earlier), plain.step, plain.unmet)


class _TrialLimiter:
    """Limits the number of trials, so that a server with many faults does not delay a run.

    Each trial uses new salts, so that state from one trial cannot make the answer of the next one look right.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._trials_left = MAX_TRIALS
        self._waits_left = MAX_WAITS

    def __call__(self, sequence: Sequence[SaltedStep]) -> UnmetError | None:
        """Return the failure of the last step; None if it passes, or if no trials or waits are left."""
        self._trials_left -= 1
        if self._trials_left < 0 or self._waits_left == 0:
            return None
        unmet = self._trial([(step, (salt + SALT_INCREMENT * self._trials_left) % 256) for step, salt in sequence])
        self._waits_left -= _is_wait(unmet)
        return unmet


def _is_wait(unmet: UnmetError | None) -> bool:
    failure = unmet.reply.exchange.failure if unmet is not None and unmet.reply is not None else None
    return failure is not None and failure.kind is FailureKind.TIMEOUT


def _find_needed_steps(earlier: Sequence[SaltedStep], last: SaltedStep, tries: _TrialLimiter) -> list[SaltedStep]:
    """Return the earlier steps that the failure needs, preferring a short tail of the sequence."""
    length = next((size for size in (1, 2, 4, 8) if size < len(earlier) and tries([*earlier[-size:], last])), None)
    kept = list(earlier[-length:] if length else earlier)
    for step in list(kept):
        without = [other for other in kept if other is not step]
        if without and tries([*without, last]):
            kept = without
    return kept


@dataclass(slots=True)
class _PlainestStep:
    """The plainest failing step so far, and its failure."""

    step: Step
    unmet: UnmetError

    def try_step(self, candidate: Step, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> bool:
        """Replace the step by a plainer candidate if the candidate fails as well; say whether it was replaced."""
        if candidate == self.step or axes.is_invalid(candidate):
            return False
        unmet = trial(candidate)
        if unmet is None:
            return False
        self.step, self.unmet = candidate, unmet
        return True


def _set_neutral_values(plain: _PlainestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Set each axis to its neutral value if the step still fails; repeat until nothing changes."""
    before: Step = {}
    while before != plain.step:
        before = plain.step
        for axis in axes.order:
            plain.try_step({**plain.step, axis: axes.neutral[axis]}, axes, trial)


def _set_plain_forms(plain: _PlainestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Set the plainest combination of forms with which the step still fails."""
    for form in axes.forms:
        if form.items() <= plain.step.items() or plain.try_step({**plain.step, **form}, axes, trial):
            return


def _set_smaller_values(plain: _PlainestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Set axes that cannot be neutral to the smallest value with which the step still fails."""
    for axis, values in axes.smaller.items():
        if plain.step[axis] in values:
            for value in values[: values.index(plain.step[axis])]:
                if plain.try_step({**plain.step, axis: value}, axes, trial):
                    break
