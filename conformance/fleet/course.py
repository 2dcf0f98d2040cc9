"""Hands units of work out, has those tried again that could not be reached, and tells of each what came of it."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from conformance.fleet.fleet_file import Limits
from conformance.fleet.unit import Outcome, Unit

LOOK: Final = 5.0  # seconds between two looks at whether anybody still works


class Pool(Protocol):
    """Whoever does units of work."""

    @property
    def gone(self) -> str:
        """Why nothing comes of it any more; empty as long as something may."""

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Do a unit when its turn comes, then tell what came of it, in any thread."""

    def stop(self) -> None:
        """End everything that is under way."""


def carry_out(
    units: Sequence[Unit],
    limits: Mapping[str, Limits],
    pool: Pool,
    keep: Callable[[Unit, Outcome, int], None],
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Have all units done; return why some were not, or nothing.

    Args:
        units: each with a name of its own.
        limits: of each, by name.
        pool: does them.
        keep: is given a unit, what came of it, and how often it was tried; in this thread.
        clock: seconds.
    """
    outcomes: SimpleQueue[Outcome] = SimpleQueue()
    by_name = {unit.name: unit for unit in units}
    tried: Counter[str] = Counter()
    later: list[tuple[float, str]] = []

    def hand_out(name: str) -> None:
        tried[name] += 1
        pool.submit(by_name[name], outcomes.put)

    for unit in units:
        hand_out(unit.name)
    left = len(units)
    while left:
        while later and later[0][0] <= clock():
            hand_out(heapq.heappop(later)[1])
        outcome: Outcome | None = None
        with suppress(Empty):
            outcome = outcomes.get(timeout=max(0.0, min(LOOK, later[0][0] - clock())) if later else LOOK)
        if outcome is None:
            if gone := pool.gone:
                return gone
            continue
        name = outcome.name
        if not outcome.is_reached and tried[name] <= limits[name].retries:
            heapq.heappush(later, (clock() + limits[name].retry_pause, name))
            continue
        keep(by_name[name], outcome, tried[name])
        left -= 1
    return ""
