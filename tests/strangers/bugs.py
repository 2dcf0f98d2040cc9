"""Bugs in the servers and clients of strangers, planted by people who had read the documents and no check.

`bugs.toml` beside each of them holds the bugs, as edits of its source; `honest.toml` beside some holds edits that
change what the program does and break nothing. `caught.json` holds what the suite said of each bug, one of servers and one of
clients: `python -m tests.strangers --bugs` writes it. A bug that no row sees stays in the list; `unseen.toml` says why.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from conformance import judge
from conformance.report.blocks import build_blocks
from conformance.spec.extensions import OVER_HTTP
from conformance.spec.outcome import Outcome
from tests.strangers.client_programs import CLIENTS, judge_client
from tests.strangers.servers import HERE, STRANGERS, serving

CAUGHT, CLIENTS_CAUGHT = HERE / "caught.json", HERE / "clients" / "caught.json"
PROFILES = ("quick", "certify")  # the cheap one first
LEVELS = ("MUST", "SHOULD", "NONE")
ADVISED = ("CLIENT-SENDS-FP16",)  # what the clients are advised against as they are
OUTCOMES = ("fail", "advisory", "incomplete", "")  # the one that says most first


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of one text in one file of a program, which occurs there once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug, or an honest variation, as its author describes it.

    Attributes:
        server: the name of the server or client.
        what: what its peer sees, and when.
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
        """Make the edits in a copy of the program.

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
def load_reasons(file: str = "unseen.toml") -> Mapping[str, str]:
    """Return why the suite does not see a bug, by `server/name`; or what another file says of bugs."""
    found = tomllib.loads((HERE / file).read_text(encoding="utf-8"))
    return {f"{server}/{name}": reason for server, reasons in found.items() for name, reason in reasons.items()}


def count_causes(server: str, sightings: Mapping[str, Sighting]) -> tuple[int, int]:
    """Return how many bugs of a server are named first by one of their causes, and how many fail and have any."""
    causes = load_reasons("causes.toml")
    known = [key for key in causes if key.startswith(f"{server}/") and sightings[key].outcome == Outcome.FAIL]
    return sum(sightings[key].first in causes[key].split() for key in known), len(known)


@cache
def load_bugs(server: str, kind: str = "bugs") -> Mapping[str, Bug]:
    """Return the bugs of a server or client by name, or its `honest` variations; none where nobody planted any."""
    file = HERE / server / f"{kind}.toml"
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["bug"] if file.exists() else []
    bugs = [
        Bug(server, one["name"], one["what"], one.get("breaks", ""), one.get("level", "NONE"), _read_edits(one))
        for one in entries
    ]
    return {bug.name: bug for bug in bugs}


def _read_edits(entry: Mapping[str, Any]) -> tuple[Edit, ...]:
    return tuple(Edit(**edit) for edit in entry["edit"])


def list_bugs() -> Iterator[Bug]:
    """Yield the bugs of all servers."""
    for server in STRANGERS:
        yield from load_bugs(server).values()


def list_client_bugs() -> Iterator[Bug]:
    """Yield the bugs of all clients."""
    for client in CLIENTS:
        yield from load_bugs(client).values()


@cache
def read_caught(file: Path = CAUGHT) -> Mapping[str, Sighting]:
    """Return what the suite said of each bug of servers, or of clients, by `server/name`."""
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {
        key: Sighting(**{**one, "unmet": tuple(one["unmet"]), "row": tuple(one["row"])}) for key, one in found.items()
    }


def write_caught(sightings: Mapping[str, Sighting], file: Path = CAUGHT) -> None:
    """Write what the suite said of each bug that there is."""
    keys = [f"{bug.server}/{bug.name}" for bug in (list_bugs() if file == CAUGHT else list_client_bugs())]
    lines = [f"{json.dumps(key)}: {json.dumps(asdict(sightings[key]))}" for key in keys if key in sightings]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    read_caught.cache_clear()


def try_bug(bug: Bug) -> Sighting:
    """Judge the server with a bug under each profile until one fails it; its vendor says that it offers everything."""
    found = Sighting()
    with TemporaryDirectory() as folder, serving(bug.server, Path(folder), bug.plant) as url:
        for profile in PROFILES:
            report = judge(url, profile=profile, extensions=OVER_HTTP)
            sighting = describe(profile, report.document, report.verdict, besides=STRANGERS[bug.server].advice)
            found = min(found, sighting, key=lambda one: OUTCOMES.index(one.outcome))
            if found.outcome == Outcome.FAIL:
                break
    return found


def try_client_bug(bug: Bug) -> Sighting:
    """Judge the client with a bug; every row, since there is one profile of clients here."""
    with TemporaryDirectory() as folder:
        document = judge_client(bug.server, Path(folder), bug.plant)
    return describe("certify", document, document["verdict"], besides=ADVISED)


def describe(profile: str, document: Mapping[str, Any], verdict: str, *, besides: Container[str] = ()) -> Sighting:
    """Return what a report says of a bug, besides what it says of the program as it is."""
    rows = document["rows"]
    for outcome in (Outcome.FAIL, Outcome.ADVISORY):
        blocks = build_blocks(rows, outcome, patterns=document.get("failure_patterns", ()))
        blocks = [block for block in blocks if block.requirement not in besides]
        if blocks:
            row = next(one for one in blocks[0].first.rows if one["failure"])
            names = tuple(block.requirement for block in blocks)
            return Sighting(profile, str(outcome), names[0], names, (row["check"], row["row"]))
    return Sighting(profile, verdict) if verdict == "incomplete" else Sighting()
