"""Send the steps of a walk; shrink each failure to find the requirement that it breaks, or the server's limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from conformance.checks.support.covering import Step
from conformance.checks.support.step_shrinking import Axes, MinimalFailure, SaltedStep, shrink
from conformance.checks.walk import attribution
from conformance.checks.walk.axes import ALONE, AXES, CHUNKED, COUNTS, NEUTRAL, ROLE_RULES, WITH_CODINGS
from conformance.checks.walk.requests import has_more_classes_than_row
from conformance.checks.walk.single_factor import FORM_AXES, BaselineWalker, Walker
from conformance.discovery.deployed_model import DeclinedError
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.roles import Role

SHRINKING = Axes(
    order=[axis for axis in AXES if axis not in ("send", "want", "classes")],
    neutral=NEUTRAL,
    alone=ALONE,
    smaller={"count": COUNTS[1:], "framing": CHUNKED},  # a server may refuse the count 0 alone
    forms=(
        {"send": "json", "want": "nothing", "classes": "none"},
        {"send": "binary", "want": "nothing", "classes": "none"},
        {"send": "json", "want": "binary", "classes": "none"},
        {"send": "binary", "want": "binary", "classes": "none"},
        {"send": "json", "want": "nothing"},
        {"send": "binary", "want": "nothing"},
    ),
    is_invalid=ROLE_RULES.is_invalid,
    parts={("sender", name): {"sender": "plain", "answer_coding": "gzip"} for name in WITH_CODINGS},
)

# Axes whose values may leave a connection unusable, which takes a whole timeout to detect each time. The baseline tests
# them before the first step.
TESTED_FIRST = ("framing",)
MAX_PLAIN_TRIALS = 4  # trials of a plainer step, each with other inputs
_PLAIN_JSON = {axis: NEUTRAL[axis] for axis in attribution.JSON_SPELLING_SIZE_AXES}

FindRequirement = Callable[[MinimalFailure, Role], str | None]


class Walk:
    """Sends sequences of steps to one model, and reports each failure under the requirement that it breaks.

    Some values fail by themselves, with every role. The rows of single values report such a failure once, with the
    simplest role (`baseline`). A walk with another role, or with several values at once, avoids these values.
    """

    def __init__(
        self,
        walker: Walker,
        axes: Axes = SHRINKING,
        requirement_finder: FindRequirement = attribution.find_requirement,
        baseline: BaselineWalker | None = None,
    ) -> None:
        """Prepare a walk.

        `baseline`: finds the values that fail with the simplest role; None to report every failure.
        """
        self._walker = walker
        self._axes = axes
        self._requirement_finder = requirement_finder
        self._baseline = baseline
        self._role = walker.model.role
        self._avoided: dict[str, set[str]] = {}

    def send_steps(self, sequence: Sequence[SaltedStep], *, plain: Iterable[Step] = ()) -> int:
        """Send steps one after the other on one connection; return how many were not judged.

        A step is not judged if the server may decline it, or if other rows report its failure.

        Args:
            sequence: the steps, with their salts.
            plain: simpler steps; if one of these fails as well, a failure blocks the row.

        Raises:
            UnmetError: the answer to a step is wrong.
            BlockedError: the answer to one of the `plain` steps is wrong as well.
            NotApplicableError: the model accepts the inputs of no step.
        """
        skipped = declined = 0
        sent: list[SaltedStep] = []
        self._test_values_first(sequence)
        for step, salt in sequence:
            sent.append((self._replace_avoided_values(step), salt))
            try:
                self._walker.send_step(*sent[-1], on_new_connection=len(sent) == 1)
            except DeclinedError:
                sent.pop()
                declined += 1
            except UnmetError as unmet:
                if self._is_any_step_wrong(plain):
                    raise BlockedError("the answer to a plain request in the same form is also wrong", unmet) from None
                remaining = self._retry_without_failing_values(sent, unmet)
                if remaining is not None:
                    found = self._shrink(sent, remaining)
                    if not (self._is_refusal_allowed(found, salt) or self._is_reported_elsewhere(found, salt)):
                        raise self._make_unmet_error(found) from None
                skipped += 1
        if declined and declined == len(sequence):
            raise NotApplicableError(f"{self._walker.model.name} accepts the inputs of no step")
        return skipped + declined

    def _shrink(self, sent: Sequence[SaltedStep], unmet: UnmetError) -> MinimalFailure:
        """Shrink a failing sequence; wait shortly for a server that hangs, then whole for the answer to what is left.

        If that answer comes, nothing counts that rests on a short wait.
        """
        with self._walker.target.shorten_waits():
            found = shrink(sent, unmet, self._try_sequence, self._axes)
        step, salt = sent[-1]
        if found.unmet.reply is None or not found.unmet.reply.exchange.is_short_wait:
            return found
        is_same = found.step == step and not found.earlier
        whole = unmet if is_same else self._try_sequence([*found.earlier, (found.step, salt)])
        return replace(found, unmet=whole) if whole else shrink(sent, unmet, self._try_sequence, self._axes)

    def _test_values_first(self, sequence: Sequence[SaltedStep]) -> None:
        """Find the values of the axes `TESTED_FIRST` that fail by themselves, in order to avoid them.

        Test all axes if the server has hung.
        """
        has_hung = self._baseline is not None and self._baseline.has_hung()
        for step, _ in sequence:
            self._avoid_failing_values(step, attribution.find_remaining_axes(step) if has_hung else TESTED_FIRST)

    def _is_any_step_wrong(self, steps: Iterable[Step]) -> bool:
        """Say whether any of these steps fails by itself; try each step with several inputs."""
        different = {repr(step): step for step in steps}.values()
        return any(self._try_sequence([(step, salt)]) for step in different for salt in range(MAX_PLAIN_TRIALS))

    def _retry_without_failing_values(self, sequence: list[SaltedStep], unmet: UnmetError) -> UnmetError | None:
        """Repeat the last two steps without the values that fail by themselves; return the failure of the last one.

        Return None if the last step passes. The earlier step is needed because some of its values may have left the
        connection unusable.
        """
        last_steps = sequence[-2:]
        for step, _ in last_steps:
            self._avoid_failing_values(step, attribution.find_remaining_axes(step))
        retried = [(self._replace_avoided_values(step), salt) for step, salt in last_steps]
        if retried == last_steps:
            return unmet
        sequence[-2:] = retried
        return _send_on_new_connection(self._walker, retried)

    def _avoid_failing_values(self, step: Step, axes: Iterable[str]) -> None:
        """Find the values of these axes of a step that fail by themselves, and avoid them in all later steps."""
        for axis in axes:
            if self._baseline is not None and axis in step and self._baseline.is_value_wrong(axis, step[axis]):
                self._avoided.setdefault(axis, set()).add(step[axis])

    def _replace_avoided_values(self, step: Step) -> Step:
        """Return the step with neutral values in place of avoided values; the step itself if that makes it invalid."""
        plain = {axis: self._axes.neutral[axis] for axis, values in self._avoided.items() if step[axis] in values}
        candidate = {**step, **plain}
        return step if self._axes.is_invalid(candidate) else candidate

    def _is_refusal_allowed(self, found: MinimalFailure, salt: int) -> bool:
        """Say whether the documents or a limit of the server allow the refusal of the shrunk step."""
        reply = found.unmet.reply
        if attribution.is_form_refused_in_http_1_0(found) and self._is_json_answered_in_http_1_0(salt):
            return False
        return (
            attribution.is_allowed_refusal(found, self._role)
            or (attribution.is_possible_limit(found) and self._is_server_limit(found, salt))
            or (reply is not None and reply.is_refusal and has_more_classes_than_row(found.step, self._walker.model))
        )

    def _is_json_answered_in_http_1_0(self, salt: int) -> bool:
        """Say whether the server answers plain JSON in HTTP/1.0, so that it supports this version.

        The version of HTTP does not change what a body means (RFC 9110, 2.5).
        """
        step = {**self._axes.neutral, "role": self._role.name, "http": "1.0"}
        return not self._axes.is_invalid(step) and self._try_sequence([(step, salt)]) is None

    def _is_reported_elsewhere(self, found: MinimalFailure, salt: int) -> bool:
        """Say whether the rows of single values report this failure.

        They do if a single value causes the failure, and the simplest role fails with this value as well.
        """
        remaining = {
            axis: value for axis, value in attribution.find_remaining_axes(found.step).items() if axis not in FORM_AXES
        }
        if self._baseline is None or found.earlier or not found.is_lasting or len(remaining) != 1:
            return False
        step = {**found.step, "role": self._baseline.walker.model.role.name}
        if self._axes.is_invalid(step) or _send_on_new_connection(self._baseline.walker, [(step, salt)]) is None:
            return False
        for axis, value in remaining.items():
            self._avoided.setdefault(axis, set()).add(value)
        return True

    def _try_sequence(self, sequence: Sequence[SaltedStep]) -> UnmetError | None:
        return _send_on_new_connection(self._walker, sequence)

    def _is_server_limit(self, found: MinimalFailure, salt: int) -> bool:
        """Say whether the server also refuses larger requests.

        If this spelling of JSON excludes more elements, the larger requests are plain JSON. Return True if the step has
        no element count, the count 0 or the largest count, so that no larger request can be compared.
        """
        if found.step["count"] in ("own", "0"):
            return True
        larger = self._list_larger_steps(found.step) or self._list_larger_steps({**found.step, **_PLAIN_JSON})
        failures = [self._try_sequence([(step, salt)]) for step in larger]
        return all(unmet is not None and unmet.reply is not None and unmet.reply.is_refusal for unmet in failures)

    def _list_larger_steps(self, step: Step) -> list[Step]:
        """Return the two largest of the valid steps that differ from this one in having more elements."""
        larger: list[Step] = [{**step, "count": other} for other in COUNTS if int(other) > int(step["count"])]
        return [candidate for candidate in larger if not self._axes.is_invalid(candidate)][-2:]

    def _make_unmet_error(self, found: MinimalFailure) -> UnmetError:
        """Return the error to report, with the broken requirement and the values that reproduce the failure."""
        unmet, needed = found.unmet, _describe_remaining_axes(found.step)
        condition = f", where the request has {needed}" if needed else ""
        history = _describe_earlier_steps(found.earlier) if found.earlier else ""
        suffix = "" if found.is_lasting else ", once"
        return UnmetError(
            f"{unmet.expected}{condition}{history}",
            f"{unmet.actual}{suffix}",
            unmet.reply,
            requirement=self._requirement_finder(found, self._role),
            offset=unmet.offset,
            since=unmet.since,
            tensor=unmet.tensor,
        )


def _describe_remaining_axes(step: Step) -> str:
    """Return the axes of a step that are not neutral, with their values, in words."""
    return ", ".join(
        f"{axis.replace('_', ' ')} {value}" for axis, value in attribution.find_remaining_axes(step).items()
    )


def _describe_earlier_steps(earlier: Sequence[SaltedStep]) -> str:
    if len(earlier) > 1:
        return f", after {len(earlier)} other requests on the connection"
    remaining_axes = _describe_remaining_axes(earlier[0][0])
    return (
        f", after a request with {remaining_axes} on the connection"
        if remaining_axes
        else ", after a plain request on the connection"
    )


def _send_on_new_connection(walker: Walker, sequence: Sequence[SaltedStep]) -> UnmetError | None:
    """Send steps on a new connection; return the failure of the last step, or None.

    A plain request is sent first, on another connection, to clear state that an earlier trial left in the server.
    """
    unmet: UnmetError | None = None
    plain_number = walker.send_plain_request()
    for k, (step, salt) in enumerate(sequence):
        unmet = None
        try:
            walker.send_step(step, salt, on_new_connection=k == 0)
        except DeclinedError:
            continue
        except UnmetError as found:
            unmet = found
            unmet.since = plain_number + 1
    return unmet


def salt_steps(steps: Sequence[Step], salt: int) -> list[SaltedStep]:
    """Pair each step with a salt, so that nearby steps send different tensors."""
    return [(step, (salt + 7 * k) % 256) for k, step in enumerate(steps)]


def describe_walk(steps: int, skipped: int) -> str:
    """Return the note on a row whose walk passed: the number of steps, and how many were not judged."""
    return f"{steps} steps" + (
        f", {skipped} of them declined by the server or reported by other rows" if skipped else ""
    )
