"""Bugs in the servers of strangers, planted by people who had read the documents and no check.

`bugs.toml` beside each server holds them, as edits of its source. `caught.json` holds what the suite said of each:
`python -m tests.strangers --bugs` writes it. A bug that no row sees stays in the list; `unseen.toml` says why.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance import judge
from conformance.api import Report
from conformance.report.blocks import build_blocks
from conformance.spec.extensions import OVER_HTTP
from conformance.spec.outcome import Outcome
from tests.strangers.servers import HERE, STRANGERS, serving

CAUGHT = HERE / "caught.json"
PROFILES = ("quick", "certify")  # the cheap one first
LEVELS = ("MUST", "SHOULD", "NONE")
OUTCOMES = ("fail", "advisory", "incomplete", "")  # the one that says most first


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of one text in one file of a server, which occurs there once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug as its author describes it.

    Attributes:
        server: the name of the server.
        what: what a client sees, and when.
        breaks: the document and the place that it breaks, in the words of its author.
        level: `MUST`, `SHOULD`, or `NONE` where nothing forbids it.
    """

    server: str
    name: str
    what: str
    breaks: str
    level: str
    edits: tuple[Edit, ...]

    def plant(self, folder: Path) -> None:
        """Make the edits in a copy of the server.

        Raises:
            ValueError: a text to replace does not occur exactly once.
        """
        for edit in self.edits:
            file = folder / edit.file
            text = file.read_text(encoding="utf-8")
            if text.count(edit.old) != 1:
                raise ValueError(f"{self.server} {self.name}: {edit.file} has the text {text.count(edit.old)} times")
            file.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the suite says of a bug.

    Attributes:
        profile: the first profile that sees it; empty if none does.
        outcome: one of `OUTCOMES`; `incomplete` if only the verdict speaks against the server, empty if nothing does.
        first: the requirement that a user reads first.
        unmet: all unmet requirements.
        row: check and row of the first failure of `first`; empty if there is none.
    """

    profile: str = ""
    outcome: str = ""
    first: str = ""
    unmet: tuple[str, ...] = ()
    row: tuple[str, ...] = ()


def is_seen(bug: Bug, sighting: Sighting, profiles: Sequence[str] = PROFILES) -> bool:
    """Return whether one of these profiles says of a bug what its level asks for."""
    return sighting.profile in profiles and (sighting.outcome not in ("", "advisory") or bug.level != "MUST")


@cache
def load_reasons() -> Mapping[str, str]:
    """Return why the suite does not see a bug, by `server/name`."""
    found = tomllib.loads((HERE / "unseen.toml").read_text(encoding="utf-8"))
    return {f"{server}/{name}": reason for server, reasons in found.items() for name, reason in reasons.items()}


@cache
def load_bugs(server: str) -> Mapping[str, Bug]:
    """Return the bugs of a server by name; there are none where nobody planted any."""
    file = HERE / server / "bugs.toml"
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["bug"] if file.exists() else []
    bugs = [
        Bug(server, one["name"], one["what"], one["breaks"], one["level"], tuple(Edit(**edit) for edit in one["edit"]))
        for one in entries
    ]
    return {bug.name: bug for bug in bugs}


def list_bugs() -> Iterator[Bug]:
    """Yield the bugs of all servers."""
    for server in STRANGERS:
        yield from load_bugs(server).values()


@cache
def read_caught() -> Mapping[str, Sighting]:
    """Return what the suite said of each bug, by `server/name`."""
    found = json.loads(CAUGHT.read_text(encoding="utf-8")) if CAUGHT.exists() else {}
    return {
        key: Sighting(**{**one, "unmet": tuple(one["unmet"]), "row": tuple(one["row"])}) for key, one in found.items()
    }


def write_caught(sightings: Mapping[str, Sighting]) -> None:
    """Write what the suite said of each bug that there is."""
    keys = [f"{bug.server}/{bug.name}" for bug in list_bugs()]
    lines = [f"{json.dumps(key)}: {json.dumps(asdict(sightings[key]))}" for key in keys if key in sightings]
    CAUGHT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    read_caught.cache_clear()


def try_bug(bug: Bug) -> Sighting:
    """Judge the server with a bug under each profile until one fails it; its vendor says that it offers everything."""
    found = Sighting()
    with TemporaryDirectory() as folder, serving(bug.server, Path(folder), bug.plant) as url:
        for profile in PROFILES:
            report = judge(url, profile=profile, extensions=OVER_HTTP)
            sighting = _describe(profile, report, STRANGERS[bug.server].advice)
            found = min(found, sighting, key=lambda one: OUTCOMES.index(one.outcome))
            if found.outcome == Outcome.FAIL:
                break
    return found


def _describe(profile: str, report: Report, known: Collection[str]) -> Sighting:
    rows = report.document["rows"]
    for outcome in (Outcome.FAIL, Outcome.ADVISORY):
        found = build_blocks(rows, outcome, patterns=report.document.get("failure_patterns", ()))
        blocks = [block for block in found if block.requirement not in known]
        if blocks:
            row = next(one for one in blocks[0].first.rows if one["failure"])
            names = tuple(block.requirement for block in blocks)
            return Sighting(profile, str(outcome), names[0], names, (row["check"], row["row"]))
    return Sighting(profile, report.verdict) if report.verdict == "incomplete" else Sighting()
