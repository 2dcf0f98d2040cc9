"""The walk for clients: inferences and answers that combine their properties pairwise.

A step is one exchange, with a value for each axis (property) in `walk_axes`. A failing step is shrunk to the values
that matter, which determine the requirement. `walk_inferences` makes inference and answer; `walk_attribution` finds
the requirement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from conformance.checks.client.tensors import require_sendable
from conformance.checks.client.walk_attribution import CLASSES, FORM, UNKNOWN, find_requirement
from conformance.checks.client.walk_axes import (
    CONCURRENT_COUNTS,
    GRPC_AXES,
    GRPC_SHRINKING,
    HTTP_AXES,
    HTTP_SHRINKING,
    OPTIONAL_AXES,
    AxisValues,
    build_steps,
)
from conformance.checks.client.walk_inferences import (
    CLASS_TEXTS,
    make_call_style,
    make_earlier_inference,
    make_inference,
    make_outputs,
    make_style,
)
from conformance.checks.client.wrong_answers import wait_until_closed
from conformance.checks.support.client_rows import (
    block_if_unsent,
    client_claim,
    is_plain_answer_read,
    require_datatypes,
)
from conformance.checks.support.covering import Step
from conformance.checks.support.step_shrinking import Axes, MinimalFailure, SaltedStep, shrink
from conformance.clients.answers import honest, honest_calls
from conformance.clients.answers.answer_barrier import AnswerBarrier
from conformance.clients.answers.script import Script
from conformance.clients.client import TIMEOUT, Client, Observation
from conformance.clients.expectations import expect_classes, expect_correct_requests, expect_outputs
from conformance.clients.inference import Inference
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.spec import ledger
from conformance.spec.check import Row, rows
from conformance.spec.ledger import Level
from conformance.wire.tensor import Tensor

VALUES = "CLIENT-READS-VALUES"
MAX_HANGS = 2  # trials that may time out while a step is shrunk


@dataclass(slots=True)
class ClientWalker:
    """Makes a client perform the inferences of one row's steps.

    `hangs`: the number of trials in which an inference timed out.
    """

    client: Client
    row: str
    axes: Axes
    hangs: int = 0

    def take_step(self, step: Step, salt: int) -> None:
        """Have the client make the inferences of a step; judge its requests and the tensors that it returns.

        `salt` distinguishes repetitions of a step: model names and tensor values depend on it.

        Raises:
            NotApplicableError: the client cannot make one of the inferences, or cannot read the outputs.
            BlockedError: the client does not send an inference, nor a simple inference in the same encoding.
            UnmetError: a request or a result is wrong.
        """
        name = f"walk-{self.row}-{salt}"
        if step["before"] != self.axes.neutral["before"]:
            wait_until_closed(self.client.infer(*make_earlier_inference(step, name, self.axes.neutral)))
        observations = self._make_inferences(step, name)
        if step["before"] == "closed" and not all(one.requests for one in observations):
            # The client may notice the close only now; rows of CLIENT-GOES-ON judge whether it notices in time.
            observations = self._make_inferences(step, name)
        for one in observations:
            require_sendable(self.client, one)
            with block_if_unsent(self.client, one):
                expect_correct_requests(one)
        for one in observations:
            with require_datatypes(self.client, one):
                self._expect_read(one, step)

    def _make_inferences(self, step: Step, name: str) -> list[Observation]:
        count = CONCURRENT_COUNTS[step["beside"]]
        names = [f"{name}-{k}" for k in range(count)]
        inferences = [make_inference(step, one) for one in names]
        by_model = {one.model: own for one, own in zip(inferences, names, strict=True)}
        http = honest.USUAL if self.client.is_over_grpc else make_style(step)
        grpc = make_call_style(step) if self.client.is_over_grpc else honest_calls.USUAL

        def list_outputs(one: Inference) -> tuple[Tensor, ...]:
            return make_outputs(step, by_model[one.model])

        if count == 1:
            return self.client.infer_all(inferences, Script(list_outputs, http, grpc))
        script = Script(list_outputs, http, grpc, AnswerBarrier(count))
        return self.client.infer_all(inferences, script, at_once=True)

    def _expect_read(self, observation: Observation, step: Step) -> None:
        unread = UNKNOWN if step.get("extra") == "unknown" else None
        if step["classes"] != "none":
            expect_classes(observation, CLASS_TEXTS, unread=unread)
            observation = replace(observation, outputs=observation.outputs[1:])
        if observation.outputs:
            expect_outputs(observation, through_json=True, unread=unread)

    def reads_plain_answers(self, step: Step) -> bool:
        """Say whether the client reads each output of a step from a simple answer that has no other output."""
        name = f"walk-{self.row}-plain"
        inference = make_inference(step, name)
        return all(is_plain_answer_read(self.client, inference, (one,)) for one in make_outputs(step, name))

    def try_step(self, sequence: Sequence[SaltedStep]) -> UnmetError | None:
        """Take the last step of the sequence with a reconnected client; return the failure of the step, or None."""
        if self.hangs >= MAX_HANGS:
            return None
        self.client = self.client.reconnect()
        try:
            self.take_step(*sequence[-1])
        except UnmetError as unmet:
            return unmet
        except (NotApplicableError, BlockedError):
            return None
        finally:
            self.hangs += self.client.waited_s >= TIMEOUT
        return None


def judge_step(walker: ClientWalker, step: Step) -> None:
    """Take a step, and raise its most severe failure.

    If a single value causes a failure, the step is repeated without this value, to find further failures.

    Raises:
        NotApplicableError: the client can make neither the inferences of the step nor simpler ones.
        BlockedError: the client does not send an inference.
        UnmetError: a request or a result is wrong; of several failures, that of a MUST takes precedence.
    """
    failures: list[UnmetError] = []
    unmet = take_possible_step(walker, step)
    while unmet is not None:
        step, failure = unmet
        found = shrink([(step, 0)], failure, walker.try_step, walker.axes)
        remaining = list_remaining_values(found.step, walker.axes)
        failures.append(_build_walk_error(found, remaining, _find_requirement(walker, found, remaining)))
        if len(remaining) != 1:
            break
        step = {**step, **{axis: walker.axes.neutral[axis] for axis in remaining}}
        again = None if walker.axes.is_invalid(step) else walker.try_step([(step, len(failures))])
        unmet = None if again is None else (step, again)
    if failures:
        raise min(failures, key=_violates_no_must)


def _violates_no_must(unmet: UnmetError) -> bool:
    return ledger.get_requirement(unmet.requirement or VALUES).level is not Level.MUST


def take_possible_step(walker: ClientWalker, step: Step) -> tuple[Step, UnmetError] | None:
    """Take a step, or the first similar step that the client can make; return that step and its failure, or None.

    Raises:
        NotApplicableError: the client can make none of these steps.
        BlockedError: the client does not send an inference.
    """
    reason = NotApplicableError("the client cannot make an inference with the options of this step")
    for candidate in list_possible_steps(step, walker.axes):
        try:
            walker.take_step(candidate, 0)
        except NotApplicableError as error:
            reason = error
        except UnmetError as unmet:
            return candidate, unmet
        else:
            return None
    raise reason


def list_possible_steps(step: Step, axes: Axes) -> Iterator[Step]:
    """Yield a step, then valid variants with one optional axis set to neutral, then with two, three and more axes."""
    yield step
    special = [axis for axis in OPTIONAL_AXES if axis in axes.neutral and step[axis] != axes.neutral[axis]]
    candidates = [{**step, axis: axes.neutral[axis]} for axis in special]
    candidates += [{**step, **{axis: axes.neutral[axis] for axis in special[:k]}} for k in range(2, len(special) + 1)]
    yield from (candidate for candidate in candidates if not axes.is_invalid(candidate))


def list_remaining_values(step: Step, axes: Axes) -> Step:
    """Return the values of a step that are not neutral."""
    return {axis: value for axis, value in step.items() if value != axes.neutral[axis]}


def _find_requirement(walker: ClientWalker, found: MinimalFailure, remaining: Step) -> str | None:
    """Return the requirement that the client breaks; None if it also misreads the outputs in simple answers."""
    requirement = find_requirement(found, remaining)
    is_plain = requirement not in (CLASSES, FORM) or walker.reads_plain_answers(found.step)
    return requirement if is_plain else None


def _build_walk_error(found: MinimalFailure, remaining: Step, requirement: str | None) -> UnmetError:
    """Return the failure with its requirement and a message that names the values needed to reproduce it."""
    unmet = found.unmet
    needed = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in remaining.items())
    where = f", where the exchange has {needed}" if needed else ""
    once = "" if found.is_lasting else ", once"
    return UnmetError(
        f"{unmet.expected}{where}",
        f"{unmet.actual}{once}",
        unmet.reply,
        requirement=requirement,
        offset=unmet.offset,
        tensor=unmet.tensor,
    )


def make_walk_rows(axes: AxisValues) -> Iterator[Row]:
    """Yield a row for each step that `build_steps` returns."""
    for number, step in enumerate(build_steps(axes), 1):
        yield Row(f"step-{number:02}", (f"{number:02}", step))


@client_claim("reads-every-combination", VALUES, make_walk_rows(GRPC_AXES))
@rows(*make_walk_rows(HTTP_AXES))
def reads_every_combination(client: Client, number: str, step: Step) -> None:
    """The client sends any request and reads any valid answer, in every combination of two properties."""
    judge_step(ClientWalker(client, number, GRPC_SHRINKING if client.is_over_grpc else HTTP_SHRINKING), step)
