"""The folder of a fleet: the results by run and target, stored so that an interrupted run can be resumed.

    DIR/index.html, index.md, index.json    index of the last run
    DIR/runs/RUN.json                       per run: its times and verdicts
    DIR/runs/RUN/NAME/                      per target: report, evidence, `done.json`

A target is done when the folder with its name exists: the folder is created under a temporary name and renamed last.
An interruption therefore never leaves an incomplete result that looks complete.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

from conformance.fleet.fleet_file import FleetError
from conformance.fleet.units import Outcome, RunFailure, Unit
from conformance.report.output_files import convert_write_errors, write_atomically
from conformance.spec import files

DONE: Final = "done.json"
RUNS: Final = "runs"
# Failures that are retried when a run is resumed, since they do not depend on the target.
_RETRYABLE_FAILURES: Final = (RunFailure.WORKER, RunFailure.OTHER_SUITE)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of the fleet.

    Attributes:
        name: the name of the run's folder, which contains the start time.
        started: a UTC time in ISO 8601, like `finished`, which is empty until all targets are done.
        verdicts: verdict of each target, once the run is finished.
    """

    name: str
    started: str
    salt: str
    suite: str
    finished: str = ""
    verdicts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """The stored result of a finished target.

    Attributes:
        digest: digest of the unit, with the salt of the run.
        tried: number of attempts to reach the target.
    """

    digest: str
    status: int
    tried: int
    seconds: float
    trouble: str
    said: str


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder for exclusive use; create it if it is missing.

    Raises FleetError: the folder cannot be written, or another fleet has locked it.
    """
    with convert_write_errors(folder, FleetError):
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise FleetError(
            f"{folder}: another fleet writes into this folder; wait for it, or give another folder"
        ) from None
    try:
        yield
    finally:
        os.close(lock)


def read_records(folder: Path) -> list[RunRecord]:
    """Return the runs of a folder, earliest first; files that are not records are skipped."""
    found = []
    for path in sorted((folder / RUNS).glob("*.json")):
        with suppress(files.UnreadableError, TypeError):
            record = RunRecord(**files.parse_json(files.read_bytes(path)))
            if record.name == path.stem and isinstance(record.verdicts, dict):
                found.append(record)
    return found


def choose_run(folder: Path, suite: str, *, anew: bool) -> RunRecord:
    """Return the last run if it can be resumed, else a new run.

    A new run starts if the last run is finished or was made by another suite, or if `anew` is set.

    Raises OSError: a file cannot be written.
    """
    found = read_records(folder)
    if found and not found[-1].finished and found[-1].suite == suite and not anew:
        return found[-1]
    now = datetime.now(UTC)
    name = now.strftime("%Y%m%dT%H%M%SZ")
    later = [record.name for record in found if record.name >= name]  # same second, or the clock was set back
    record = RunRecord(f"{max(later)}+" if later else name, _format_time(now), secrets.token_hex(8), suite)
    write(folder, record)
    return record


def write(folder: Path, record: RunRecord) -> None:
    """Write the record of a run. Raises OSError: a file cannot be written."""
    write_atomically(folder / RUNS / f"{record.name}.json", json.dumps(asdict(record), indent=1) + "\n")


def format_now() -> str:
    """Return the current time in the format of records."""
    return _format_time(datetime.now(UTC))


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def prune_runs(folder: Path, keep: int) -> None:
    """Delete the folders of all runs except the last `keep`; the records of deleted runs stay."""
    for record in read_records(folder)[:-keep]:
        shutil.rmtree(folder / RUNS / record.name, ignore_errors=True)


class RunFolder:
    """The folder of one run, with a folder for each target."""

    def __init__(self, folder: Path, record: RunRecord) -> None:
        """Create the folder of the run. Raises OSError: the folder cannot be created."""
        self.path = folder / RUNS / record.name
        self.path.mkdir(exist_ok=True)

    def get_target_folder(self, name: str) -> Path:
        """Return the path of a target's folder, which may not exist."""
        return self.path / name

    def find_record(self, name: str) -> TargetRecord | None:
        """Return the stored result of a target; None if the target is not finished."""
        with suppress(files.UnreadableError, TypeError):
            return TargetRecord(**files.parse_json(files.read_bytes(self.get_target_folder(name) / DONE)))
        return None

    def delete_stale_results(self, digests: Mapping[str, str]) -> frozenset[str]:
        """Delete incomplete, outdated and retryable results; return the names of finished targets.

        `digests`: digests of all units, by name.
        """
        kept = {name for name, digest in digests.items() if _is_current(self.find_record(name), digest)}
        for path in self.path.iterdir():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)
        return frozenset(kept)

    def make_folder(self, unit: Unit) -> Path:
        """Create the working folder of a unit, with a temporary name."""
        return Path(tempfile.mkdtemp(prefix=f".{unit.name}.", dir=self.path))

    def store_outcome(self, unit: Unit, outcome: Outcome, digest: str, tried: int) -> None:
        """Store the outcome of a unit. Raises OSError: a file cannot be written."""
        made = Path(outcome.folder) if outcome.folder else self.make_folder(unit)
        for name, octets in outcome.files.items():
            _write_below(made, name, octets)
        trouble = str(outcome.trouble or "")
        done = TargetRecord(digest, outcome.status, tried, outcome.seconds, trouble, outcome.said)
        (made / DONE).write_text(json.dumps(asdict(done), indent=1) + "\n", encoding="utf-8")
        made.chmod(0o755)  # `mkdtemp` creates folders with access for the owner only
        made.rename(self.get_target_folder(unit.name))


def _is_current(done: TargetRecord | None, digest: str) -> bool:
    return done is not None and done.digest == digest and done.trouble not in _RETRYABLE_FAILURES


def _write_below(folder: Path, name: str, octets: bytes) -> None:
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        return  # no run writes such a path
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(octets)
