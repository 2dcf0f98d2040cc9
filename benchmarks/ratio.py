"""What a benchmark is: ours and theirs, measured in turns, and the ratio that is to be reached.

    @benchmark("encode-64MiB", "encode 64 MiB of FP32", "numpy's copy of the same bytes", reach=0.05)
    def encode() -> Measured:
        return in_turns(tensor.to_bytes, array.copy)

A ratio is ours by theirs; where `more_is_better`, the goal is a ratio of at least `reach`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

RUNS = 5


class CannotMeasureError(Exception):
    """Something that the benchmark needs is not here; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Ours and theirs, in one unit.

    Attributes:
        unit: of both: "s", "MB", "1/s".
        remarks: what else was seen, in a few words.
    """

    ours: float
    theirs: float
    unit: str = "s"
    remarks: str = ""

    @property
    def ratio(self) -> float:
        """Ours by theirs."""
        return self.ours / self.theirs


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One row of the table."""

    name: str
    what: str
    against: str
    reach: float
    measure: Callable[[], Measured]
    more_is_better: bool = False

    def is_reached(self, ratio: float) -> bool:
        """Whether a ratio is as good as is wanted."""
        return ratio >= self.reach if self.more_is_better else ratio <= self.reach


@dataclass(slots=True)
class Benchmarks:
    """All of them, in the order of the table."""

    by_name: dict[str, Benchmark] = field(default_factory=dict)

    def __call__(
        self, name: str, what: str, against: str, *, reach: float, more_is_better: bool = False
    ) -> Callable[[Callable[[], Measured]], Callable[[], Measured]]:
        """Declare a benchmark."""

        def declare(measure: Callable[[], Measured]) -> Callable[[], Measured]:
            self.by_name[name] = Benchmark(name, what, against, reach, measure, more_is_better)
            return measure

        return declare


benchmark = Benchmarks()


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how long a call takes, by this clock."""
    started = clock()
    work()
    return clock() - started


def in_turns(
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    runs: int = RUNS,
    remarks: str = "",
    clock: Callable[[], float] = time.perf_counter,
) -> Measured:
    """Measure both in turns, so that a busy machine slows both, and return the best of each."""
    pairs = [(seconds(ours, clock), seconds(theirs, clock)) for _ in range(runs)]
    mine, other = (min(times) for times in zip(*pairs, strict=True))
    return Measured(mine, other, remarks=remarks)
