"""A Dask cluster that is there already: the same units of work, done by its workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from conformance.fleet import unit_runner
from conformance.fleet.fleet_error import FleetError
from conformance.fleet.unit import Outcome, RunFailure, Unit
from conformance.spec import extras
from conformance.spec.text import escape_text
from conformance.spec.verdict import EXIT_STATUS

# Seconds: to reach the scheduler and a first worker, and that a cluster may be without any worker in the midst of it.
CONNECT_WAIT_S: Final = 30.0
MAX_WORKERLESS_S: Final = 300.0
_UNDER_WAY: Final = ("executing", "long-running")  # as a worker of Dask calls the state of a task
# How Dask says that a unit could not be done, by the name of what it raises; its words may quote what was sent.
_FAILURES: Final = {
    "KilledWorker": "the workers that did it were lost",
    "ModuleNotFoundError": "the suite is not installed on the worker",
    "ImportError": "the suite is not installed on the worker",
}


def run_on_worker(unit: Unit, task: str) -> Outcome:
    """Do a unit on a worker of Dask, as long as its task is wanted: this is what is sent there."""
    from distributed import get_worker

    tasks = get_worker().state.tasks

    def is_wanted() -> bool:
        found = tasks.get(task)
        return found is not None and found.state in _UNDER_WAY

    return unit_runner.judge_unit(unit, is_wanted)


class Cluster:
    """Does units of work on the workers of a cluster; as many at once as these have threads."""

    def __init__(
        self,
        address: str,
        run: str,
        do: Callable[[Unit, str], Outcome] = run_on_worker,
        patience: float = CONNECT_WAIT_S,
    ) -> None:
        """Reach the cluster.

        Args:
            address: of the scheduler, as Dask writes it: `tcp://host:8786`.
            run: a name for the tasks of this run.
            do: does a unit there.
            patience: seconds to reach the scheduler, and then a worker.

        Raises:
            MissingExtraError: Dask is not installed.
            FleetError: nobody is there.
        """
        extras.expect_installed("fleet", "--scheduler")
        from distributed import Client

        self._run, self._do, self._count = run, do, 0
        self._futures: dict[str, Any] = {}
        self._seen = time.monotonic()
        self._is_stopped = False
        try:
            self._client = Client(address, timeout=patience, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, ImportError) as error:  # TimeoutError is an OSError
            what = "no answer" if isinstance(error, OSError) else "no address of a scheduler"
            raise FleetError(f"--scheduler {escape_text(address)}: {what}; give tcp://HOST:8786") from None
        try:
            self._client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            self._client.close()  # type: ignore[no-untyped-call]
            raise FleetError(f"--scheduler {escape_text(address)}: the cluster has no worker") from None

    @property
    def gone(self) -> str:
        """Why nothing comes of it any more; empty as long as something may."""
        if self._client.status != "running":
            return "the scheduler is gone"
        if self._client.scheduler_info(n_workers=1)["workers"]:
            self._seen = time.monotonic()
        is_bereft = time.monotonic() - self._seen > MAX_WORKERLESS_S
        return f"the cluster was without a worker for {MAX_WORKERLESS_S:g} s" if is_bereft else ""

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Do a unit when its turn comes, then tell what came of it; of one that was ended nothing is told."""
        self._count += 1
        task = f"oip-fleet-{self._run}-{self._count}-{unit.name}"

        def tell(future: Any) -> None:
            self._futures.pop(task, None)
            if self._is_stopped or future.status == "cancelled":
                return
            done(future.result() if future.status == "finished" else _failed(unit, future.exception()))

        future = self._client.submit(self._do, unit, task, key=task, pure=False)
        self._futures[task] = future
        future.add_done_callback(tell)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Give up what is under way: its workers end it as soon as they hear of it."""
        self._is_stopped = True
        if self._futures and self._client.status == "running":
            self._client.cancel(list(self._futures.values()))  # type: ignore[no-untyped-call]
        self._client.close()  # type: ignore[no-untyped-call]


def _failed(unit: Unit, error: BaseException | None) -> Outcome:
    name = type(error).__name__
    said = _FAILURES.get(name, f"the worker failed: {name}")
    return Outcome(unit.name, EXIT_STATUS["incomplete"], trouble=RunFailure.WORKER, said=said)
