"""Pools that run units of work: in processes of this machine, or on the workers of a Dask cluster.

`run_units` submits the units, retries unreachable targets, and reports the outcome of each.
"""

from __future__ import annotations

import heapq
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, Final, Protocol

from conformance.fleet import unit_runner
from conformance.fleet.fleet_file import FleetError, Limits
from conformance.fleet.units import Outcome, RunFailure, Unit
from conformance.spec import extras
from conformance.spec.text import escape_text
from conformance.spec.verdict import EXIT_STATUS

POLL_INTERVAL_S: Final = 5.0  # seconds between two checks that the pool is still alive
# A run mostly waits for its target, so there can be more runs than processors.
RUNS_PER_PROCESSOR: Final = 4
# Time to reach the scheduler and a first worker, and how long a cluster may be without any worker during a run.
CONNECT_WAIT_S: Final = 30.0
MAX_WORKERLESS_S: Final = 300.0
_RUNNING_STATES: Final = ("executing", "long-running")  # Dask's names for the states of a running task
# Messages for Dask's exceptions, by class name; Dask's own messages may quote the arguments, which may be secret.
_FAILURES: Final = {
    "KilledWorker": "the workers that judged the target were lost",
    "ModuleNotFoundError": "the suite is not installed on the worker",
    "ImportError": "the suite is not installed on the worker",
}

Work = Callable[[Unit, Callable[[], bool]], Outcome]


class Pool(Protocol):
    """Runs units of work, on this machine or on a cluster."""

    @property
    def failure(self) -> str:
        """The reason why the pool can run no more units; empty while the pool can run units."""

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Queue a unit; call `done` with its outcome, in any thread."""

    def stop(self) -> None:
        """Stop all running units."""


def run_units(
    units: Sequence[Unit],
    limits: Mapping[str, Limits],
    pool: Pool,
    keep: Callable[[Unit, Outcome, int], None],
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Run all units; return the reason if some were not run, else an empty text.

    `keep`: stores an outcome; called in this thread with the unit, the outcome, and the number of attempts.
    `clock`: returns seconds.
    """
    outcomes: SimpleQueue[Outcome] = SimpleQueue()
    by_name = {unit.name: unit for unit in units}
    tried: Counter[str] = Counter()
    later: list[tuple[float, str]] = []

    def submit_unit(name: str) -> None:
        tried[name] += 1
        pool.submit(by_name[name], outcomes.put)

    for unit in units:
        submit_unit(unit.name)
    left = len(units)
    while left:
        while later and later[0][0] <= clock():
            submit_unit(heapq.heappop(later)[1])
        outcome: Outcome | None = None
        with suppress(Empty):
            outcome = outcomes.get(
                timeout=max(0.0, min(POLL_INTERVAL_S, later[0][0] - clock())) if later else POLL_INTERVAL_S
            )
        if outcome is None:
            if failure := pool.failure:
                return failure
            continue
        name = outcome.name
        if not outcome.is_reached and tried[name] <= limits[name].retries:
            heapq.heappush(later, (clock() + limits[name].retry_pause, name))
            continue
        keep(by_name[name], outcome, tried[name])
        left -= 1
    return ""


# --- this machine -----------------------------------------------------------------------------------------------------


def choose_worker_count() -> int:
    """Return the default number of concurrent runs on this machine."""
    return RUNS_PER_PROCESSOR * (os.cpu_count() or 1)


