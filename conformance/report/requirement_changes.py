"""Finds unmet requirements that differ between two reports, such as reports of two versions of a server."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from conformance.report.findings import find_requirement, find_statement
from conformance.spec import ledger
from conformance.spec.report import Report, list_requirements, list_rows
from conformance.spec.tally import MET, NOT_MET
from conformance.spec.text import format_count


@dataclass(frozen=True, slots=True)
class RequirementChange:
    """An unmet requirement whose outcome or number of failing rows differs between two versions.

    Attributes:
        outcomes: in the older and the newer version; empty if a report lacks the requirement.
        rows: the numbers of rows that do not meet the requirement in the older and the newer version.
    """

    id: str
    level: str
    outcomes: tuple[str, str]
    rows: tuple[int, int]

    @property
    def is_fixed(self) -> bool:
        """Whether the requirement was unmet and is now met."""
        before, after = self.outcomes
        return before in NOT_MET and after in MET

    @property
    def has_become_unmet(self) -> bool:
        """Whether the requirement is unmet in the newer version only."""
        before, after = self.outcomes
        return before not in NOT_MET and after in NOT_MET


@dataclass(frozen=True, slots=True)
class VersionStep:
    """The changes between two versions of a server; `older` and `newer` are column indexes."""

    older: int
    newer: int
    changes: list[RequirementChange]


def find_steps(reports: Sequence[Report]) -> list[VersionStep]:
    """Return a step from each version of a server to the next version among the reports."""
    found = []
    for places in _group_by_server(reports).values():
        found += [
            VersionStep(older, newer, list(find_changes(reports[older], reports[newer])))
            for older, newer in pairwise(places)
        ]
    return found


def _group_by_server(reports: Sequence[Report]) -> dict[str, list[int]]:
    """Return the column indexes of each server, sorted by version; the first column of a duplicate version counts."""
    servers: dict[str, dict[tuple[int, ...], int]] = {}
    for place, report in enumerate(reports):
        name, version = report["target"]["name"], report["target"]["version"]
        if name and version:
            servers.setdefault(name, {}).setdefault(parse_version(version), place)
    return {name: [place for _, place in sorted(versions.items())] for name, versions in servers.items()}


def parse_version(version: str) -> tuple[int, ...]:
    """Return the numbers in a version, as a sort key."""
    return tuple(map(int, re.findall(r"[0-9]{1,9}", version)))


def find_changes(older: Report, newer: Report) -> Iterator[RequirementChange]:
    """Yield the requirements unmet in either report whose outcome or number of failing rows differs.

    They are in the order of the installed ledger; unknown requirements come last.
    """
    levels = {entry["id"]: entry["level"] for report in (older, newer) for entry in list_requirements(report)}
    before, after = map_verdicts(older), map_verdicts(newer)
    rows_before, rows_after = count_unmet_rows(older), count_unmet_rows(newer)
    for name in order_requirements(levels):
        outcomes = before.get(name, ""), after.get(name, "")
        rows = rows_before[name], rows_after[name]
        if any(rows) and (len(set(outcomes)) > 1 or len(set(rows)) > 1):
            yield RequirementChange(name, levels[name], outcomes, rows)


@dataclass(frozen=True, slots=True)
class RequirementOutcomes:
    """A requirement and its outcomes in several reports.

    Attributes:
        statement: the statement in the installed ledger; empty for an unknown id.
        outcomes: for each report; empty if the report lacks the requirement.
    """

    id: str
    level: str
    area: str
    statement: str
    outcomes: list[str]


def list_outcomes(reports: Sequence[Report]) -> list[RequirementOutcomes]:
    """Return the requirements of reports in the order of the installed ledger; unknown requirements come last."""
    verdicts = [map_verdicts(report) for report in reports]
    entries = {entry["id"]: entry for report in reports for entry in list_requirements(report)}
    return [
        RequirementOutcomes(
            name,
            entries[name]["level"],
            entries[name]["area"],
            find_statement(name) or entries[name].get("statement", ""),
            [own.get(name, "") for own in verdicts],
        )
        for name in order_requirements(entries)
    ]


def map_verdicts(report: Report) -> dict[str, str]:
    """Return the verdict of each requirement of a report."""
    return {entry["id"]: entry["verdict"] for entry in list_requirements(report)}


def count_unmet_rows(report: Report) -> Counter[str]:
    """Count the rows that do not meet each requirement."""
    unmet = [check for check in list_rows(report) if check["outcome"] in NOT_MET and check["failure"]]
    return Counter(map(find_requirement, unmet))


def order_requirements(names: Collection[str]) -> list[str]:
    """Sort requirements into the order of the installed ledger; unknown requirements come last."""
    known = ledger.load()
    return [*(name for name in known if name in names), *(name for name in names if name not in known)]


def format_outcome(word: str, rows: int) -> str:
    """Format an outcome: its word, and the number of rows that do not meet the requirement, if any."""
    return f"{word}, {format_count(rows, 'row')}" if rows else word
