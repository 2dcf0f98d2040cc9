"""Fleets whose work is done at once, in this process: what each target comes to is given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.fleet import fleet_file, running
from conformance.fleet.run_folder import RunFolder
from conformance.fleet.running import RunOptions
from conformance.fleet.units import Outcome, RunFailure, Unit
from conformance.spec.verdict import EXIT_STATUS
from tests.support.small_reports import report

Report = Any  # also incomplete ones

# The head of a fleet file whose targets are judged in seconds, on one model.
SMALL = 'profile = "quick"\n[defaults]\nmodels = ["identity_int32"]\nextensions = ["binary_tensor_data"]\n'
# The same, on the base protocol: fewer rows.
PLAIN = SMALL.replace("binary_tensor_data", "protocol")
# Of the rows the sizes alone: a run of a second, which is incomplete where nothing fails.
BRIEF = SMALL + 'never = ["b*", "c*", "d*", "e*", "g*", "h*", "j*", "m*", "o*", "r*", "st*", "w*"]\n'


@dataclass
class Given:
    """A pool that knows already what comes of each target.

    Attributes:
        folder: of the run, or None where outcomes bring their files along, as those of a cluster do.
        reports: of each target; of one that has none the run left none.
        unreached: how often each target cannot be reached.
        ends_after: units after which somebody interrupts the fleet; None: nobody does.
        asked: the names of targets, in order.
    """

    folder: RunFolder | None
    reports: Mapping[str, Report] = field(default_factory=dict)
    unreached: dict[str, int] = field(default_factory=dict)
    ends_after: int | None = None
    failure: str = ""
    asked: list[str] = field(default_factory=list)
    is_stopped: bool = False

    def submit(self, unit: Unit, done: Callable[[Outcome], None]) -> None:
        """Tell at once what came of a unit."""
        if self.ends_after is not None and len(self.asked) >= self.ends_after:
            raise KeyboardInterrupt
        self.asked.append(unit.name)
        if self.unreached.get(unit.name, 0) > 0:
            self.unreached[unit.name] -= 1
            done(Outcome(unit.name, 6, is_reached=False))
            return
        made = self.reports.get(unit.name)
        if made is None:
            done(Outcome(unit.name, 6, trouble=RunFailure.CRASHED, said="left no report"))
            return
        octets = json.dumps(made).encode()
        outcome = Outcome(unit.name, EXIT_STATUS[made["verdict"]], seconds=1.0)
        if self.folder is None:
            done(replace(outcome, files={"report.json": octets, "evidence/run.har.xz": b"x"}))
            return
        place = self.folder.make_folder(unit)
        (place / "report.json").write_bytes(octets)
        done(replace(outcome, folder=str(place)))

    def stop(self) -> None:
        """Note that the pool was stopped."""
        self.is_stopped = True


def write_fleet(folder: Path, text: str) -> Path:
    path = folder / "fleet.toml"
    path.write_text(text, encoding="utf-8")
    return path


def make_fleet_text(*names: str, more: str = "") -> str:
    return more + "".join(f'[targets."{name}"]\nurl = "http://{name}.example"\n' for name in names)


def judge_fleet(folder: Path, text: str, reports: Mapping[str, Report], **wishes: Any) -> tuple[list[str], int, Given]:
    """Judge a fleet in a folder; return the summary, the exit status and the pool that did it."""
    pools: list[Given] = []
    given = {name: wishes.pop(name) for name in ("unreached", "ends_after", "failure") if name in wishes}
    brings_files = wishes.pop("brings_files", False)

    def pool(run: RunFolder) -> Given:
        pools.append(Given(None if brings_files else run, reports, **given))
        return pools[-1]

    fleet = fleet_file.load(write_fleet(folder, text))
    lines, status = running.run(fleet, RunOptions(folder / "out", **wishes), _silent, pool)
    return lines, status, pools[0] if pools else Given(None)


def read_index(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "index.json").read_text(encoding="utf-8"))
    return found


def make_failing_report(**more: Any) -> Report:
    """Return a report of a server that fails."""
    return report(verdict="nonconformant", interoperable=False, why=["1 row failed"], **more)


def _silent(_: str) -> None:
    """Say nothing."""
