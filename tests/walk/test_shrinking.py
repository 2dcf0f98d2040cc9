"""What is left of a step that goes wrong: the values that it takes, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from conformance.checks.support.covering import Step
from conformance.checks.support.step_shrinking import MAX_TRIALS, MAX_WAITS, SaltedStep, shrink
from conformance.checks.walk.attribution import find_remaining_axes
from conformance.checks.walk.axes import NEUTRAL, is_invalid
from conformance.checks.walk.exchanges import build_steps
from conformance.checks.walk.walking import SHRINKING
from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Exchange, FailureKind, Reply, TransportFailure
from conformance.wire.request import Message

Wrong = Callable[[Step], bool]
RICH = next(
    step
    for step in build_steps("binary")
    if len(find_remaining_axes(step)) > 12
    and step["role"] == "multi"
    and step["count"].isdecimal()
    and step["send"] == "mixed"
)


def trial(wrong: Wrong, taken: list[int]) -> Callable[[Sequence[SaltedStep]], UnmetError | None]:
    def take(sequence: Sequence[SaltedStep]) -> UnmetError | None:
        taken.append(len(sequence))
        return UnmetError("right", "wrong") if wrong(sequence[-1][0]) else None

    return take


@pytest.mark.parametrize(
    ("wrong", "left"),
    [
        (bool, set()),
        (lambda step: step["framing"] != "length", {"framing"}),
        (lambda step: step["framing"] != "length" and step["id"] != "none", {"framing", "id"}),
        (lambda step: step["send"] != "json", {"send"}),
        (lambda step: step["want"] == RICH["want"], {"want"}),
    ],
)
def test_a_step_shrinks_to_its_cause(wrong: Wrong, left: set[str]) -> None:
    step = {**RICH, "framing": "one-chunk", "http": "1.1", "id": "ascii"}
    taken: list[int] = []
    found = shrink([(step, 1)], UnmetError("right", "wrong"), trial(wrong, taken), SHRINKING)
    kept = find_remaining_axes(found.step).keys()
    assert kept <= left | {"send", "want"}
    assert left <= kept
    assert not is_invalid(found.step)
    assert len(taken) < 60


def test_few_trials_wait_for_a_server_that_hangs() -> None:
    """Each costs a wait, and a sequence has few of them."""
    silence = Reply(Exchange(0, Message(""), "", failure=TransportFailure(FailureKind.TIMEOUT, "")))
    taken: list[int] = []

    def take(sequence: Sequence[SaltedStep]) -> UnmetError | None:
        is_silent = sequence[-1][0]["place"] == "last-empty"
        taken.append(is_silent)
        return UnmetError("", "", silence) if is_silent else None

    step = {**RICH, "place": "last-empty"}
    found = shrink([(step, 1)], UnmetError("", ""), take, SHRINKING)
    assert find_remaining_axes(found.step).keys() == {"place"}
    assert sum(taken) < MAX_WAITS < len(find_remaining_axes(step))


def test_a_count_becomes_the_smallest_that_goes_wrong() -> None:
    step = {**NEUTRAL, "role": "identity_int32", "count": "4097"}
    found = shrink(
        [(step, 1)], UnmetError("", ""), trial(lambda s: s["count"] != "own" and int(s["count"]) > 8, []), SHRINKING
    )
    assert found.step["count"] == "9"


@pytest.mark.parametrize(("sender", "cause"), [("axios", "answer_coding"), ("cookies", "sender")])
def test_a_sender_that_accepts_codings_becomes_the_coding_that_fails(sender: str, cause: str) -> None:
    step = {**NEUTRAL, "role": "identity_int32", "sender": sender}
    fails = trial(lambda s: s["answer_coding"] == "gzip" or s["sender"] == sender, [])
    assert find_remaining_axes(shrink([(step, 1)], UnmetError("", ""), fails, SHRINKING).step).keys() == {cause}


def test_earlier_steps_are_kept_where_they_are_needed() -> None:
    steps: list[SaltedStep] = [({**NEUTRAL, "role": "identity_int32", "id": str(k)}, k) for k in range(9)]

    def take(sequence: Sequence[SaltedStep]) -> UnmetError | None:
        return UnmetError("", "") if any(step["id"] == "3" for step, _ in sequence[:-1]) else None

    found = shrink(steps, UnmetError("", ""), take, SHRINKING)
    assert [step["id"] for step, _ in found.earlier] == ["3"]


def test_a_step_that_only_goes_wrong_alone_needs_no_earlier_one() -> None:
    """What runs beside a step may take what an earlier request has left behind for it."""
    step = {**NEUTRAL, "role": "identity_int32", "before": "unknown-model", "beside": "one"}
    steps: list[SaltedStep] = [({**NEUTRAL, "role": "identity_int32"}, 1), (step, 2)]

    def take(sequence: Sequence[SaltedStep]) -> UnmetError | None:
        wrong = sequence[-1][0]["before"] == "unknown-model" and sequence[-1][0]["beside"] == "nothing"
        return UnmetError("", "") if wrong else None

    found = shrink(steps, UnmetError("", ""), take, SHRINKING)
    assert found.earlier == ()
    assert find_remaining_axes(found.step) == {"before": "unknown-model"}


def test_what_does_not_go_wrong_again_is_said_to_be_so() -> None:
    steps: list[SaltedStep] = [({**NEUTRAL, "role": "identity_int32"}, k) for k in range(3)]
    found = shrink(steps, UnmetError("", ""), lambda _: None, SHRINKING)
    assert not found.is_lasting


def test_trials_have_an_end() -> None:
    taken: list[int] = []
    steps: list[SaltedStep] = [({**RICH, "id": str(k)}, k) for k in range(200)]

    def take(sequence: Sequence[SaltedStep]) -> UnmetError | None:
        taken.append(1)
        return UnmetError("", "") if len(sequence) > 100 else None

    shrink(steps, UnmetError("", ""), take, SHRINKING)
    assert len(taken) <= MAX_TRIALS