class LocalPool:
    """Runs units of work in threads that each wait for a process.

    `failure`: why the pool can run no more units; always empty for this machine.
    """

    failure = ""

    def __init__(self, workers: int, folder_for: Callable[[Unit], Path], do: Work = unit_runner.judge_unit) -> None:
        """Prepare the threads."""
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="fleet")
        self._folder_for, self._do = folder_for, do
        self._stopped = Event()

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Queue a unit; call `done` with its outcome, unless the unit is stopped."""

        def report_outcome(future: Future[Outcome | None]) -> None:
            outcome = None if future.cancelled() else future.result()
            if outcome is not None:
                done(outcome)

        self._threads.submit(self._run_unit, unit).add_done_callback(report_outcome)

    def stop(self) -> None:
        """Stop all running units and wait until they have ended."""
        self._stopped.set()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run_unit(self, unit: Unit) -> Outcome | None:
        if self._stopped.is_set():
            return None
        outcome = self._do(replace(unit, folder=str(self._folder_for(unit))), lambda: not self._stopped.is_set())
        return None if self._stopped.is_set() else outcome


# --- an existing Dask cluster -----------------------------------------------------------------------------------------


def run_on_worker(unit: Unit, task: str) -> Outcome:
    """Run a unit on a Dask worker until it ends or its task is cancelled.

    This function is sent to the worker.
    """
    from distributed import get_worker

    tasks = get_worker().state.tasks

    def should_continue() -> bool:
        found = tasks.get(task)
        return found is not None and found.state in _RUNNING_STATES

    return unit_runner.judge_unit(unit, should_continue)


class Cluster:
    """Runs units of work on the workers of a cluster, as many concurrently as the workers have threads."""

    def __init__(
        self,
        address: str,
        run: str,
        do: Callable[[Unit, str], Outcome] = run_on_worker,
        connect_wait_s: float = CONNECT_WAIT_S,
    ) -> None:
        """Connect to the cluster.

        `address`: address of the scheduler in Dask's format: `tcp://host:8786`.
        `connect_wait_s`: seconds to reach the scheduler, and then a worker.

        Raises:
            MissingExtraError: Dask is not installed.
            FleetError: the scheduler does not answer, or has no worker.
        """
        extras.expect_installed("fleet", "--scheduler")
        from distributed import Client

        self._run, self._do, self._count = run, do, 0
        self._futures: dict[str, Any] = {}
        self._seen = time.monotonic()
        self._is_stopped = False
        try:
            self._client = Client(address, timeout=connect_wait_s, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, ImportError) as error:  # TimeoutError is an OSError
            what = "no answer" if isinstance(error, OSError) else "not the address of a scheduler"
            raise FleetError(f"--scheduler {escape_text(address)}: {what}; give tcp://HOST:8786") from None
        try:
            self._client.wait_for_workers(1, timeout=connect_wait_s)
        except TimeoutError:
            self._client.close()  # type: ignore[no-untyped-call]
            raise FleetError(f"--scheduler {escape_text(address)}: the cluster has no worker") from None

    @property
    def failure(self) -> str:
        """The reason why the pool can run no more units; empty while the pool can run units."""
        if self._client.status != "running":
            return "the scheduler is gone"
        if self._client.scheduler_info(n_workers=1)["workers"]:
            self._seen = time.monotonic()
        is_workerless = time.monotonic() - self._seen > MAX_WORKERLESS_S
        return f"the cluster had no worker for {MAX_WORKERLESS_S:g} s" if is_workerless else ""

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Queue a unit; call `done` with its outcome, unless the unit is stopped."""
        self._count += 1
        task = f"oip-fleet-{self._run}-{self._count}-{unit.name}"

        def report_outcome(future: Any) -> None:
            self._futures.pop(task, None)
            if self._is_stopped or future.status == "cancelled":
                return
            done(future.result() if future.status == "finished" else _build_failed_outcome(unit, future.exception()))

        future = self._client.submit(self._do, unit, task, key=task, pure=False)
        self._futures[task] = future
        future.add_done_callback(report_outcome)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Cancel the running units; each worker stops its units when it learns of the cancellation."""
        self._is_stopped = True
        if self._futures and self._client.status == "running":
            self._client.cancel(list(self._futures.values()))  # type: ignore[no-untyped-call]
        self._client.close()  # type: ignore[no-untyped-call]


def _build_failed_outcome(unit: Unit, error: BaseException | None) -> Outcome:
    name = type(error).__name__
    said = _FAILURES.get(name, f"the worker failed: {name}")
    return Outcome(unit.name, EXIT_STATUS["incomplete"], trouble=RunFailure.WORKER, said=said)
