"""A target is asked no faster than its user allows, on all connections together."""

from __future__ import annotations

import pytest

from conformance.discovery import placement_search
from conformance.transport import settings
from conformance.transport.settings import RateLimit, Settings
from conformance.transport.target import Target
from conformance.wire.request import Message
from tests.support.servers import JsonOnly, serve


class Clock:
    """A clock that goes on when somebody sleeps, and notes how long."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def paced(rate: float | None) -> tuple[RateLimit, Clock]:
    clock = Clock()
    return RateLimit(rate, clock.now, clock.sleep), clock


@pytest.mark.parametrize(
    ("rate", "counts", "slept"),
    [(4, [1, 1, 1], [0.25, 0.25]), (2, [3, 1], [1.5]), (None, [1] * 9, [])],
    ids=["in turn", "behind concurrent ones", "no rate"],
)
def test_requests_wait_for_their_turn(rate: float | None, counts: list[int], slept: list[float]) -> None:
    pace, clock = paced(rate)
    for count in counts:
        pace.wait(count)
    assert clock.slept == slept


def test_elapsed_time_counts_towards_the_delay() -> None:
    pace, clock = paced(1)
    pace.wait()
    clock.time += 5
    pace.wait()
    assert clock.slept == []


def test_targets_with_same_settings_share_rate_limit() -> None:
    pace, clock = paced(1)
    with serve(JsonOnly) as url:
        shared = Settings(url, rate_limit=pace)
        one, other = Target(shared), Target(shared)
        placement_search.list_models(one)
        before = len(clock.slept)
        other.send(Message("/v2", method="GET"))
        one.close()
        other.close()
    assert len(clock.slept) == before + 1


def test_make_settings_takes_rate() -> None:
    assert settings.make_settings("http://h", rate=2.5).rate_limit.rate == 2.5
