"""What a model has done since the start: counts of inferences, and the time they took.

Source: Triton, Statistics Extension. A request waits in no queue here and no answer comes from a cache, so that nothing
is ever counted of these two.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

COMPUTE_STEPS: Final = (
    "compute_input",
    "compute_infer",
    "compute_output",
)  # the request is read, the model runs, the answer is written
UNUSED_STEPS: Final = ("queue", "cache_hit")


@dataclass
class Duration:
    """How often something was done, and how long it took in all, in nanoseconds."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int) -> None:
        """Count it once more."""
        self.count += 1
        self.ns += ns

    def to_dict(self) -> dict[str, int]:
        """Return it as the extension has it."""
        return {"count": self.count, "ns": self.ns}


def make_durations(*names: str) -> dict[str, Duration]:
    """Return a duration for each name."""
    return {name: Duration() for name in names}


@dataclass
class Statistics:
    """The statistics of one model; requests over both transports are counted, at the same time, too.

    Attributes:
        inferences: of successful requests; a batch of n counts n times.
        last: when the last request was made, in milliseconds since the epoch; 0 before the first.
        totals: over all requests, by what took the time.
        batches: over those of one batch size; that of a model without batching is 1.
    """

    inferences: int = 0
    last: int = 0
    totals: dict[str, Duration] = field(
        default_factory=lambda: make_durations("success", "fail", *UNUSED_STEPS, *COMPUTE_STEPS)
    )
    batches: dict[int, dict[str, Duration]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock, repr=False)

    def failed(self, ns: int) -> None:
        """Count a request that was refused."""
        with self.lock:
            self.last = time.time_ns() // 1_000_000
            self.totals["fail"].add(ns)

    def succeeded(self, batch: int, steps: tuple[int, int, int]) -> None:
        """Count a request that was answered; `steps` are the nanoseconds of each of `COMPUTE_STEPS`."""
        with self.lock:
            self.last = time.time_ns() // 1_000_000
            self.inferences += batch
            self.totals["success"].add(sum(steps))
            if batch not in self.batches:
                self.batches[batch] = make_durations(*COMPUTE_STEPS)
            of_batch = self.batches[batch]
            for name, ns in zip(COMPUTE_STEPS, steps, strict=True):
                self.totals[name].add(ns)
                of_batch[name].add(ns)

    def to_dict(self) -> dict[str, Any]:
        """Return them as the extension has them, without name and version of the model."""
        with self.lock:
            return {
                "last_inference": self.last,
                "inference_count": self.inferences,
                "execution_count": self.totals["success"].count,  # no request shares its run with another
                "inference_stats": {name: total.to_dict() for name, total in self.totals.items()},
                "batch_stats": [
                    {"batch_size": size, **{name: total.to_dict() for name, total in of_batch.items()}}
                    for size, of_batch in sorted(self.batches.items())
                ],
            }
