"""Send the steps of a walk, and shrink each failure to find its requirement or a limit of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from conformance.checks.support.covering import Step
from conformance.checks.support.step_shrinking import Axes, MinimalFailure, SaltedStep, shrink
from conformance.checks.walk import attribution
from conformance.checks.walk.axes import ALONE, AXES, CHUNKED, COUNTS, NEUTRAL, ROLE_RULES
from conformance.checks.walk.single_factor import FORM_AXES, BaselineWalker, Walker
from conformance.discovery.deployed_model import DeclinedError
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.roles import Role

SHRINKING = Axes(
    order=[axis for axis in AXES if axis not in ("send", "want", "classes")],
    neutral=NEUTRAL,
    alone=ALONE,
    smaller={"count": COUNTS, "framing": CHUNKED},
    forms=(
        {"send": "json", "want": "nothing", "classes": "none"},
        {"send": "binary", "want": "nothing", "classes": "none"},
        {"send": "json", "want": "binary", "classes": "none"},
        {"send": "binary", "want": "binary", "classes": "none"},
        {"send": "json", "want": "nothing"},
        {"send": "binary", "want": "nothing"},
    ),
    is_invalid=ROLE_RULES.is_invalid,
)

# Axes whose values may leave a connection unusable, which takes a whole timeout to detect each time. The baseline tests
# them before the first step.
TESTED_FIRST = ("framing",)
PLAIN_TRIALS = 4  # trials of a plainer step, each with other inputs

FindRequirement = Callable[[MinimalFailure, Role], str | None]


class Walk:
    """Sends sequences of steps to one model, and reports each failure under the requirement that it breaks.

    A fault that a single value causes with every role is reported once, by the rows of single values with the simplest
    role (`baseline`). A walk with another role, or with several values at once, avoids that value.
    """

    def __init__(
        self,
        walker: Walker,
        axes: Axes = SHRINKING,
        requirement_finder: FindRequirement = attribution.find_requirement,
        baseline: BaselineWalker | None = None,
    ) -> None:
        """Prepare a walk.

        Args:
            walker: sends the steps.
            axes: the axes for shrinking.
            requirement_finder: returns the requirement that a shrunk failure breaks.
            baseline: finds the values that fail with the simplest role; None to report every fault.
        """
        self._walker = walker
        self._axes = axes
        self._requirement_finder = requirement_finder
        self._baseline = baseline
        self._role = walker.model.role
        self._avoided: dict[str, set[str]] = {}

    def take_steps(self, sequence: Sequence[SaltedStep], *, plain: Iterable[Step] = ()) -> int:
        """Send steps in sequence on one connection; return how many were declined or are judged by other rows.

        Args:
            sequence: the steps, with their salts.
            plain: plainer steps; if one of them fails as well, a failing sequence is blocked.

        Raises:
            Unmet: the answer to a step is wrong.
            Blocked: the answer to a plain step is wrong as well.
            NotApplicable: the model accepts the inputs of no step.
        """
        passed_over = declined = 0
        before: list[SaltedStep] = []
        self._test_values(sequence)
        for step, salt in sequence:
            before.append((self._replace_avoided(step), salt))
            try:
                self._walker.take_step(*before[-1], on_new_connection=len(before) == 1)
            except DeclinedError:
                before.pop()
                declined += 1
            except UnmetError as unmet:
                if self._is_any_step_wrong(plain):
                    raise BlockedError(
                        "the same in the plainest request of its form is answered wrongly", unmet
                    ) from None
                remaining = self._retry_without_known(before, unmet)
                if remaining is not None:
                    found = shrink(before, remaining, self._try_sequence, self._axes)
                    if not (self._is_rightly_refused(found, salt) or self._is_reported_elsewhere(found, salt)):
                        raise self._make_unmet_error(found) from None
                passed_over += 1
        if declined and declined == len(sequence):
            raise NotApplicableError(f"{self._walker.model.name} takes none of the inputs")
        return passed_over + declined

    def _test_values(self, sequence: Sequence[SaltedStep]) -> None:
        """Avoid values of the axes `TESTED_FIRST` that fail by themselves; of all axes if the server has hung."""
        has_hung = self._baseline is not None and self._baseline.has_hung()
        for step, _ in sequence:
            self._avoid_failing_values(step, attribution.find_remaining_axes(step) if has_hung else TESTED_FIRST)

    def _is_any_step_wrong(self, steps: Iterable[Step]) -> bool:
        """Say whether any of these steps fails by itself, with some of several inputs."""
        different = {repr(step): step for step in steps}.values()
        return any(self._try_sequence([(step, salt)]) for step in different for salt in range(PLAIN_TRIALS))

    def _retry_without_known(self, sequence: list[SaltedStep], unmet: UnmetError) -> UnmetError | None:
        """Repeat the last step without the values that fail by themselves; return its failure, or None.

        The step before is repeated first, also without such values: some values leave the connection unusable.
        """
        ending = sequence[-2:]
        for step, _ in ending:
            self._avoid_failing_values(step, attribution.find_remaining_axes(step))
        plainer = [(self._replace_avoided(step), salt) for step, salt in ending]
        if plainer == ending:
            return unmet
        sequence[-2:] = plainer
        return _take_on_new_connection(self._walker, plainer)

    def _avoid_failing_values(self, step: Step, axes: Iterable[str]) -> None:
        """Avoid, from now on, those values of a step on these axes that fail by themselves."""
        for axis in axes:
            if self._baseline is not None and axis in step and self._baseline.is_wrong(axis, step[axis]):
                self._avoided.setdefault(axis, set()).add(step[axis])

    def _replace_avoided(self, step: Step) -> Step:
        """Return the step with avoided values replaced by neutral ones; unchanged if the result is not valid."""
        plain = {axis: self._axes.neutral[axis] for axis, values in self._avoided.items() if step[axis] in values}
        candidate = {**step, **plain}
        return step if self._axes.is_invalid(candidate) else candidate

    def _is_rightly_refused(self, found: MinimalFailure, salt: int) -> bool:
        """Say whether the server may refuse the shrunk step, because of the documents or because of its limits."""
        return attribution.is_declined(found, self._role) or (
            attribution.is_possible_limit(found) and self._is_server_limit(found, salt)
        )

    def _is_reported_elsewhere(self, found: MinimalFailure, salt: int) -> bool:
        """Say whether other rows report the failure: a single value causes it, with the simplest role as well."""
        remaining = {
            axis: value for axis, value in attribution.find_remaining_axes(found.step).items() if axis not in FORM_AXES
        }
        if self._baseline is None or found.earlier or not found.is_lasting or len(remaining) != 1:
            return False
        step = {**found.step, "role": self._baseline.walker.model.role.name}
        if self._axes.is_invalid(step) or _take_on_new_connection(self._baseline.walker, [(step, salt)]) is None:
            return False
        for axis, value in remaining.items():
            self._avoided.setdefault(axis, set()).add(value)
        return True

    def _try_sequence(self, sequence: Sequence[SaltedStep]) -> UnmetError | None:
        return _take_on_new_connection(self._walker, sequence)

    def _is_server_limit(self, found: MinimalFailure, salt: int) -> bool:
        """Say whether the server also refuses larger requests; True if the step sets no count above 0."""
        count = found.step["count"]
        if count in ("own", "0"):
            return True
        larger = [{**found.step, "count": other} for other in COUNTS if int(other) > int(count)]
        candidates = [step for step in larger if not self._axes.is_invalid(step)][-2:]
        failures = [self._try_sequence([(step, salt)]) for step in candidates]
        return all(unmet is not None and unmet.reply is not None and unmet.reply.is_refusal for unmet in failures)

    def _make_unmet_error(self, found: MinimalFailure) -> UnmetError:
        """Return the failure with its requirement and a message that names the values needed to reproduce it."""
        unmet, needed = found.unmet, _describe_special_axes(found.step)
        where = f", where the request has {needed}" if needed else ""
        after = _describe_earlier_steps(found.earlier) if found.earlier else ""
        once = "" if found.is_lasting else ", once"
        return UnmetError(
            f"{unmet.expected}{where}{after}",
            f"{unmet.actual}{once}",
            unmet.reply,
            requirement=self._requirement_finder(found, self._role),
            offset=unmet.offset,
            since=unmet.since,
        )


def _describe_special_axes(step: Step) -> str:
    """Return the axes of a step that are not neutral, with their values, in words."""
    return ", ".join(
        f"{axis.replace('_', ' ')} {value}" for axis, value in attribution.find_remaining_axes(step).items()
    )


def _describe_earlier_steps(earlier: Sequence[SaltedStep]) -> str:
    if len(earlier) > 1:
        return f", after {len(earlier)} others on the connection"
    special = _describe_special_axes(earlier[0][0])
    return f", after one on the connection that has {special}" if special else ", after a plain one on the connection"


def _take_on_new_connection(walker: Walker, sequence: Sequence[SaltedStep]) -> UnmetError | None:
    """Send steps, starting on a new connection; return the failure of the last step, or None.

    A plain request is sent first on another connection, to clear state that an earlier trial left in the server.
    """
    unmet: UnmetError | None = None
    plain_number = walker.send_plain_request()
    for k, (step, salt) in enumerate(sequence):
        unmet = None
        try:
            walker.take_step(step, salt, on_new_connection=k == 0)
        except DeclinedError:
            continue
        except UnmetError as found:
            unmet = found
            unmet.since = plain_number + 1
    return unmet


def salt_steps(steps: Sequence[Step], salt: int) -> list[SaltedStep]:
    """Pair each step with a salt, so that nearby steps send different tensors."""
    return [(step, (salt + 7 * k) % 256) for k, step in enumerate(steps)]


def describe_walk(steps: int, passed_over: int) -> str:
    """Return the note on a row whose walk passed: the number of steps, and how many were passed over."""
    return f"{steps} steps" + (f", {passed_over} of them declined, or a matter of other rows" if passed_over else "")
