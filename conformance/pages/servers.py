"""What real servers do about a requirement, from the reports of runs against them (`docs/results`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.terms.extensions import TRANSPORTS
from conformance.terms.ledger import Requirement
from conformance.terms.outcome import WORDS, Outcome

# The report on the bundled server, which is no real one.
BUNDLED = "reference"
NOT_OFFERED, NOT_JUDGED, UNKNOWN = "not offered", "not judged", "no result yet"
# In the order in which a page shows them.
ORDER = (*(words.short for words in WORDS.values()), NOT_OFFERED, NOT_JUDGED, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and what a run found.

    Attributes:
        name: with its version, as its metadata or else the file of the report says it.
        offered: the extensions that it offers, and `protocol`.
        over: the transports over which it was judged.
        verdicts: outcome by requirement id.
    """

    name: str
    offered: frozenset[str]
    over: frozenset[str]
    verdicts: Mapping[str, str]

    def word(self, requirement: Requirement) -> str:
        """Return in a word or two what the server does about a requirement."""
        verdict = self.verdicts.get(requirement.id)
        if verdict is None:
            return UNKNOWN
        if verdict != Outcome.NOT_APPLICABLE:
            return WORDS[Outcome(verdict)].short
        was_asked = requirement.transport in self.over
        return NOT_OFFERED if was_asked and requirement.extension not in self.offered else NOT_JUDGED


def load(folder: Path) -> tuple[Server, ...]:
    """Return the servers that have a report in a folder, by the names of the files, without the bundled one."""
    files = sorted(path for path in folder.glob("*.json") if path.stem != BUNDLED)
    return tuple(_server(path.stem, json.loads(path.read_bytes())) for path in files)


def _server(stem: str, report: Mapping[str, Any]) -> Server:
    target = report["target"]
    return Server(
        " ".join(filter(None, (target["name"] or stem, target["version"]))),
        frozenset(name for name, entry in report["extensions"].items() if entry["offered"]),
        frozenset(TRANSPORTS if "grpc" in target else TRANSPORTS[:1]),
        {entry["id"]: entry["verdict"] for entry in report["requirements"]},
    )


def by_word(requirement: Requirement, servers: Sequence[Server]) -> dict[str, list[str]]:
    """Return what servers do about a requirement -> their names, the words in the order of `ORDER`."""
    words = {server.name: server.word(requirement) for server in servers}
    return {word: names for word in ORDER if (names := [name for name in words if words[name] == word])}
