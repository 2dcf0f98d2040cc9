"""The folder of a fleet: what came of each run and each target, in such a form that a run can be gone on with.

    DIR/index.html, index.md, index.json    of the last run
    DIR/runs/RUN.json                       of each run: when it was, and its verdicts
    DIR/runs/RUN/NAME/                      of each target: report, evidence, `done.json`

A target is done when its folder is there under its name: it is made under another one, and renamed as the last thing.
So whatever ends a fleet leaves nothing half done that could be taken for done.
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
from conformance.report.output_files import write_atomically
from conformance.spec import files

DONE: Final = "done.json"
RUNS: Final = "runs"
# What is tried again when a run is gone on with: it says nothing of the target.
_OF_THE_WAY: Final = (RunFailure.WORKER, RunFailure.OTHER_SUITE)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of the fleet.

    Attributes:
        name: of its folder: when it began.
        started: a UTC time in ISO 8601; so is `finished`, which is empty as long as not all targets are done.
        salt: of the digests of its units.
        suite: version and digest of the suite that judged.
        verdicts: of each target, once the run is finished.
    """

    name: str
    started: str
    salt: str
    suite: str
    finished: str = ""
    verdicts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """What is kept of a target that is done.

    Attributes:
        digest: of the unit, under the salt of the run.
        tried: how often it was tried to reach the target.
    """

    digest: str
    status: int
    tried: int
    seconds: float
    trouble: str
    said: str


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Have a folder alone; it is made where it is not there.

    Raises:
        FleetError: it cannot be written, or another fleet writes there.
    """
    try:
        (folder / RUNS).mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise FleetError(f"cannot write {folder}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise FleetError(f"{folder}: another fleet is at work there; wait for it, or give another folder") from None
    try:
        yield
    finally:
        os.close(lock)


def read_records(folder: Path) -> list[RunRecord]:
    """Return the runs of a folder, the earliest first; a file that is none of ours is passed over."""
    found = []
    for path in sorted((folder / RUNS).glob("*.json")):
        with suppress(files.UnreadableError, TypeError):
            record = RunRecord(**files.parse_json(files.read_bytes(path)))
            if record.name == path.stem and isinstance(record.verdicts, dict):
                found.append(record)
    return found


def choose_run(folder: Path, suite: str, *, anew: bool) -> RunRecord:
    """Return the run to go on with, or a new one: where the last is finished, was of another suite, or `anew` asks.

    Raises:
        OSError: it cannot be written.
    """
    found = read_records(folder)
    if found and not found[-1].finished and found[-1].suite == suite and not anew:
        return found[-1]
    now = datetime.now(UTC)
    name = now.strftime("%Y%m%dT%H%M%SZ")
    later = [record.name for record in found if record.name >= name]  # in the same second, or a clock that was set back
    record = RunRecord(f"{max(later)}+" if later else name, _time(now), secrets.token_hex(8), suite)
    write(folder, record)
    return record


def write(folder: Path, record: RunRecord) -> None:
    """Write what is known of a run.

    Raises:
        OSError: it cannot be written.
    """
    write_atomically(folder / RUNS / f"{record.name}.json", json.dumps(asdict(record), indent=1) + "\n")


def format_now() -> str:
    """Return the time as records have it."""
    return _time(datetime.now(UTC))


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def prune(folder: Path, keep: int) -> None:
    """Take the folders of all but the last runs away; what they came to stays."""
    for record in read_records(folder)[:-keep]:
        shutil.rmtree(folder / RUNS / record.name, ignore_errors=True)


class RunFolder:
    """The targets of one run."""

    def __init__(self, folder: Path, record: RunRecord) -> None:
        """Make the folder.

        Raises:
            OSError: it cannot be made.
        """
        self.path = folder / RUNS / record.name
        self.path.mkdir(exist_ok=True)

    def of(self, name: str) -> Path:
        """Return the folder of a target, there or not."""
        return self.path / name

    def done(self, name: str) -> TargetRecord | None:
        """Return what came of a target that is done; None where it is not."""
        with suppress(files.UnreadableError, TypeError):
            return TargetRecord(**files.parse_json(files.read_bytes(self.of(name) / DONE)))
        return None

    def tidy(self, digests: Mapping[str, str]) -> frozenset[str]:
        """Take away what is half done, and what was done otherwise than it is asked for now; return what is done.

        Args:
            digests: of all units, by name.
        """
        kept = {name for name, digest in digests.items() if _holds(self.done(name), digest)}
        for path in self.path.iterdir():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)
        return frozenset(kept)

    def make_folder(self, unit: Unit) -> Path:
        """Make the folder in which a unit is done; it gets its name once it is."""
        return Path(tempfile.mkdtemp(prefix=f".{unit.name}.", dir=self.path))

    def keep(self, unit: Unit, outcome: Outcome, digest: str, tried: int) -> None:
        """Keep what came of a unit.

        Raises:
            OSError: it cannot be written.
        """
        made = Path(outcome.folder) if outcome.folder else self.make_folder(unit)
        for name, octets in outcome.files.items():
            _write_below(made, name, octets)
        trouble = str(outcome.trouble or "")
        done = TargetRecord(digest, outcome.status, tried, outcome.seconds, trouble, outcome.said)
        (made / DONE).write_text(json.dumps(asdict(done), indent=1) + "\n", encoding="utf-8")
        made.chmod(0o755)  # as other folders: `mkdtemp` makes them for their owner alone
        made.rename(self.of(unit.name))


def _holds(done: TargetRecord | None, digest: str) -> bool:
    return done is not None and done.digest == digest and done.trouble not in _OF_THE_WAY


def _write_below(folder: Path, name: str, octets: bytes) -> None:
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        return  # nothing that a run writes
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(octets)
