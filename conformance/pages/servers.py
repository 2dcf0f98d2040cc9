"""Results of real servers per requirement, from the reports of runs against them (`docs/results`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.report.comparison import count_represented_rows, remove_body
from conformance.report.report_file import read_folder
from conformance.spec.extensions import TRANSPORTS
from conformance.spec.ledger import Requirement
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome
from conformance.spec.report import Report

# The report on the bundled server, which does not count as a real server.
BUNDLED = "reference"
NOT_OFFERED, NOT_JUDGED, UNKNOWN = "not offered", "not judged", "no result yet"
# Words for outcomes, in the order in which a page shows them.
ORDER = (*(words.short for words in OUTCOME_WORDINGS.values()), NOT_OFFERED, NOT_JUDGED, UNKNOWN)


# A gRPC refusal: status, and the server's message, which is dropped.
_STATUS_TEXT = re.compile(r"^(refused: [A-Z_]+): .*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ServerResult:
    """A server and the results of a run against it.

    Attributes:
        name: name and version from the server's metadata; without a name in the metadata, the name of the report file.
        offered: the extensions that the server offers, and `protocol`.
        observed: observations of checks by requirement id, most frequent first.
    """

    name: str
    offered: frozenset[str]
    over: frozenset[str]
    verdicts: Mapping[str, str]
    observed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def describe_outcome(self, requirement: Requirement) -> str:
        """Return the server's outcome for a requirement in one or two words."""
        verdict = self.verdicts.get(requirement.id)
        if verdict is None:
            return UNKNOWN
        if verdict != Outcome.NOT_APPLICABLE:
            return OUTCOME_WORDINGS[Outcome(verdict)].short
        was_asked = requirement.transport in self.over
        return NOT_OFFERED if was_asked and requirement.extension not in self.offered else NOT_JUDGED


def load(folder: Path, *, bundled: bool = False) -> tuple[ServerResult, ...]:
    """Load the reports in a folder, sorted by file name; omit the bundled server's report unless `bundled` is set.

    Raises ReportError: a file is not a report.
    """
    return tuple(_read_report(*pair) for pair in read_folder(folder) if bundled or pair[0] != BUNDLED)


def _read_report(stem: str, report: Report) -> ServerResult:
    target = report["target"]
    return ServerResult(
        " ".join(filter(None, (target["name"] or stem, target["version"]))),
        frozenset(name for name, entry in report["extensions"].items() if entry["offered"]),
        frozenset(TRANSPORTS if "grpc" in target else TRANSPORTS[:1]),
        {entry["id"]: entry["verdict"] for entry in report["requirements"]},
        _collect_observations(report),
    )


def _collect_observations(report: Report) -> dict[str, list[str]]:
    found: dict[str, Counter[str]] = {}
    for check in report["rows"]:
        if check.get("observation"):
            what = _STATUS_TEXT.sub(r"\1", remove_body(check["observation"]))
            found.setdefault(check["requirements"][0], Counter())[what] += count_represented_rows(check)
    return {name: [what for what, _ in counts.most_common()] for name, counts in found.items()}


def group_by_outcome(requirement: Requirement, servers: Sequence[ServerResult]) -> dict[str, list[str]]:
    """Map each outcome of a requirement to the names of the servers with this outcome, in the order of `ORDER`."""
    words = {server.name: server.describe_outcome(requirement) for server in servers}
    return {word: names for word in ORDER if (names := [name for name in words if words[name] == word])}
