"""One run of a fleet, from its file to its index: a new run, or a resumed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.fleet import index, index_page, pools, run_folder, units
from conformance.fleet.fleet_file import Fleet, FleetError
from conformance.fleet.pools import Cluster, LocalPool, Pool
from conformance.fleet.run_folder import RunFolder, RunRecord
from conformance.fleet.unit_runner import BASELINE
from conformance.fleet.units import Outcome, Unit
from conformance.plugin import signals
from conformance.report.json_report import compute_suite_digest
from conformance.report.output_files import write_atomically
from conformance.spec import files
from conformance.spec.version import __version__

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The command-line options of a run.

    Attributes:
        workers: number of concurrent targets; None: chosen from the number of processors.
        scheduler: address of a Dask scheduler; empty: run on this machine.
        anew: start a new run even if one could be resumed.
    """

    folder: Path
    workers: int | None = None
    scheduler: str = ""
    anew: bool = False
    updates_baselines: bool = False


def run(
    fleet: Fleet, options: RunOptions, say: Say, pool: Callable[[RunFolder], Pool] | None = None
) -> tuple[list[str], int]:
    """Judge the fleet and write its index; return the summary and the exit status.

    `fleet`: the targets, and how they are judged.
    `pool`: creates the pool that runs the units; None: the pool that `options` selects.

    Raises FleetError: the run cannot start, or its folder cannot be written.
    """
    every = units.make_units(fleet, here=not options.scheduler, updates_baselines=options.updates_baselines)
    try:
        with run_folder.lock_folder(options.folder):
            return _Run(fleet, options, every, say).execute(pool)
    except OSError as error:
        raise FleetError(f"cannot write {error.filename or options.folder}: {error.strerror}") from error


class _Run:
    """One run of a fleet: the units and the progress."""

    def __init__(self, fleet: Fleet, options: RunOptions, every: Sequence[Unit], say: Say) -> None:
        self.fleet, self.options, self.every, self.say = fleet, options, every, say
        suite = f"{__version__} ({compute_suite_digest()[:8]})"
        self.record = run_folder.choose_run(options.folder, suite, anew=options.anew)
        self.folder = RunFolder(options.folder, self.record)
        self.digests = {unit.name: units.compute_digest(unit, self.record.salt) for unit in every}
        self.finished = 0

    def execute(self, pool: Callable[[RunFolder], Pool] | None) -> tuple[list[str], int]:
        """Run the remaining units, and write the results."""
        done = self.folder.delete_stale_results(self.digests)
        left = [unit for unit in self.every if unit.name not in done]
        self.finished = len(done)
        if done:
            self.say(f"resuming the run of {self.record.started}: {len(done)} of {len(self.every)} targets are done")
        before = signals.interrupt_on_sigterm()
        try:
            stopped, was_interrupted = self._run_units(left, pool or self._create_pool) if left else ("", False)
            with signals.defer_signals():
                return self._write_results(stopped, was_interrupted=was_interrupted)
        finally:
            signals.restore_handler(before)

    def _create_pool(self, folder: RunFolder) -> Pool:
        if self.options.scheduler:
            return Cluster(self.options.scheduler, self.record.name)
        return LocalPool(self.options.workers or pools.choose_worker_count(), folder.make_folder)

    def _run_units(self, left: Sequence[Unit], make: Callable[[RunFolder], Pool]) -> tuple[str, bool]:
        """Run units; return the reason if some were not run, and whether the fleet was interrupted."""
        limits = {target.name: target.limits for target in self.fleet.targets}
        pool = make(self.folder)
        try:
            return pools.run_units(left, limits, pool, self._store_outcome), False
        except KeyboardInterrupt as interrupt:
            return str(interrupt) or "interrupted", True
        finally:
            with signals.defer_signals():
                pool.stop()

    def _store_outcome(self, unit: Unit, outcome: Outcome, tried: int) -> None:
        with signals.defer_signals():
            self.folder.store_outcome(unit, outcome, self.digests[unit.name], tried)
        self.finished += 1
        self.say(index_page.format_target(unit, outcome, self.finished, len(self.every)))

    def _write_results(self, stopped: str, *, was_interrupted: bool) -> tuple[list[str], int]:
        """Write the results of the run; return the summary and the exit status."""
        self.folder.delete_stale_results(self.digests)
        names = [unit.name for unit in self.every]
        record = self.record if stopped else replace(self.record, finished=run_folder.format_now())
        records = [
            each for each in run_folder.read_records(self.options.folder) if each.finished and each.name != record.name
        ]
        made = index.build(self.options.folder, record, records, names, profile=self.fleet.profile, stopped=stopped)
        if not stopped:
            self._finish_record(record, made)
        index_page.write(self.options.folder, made)
        status = index.INTERRUPTED if was_interrupted else made["status"]
        return index_page.format_summary(self.options.folder, made), status

    def _finish_record(self, record: RunRecord, made: Mapping[str, Any]) -> None:
        verdicts = {target["name"]: target["verdict"] for target in made["targets"]}
        if self.options.updates_baselines:
            self._store_baselines()
        run_folder.write(self.options.folder, replace(record, verdicts=verdicts))
        run_folder.prune_runs(self.options.folder, self.fleet.keep)

    def _store_baselines(self) -> None:
        """Copy the baseline that each run has written over the target's baseline file."""
        for target in self.fleet.targets:
            if target.baseline is None:
                continue
            try:
                text = files.read_text(self.folder.get_target_folder(target.name) / BASELINE)
            except files.UnreadableError:
                continue  # the run wrote no baseline; keep the old one
            target.baseline.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target.baseline, text)
