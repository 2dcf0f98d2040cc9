"""The pool of this machine: so many runs at once, each a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Final

from conformance.fleet import unit_runner
from conformance.fleet.unit import Outcome, Unit

# A run waits most of its time for its target, so that one that is silent costs a place and no processor.
RUNS_PER_PROCESSOR: Final = 4

Work = Callable[[Unit, Callable[[], bool]], Outcome]


def choose_worker_count() -> int:
    """Return how many runs at once this machine is good for."""
    return RUNS_PER_PROCESSOR * (os.cpu_count() or 1)


class LocalPool:
    """Does units of work in threads that each wait for a process.

    Attributes:
        gone: why nothing comes of it any more; always empty: this machine is here.
    """

    gone = ""

    def __init__(self, workers: int, folder_for: Callable[[Unit], Path], do: Work = unit_runner.judge_unit) -> None:
        """Prepare the threads.

        Args:
            workers: how many units are done at once.
            folder_for: makes the folder in which a unit is done.
            do: does a unit.
        """
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="fleet")
        self._folder_for, self._do = folder_for, do
        self._stopped = Event()

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Do a unit when its turn comes, then tell what came of it; of one that was ended nothing is told."""

        def tell(future: Future[Outcome | None]) -> None:
            outcome = None if future.cancelled() else future.result()
            if outcome is not None:
                done(outcome)

        self._threads.submit(self._done, unit).add_done_callback(tell)

    def stop(self) -> None:
        """End everything that is under way, and wait until it has ended."""
        self._stopped.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _done(self, unit: Unit) -> Outcome | None:
        if self._stopped.is_set():
            return None
        outcome = self._do(replace(unit, folder=str(self._folder_for(unit))), lambda: not self._stopped.is_set())
        return None if self._stopped.is_set() else outcome
