"""Shrink a failing sequence of steps to the simplest sequence that still fails, to show the cause.

A step is one request, described by a value for each of several axes. Earlier steps are removed as long as the last step
still fails. Then each axis of the last step is set to its neutral value if the step still fails; axes that do not
concern the tensors come first. Every trial starts on a new connection.

Hypothesis cannot shrink these steps: they come from a covering array, and the axes that are not neutral in the end have
to identify a requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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
        earlier: the earlier steps without which the step does not fail.
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
        order: the names of the axes, in the order in which shrinking tries them.
        neutral: axis -> its neutral value.
        smaller: axis -> values to try if the step passes with the neutral value, smallest first.
        forms: combinations of forms of inputs and outputs, to be tried as a whole, simplest first.
        parts: (axis, value) -> the simpler values that the value contains, to be tried as a whole.
        is_invalid: says whether the values of a step make no valid request.
    """

    order: Sequence[str]
    neutral: Step
    alone: Step
    smaller: Mapping[str, Sequence[str]]
    forms: Sequence[Step]
    is_invalid: Callable[[Step], bool]
    parts: Mapping[tuple[str, str], Step] = field(default_factory=dict)


def shrink(sequence: Sequence[SaltedStep], unmet: UnmetError, trial: Trial, axes: Axes) -> MinimalFailure:
    """Return the simplest sequence found whose last step fails.

    `sequence`: the steps whose requests were sent; the last one failed.
    `unmet`: the failure of the last step.
    `trial`: sends the requests of a sequence of steps, and returns the failure of the last step or None.
    """
    limited_trial = _TrialLimiter(trial)
    *earlier, (step, salt) = sequence
    found = next(filter(None, (limited_trial([(step, salt)]) for _ in range(FIRST_TRIALS))), None)
    if found is None and (alone := {**step, **axes.alone}) != step and (found := limited_trial([(alone, salt)])):
        step = alone
    if found is None and earlier:
        found = limited_trial(sequence)
        earlier = _find_needed_steps(earlier, (step, salt), limited_trial) if found else []
    else:
        earlier = []
    if found is None:
        return MinimalFailure((), step, unmet, is_lasting=False)
    simplest = _SimplestStep(step, found)

    def try_candidate(candidate: Step) -> UnmetError | None:
        return limited_trial([*earlier, (candidate, salt)])

    if _has_timed_out(found):
        _set_many_neutral(simplest, axes, try_candidate, axes.order)
    for simplify in (_set_neutral_values, _set_simplest_forms, _set_neutral_values, _set_smaller_values):
        simplify(simplest, axes, try_candidate)
    return MinimalFailure(tuple(earlier), simplest.step, simplest.unmet)


class _TrialLimiter:
    """Limits the number of trials, so that a server with many faults does not delay a run.

    Each trial uses new salts, so that the server cannot answer a trial correctly with data from an earlier trial.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._trials_left = MAX_TRIALS
        self._waits_left = MAX_WAITS

    def __call__(self, sequence: Sequence[SaltedStep]) -> UnmetError | None:
        """Run a trial; return the failure of the last step, or None if this step passes.

        Return None without a trial after `MAX_TRIALS` trials, or after `MAX_WAITS` trials that timed out.
        """
        self._trials_left -= 1
        if self._trials_left < 0 or self._waits_left == 0:
            return None
        unmet = self._trial([(step, (salt + SALT_INCREMENT * self._trials_left) % 256) for step, salt in sequence])
        self._waits_left -= _has_timed_out(unmet)
        return unmet


def _has_timed_out(unmet: UnmetError | None) -> bool:
    failure = unmet.reply.exchange.failure if unmet is not None and unmet.reply is not None else None
    return failure is not None and failure.kind is FailureKind.TIMEOUT


def _find_needed_steps(
    earlier: Sequence[SaltedStep], last: SaltedStep, limited_trial: _TrialLimiter
) -> list[SaltedStep]:
    """Return the earlier steps that are needed to reproduce the failure, few of them if possible."""
    length = next(
        (size for size in (1, 2, 4, 8) if size < len(earlier) and limited_trial([*earlier[-size:], last])), None
    )
    kept = list(earlier[-length:] if length else earlier)
    for step in list(kept):
        shorter = [other for other in kept if other is not step]
        if shorter and limited_trial([*shorter, last]):
            kept = shorter
    return kept


@dataclass(slots=True)
class _SimplestStep:
    """The simplest failing step so far, and its failure."""

    step: Step
    unmet: UnmetError

    def try_step(self, candidate: Step, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> bool:
        """Replace the step by a simpler candidate if the candidate fails as well; return whether it does."""
        if candidate == self.step or axes.is_invalid(candidate):
            return False
        unmet = trial(candidate)
        if unmet is None:
            return False
        self.step, self.unmet = candidate, unmet
        return True


def _set_many_neutral(
    simplest: _SimplestStep, axes: Axes, trial: Callable[[Step], UnmetError | None], names: Sequence[str]
) -> None:
    """Set these axes to their neutral values at once, or each half of them if the step passes then.

    Each trial that fails costs a wait, and there are fewer of them than if each axis were tried by itself.
    """
    names = [axis for axis in names if simplest.step[axis] != axes.neutral[axis]]
    candidate = {**simplest.step, **{axis: axes.neutral[axis] for axis in names}}
    if simplest.try_step(candidate, axes, trial) or len(names) <= 1:
        return
    for half in (names[: len(names) // 2], names[len(names) // 2 :]):
        _set_many_neutral(simplest, axes, trial, half)


def _set_neutral_values(simplest: _SimplestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Set each axis to its neutral value if the step still fails; repeat until nothing changes."""
    before: Step = {}
    while before != simplest.step:
        before = simplest.step
        for axis in axes.order:
            simplest.try_step({**simplest.step, axis: axes.neutral[axis]}, axes, trial)


def _set_simplest_forms(simplest: _SimplestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Set the simplest combination of forms with which the step still fails."""
    for form in axes.forms:
        if form.items() <= simplest.step.items() or simplest.try_step({**simplest.step, **form}, axes, trial):
            return


def _set_smaller_values(simplest: _SimplestStep, axes: Axes, trial: Callable[[Step], UnmetError | None]) -> None:
    """Set axes that cannot be neutral to the smallest value, or part of a value, with which the step still fails."""
    for axis, values in axes.smaller.items():
        if simplest.step[axis] in values:
            for value in values[: values.index(simplest.step[axis])]:
                if simplest.try_step({**simplest.step, axis: value}, axes, trial):
                    break
    for (axis, value), part in axes.parts.items():
        if simplest.step.get(axis) == value:
            simplest.try_step({**simplest.step, **part}, axes, trial)
