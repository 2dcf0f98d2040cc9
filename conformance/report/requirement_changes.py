"""Which requirements two reports do not meet alike, such as those of two versions of a server."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from conformance.spec import ledger
from conformance.spec.tally import MET, NOT_MET
from conformance.spec.text import format_count

Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RequirementChange:
    """A requirement that two versions do not meet alike.

    Attributes:
        outcomes: of the older and the newer version; empty where a report does not have the requirement.
        rows: of each, how many rows do not meet it.
    """

    id: str
    level: str
    outcomes: tuple[str, str]
    rows: tuple[int, int]

    @property
    def is_fixed(self) -> bool:
        """Whether what was not met is met."""
        before, after = self.outcomes
        return before in NOT_MET and after in MET

    @property
    def is_broken(self) -> bool:
        """Whether what is not met was met, or was not judged."""
        before, after = self.outcomes
        return before not in NOT_MET and after in NOT_MET


@dataclass(frozen=True, slots=True)
class VersionStep:
    """Two versions of a server, by the places of their columns, the older one first, and what changed."""

    older: int
    newer: int
    changes: list[RequirementChange]


def find_steps(reports: Sequence[Report]) -> list[VersionStep]:
    """Return a step from each version of a server to the next one that is here."""
    found = []
    for places in _by_server(reports).values():
        found += [
            VersionStep(older, newer, list(find_changes(reports[older], reports[newer])))
            for older, newer in pairwise(places)
        ]
    return found


def _by_server(reports: Sequence[Report]) -> dict[str, list[int]]:
    """Return the columns of each server, by version; of one that is there twice, the first."""
    servers: dict[str, dict[tuple[int, ...], int]] = {}
    for place, report in enumerate(reports):
        name, version = report["target"]["name"], report["target"]["version"]
        if name and version:
            servers.setdefault(name, {}).setdefault(parse_version(version), place)
    return {name: [place for _, place in sorted(versions.items())] for name, versions in servers.items()}


def parse_version(version: str) -> tuple[int, ...]:
    """Return what versions are sorted by: the numbers in one."""
    return tuple(map(int, re.findall(r"[0-9]{1,9}", version)))


def find_changes(older: Report, newer: Report) -> Iterator[RequirementChange]:
    """Yield what one report does not meet where another differs.

    The order is that of this version's ledger; requirements that it does not know come last.
    """
    levels = {entry["id"]: entry["level"] for report in (older, newer) for entry in report["requirements"]}
    before, after = map_verdicts(older), map_verdicts(newer)
    rows_before, rows_after = count_unmet_rows(older), count_unmet_rows(newer)
    for name in order_requirements(levels):
        outcomes = before.get(name, ""), after.get(name, "")
        rows = rows_before[name], rows_after[name]
        if any(rows) and (len(set(outcomes)) > 1 or len(set(rows)) > 1):
            yield RequirementChange(name, levels[name], outcomes, rows)


def map_verdicts(report: Report) -> dict[str, str]:
    """Return the verdict of each requirement of a report."""
    return {entry["id"]: entry["verdict"] for entry in report["requirements"]}


def count_unmet_rows(report: Report) -> Counter[str]:
    """Return how many rows do not meet each requirement."""
    unmet = [check for check in report["rows"] if check["outcome"] in NOT_MET]
    return Counter(check["failure"]["requirement"] for check in unmet if check["failure"])


def order_requirements(names: Collection[str]) -> list[str]:
    """Return requirements in the order of this version's ledger; those that it does not know come last."""
    known = ledger.load()
    return [*(name for name in known if name in names), *(name for name in names if name not in known)]


def find_statement(name: str) -> str:
    """Return the statement of a requirement by this version's ledger; empty for one that it does not know."""
    entry = ledger.load().get(name)
    return entry.statement if entry else ""


def format_change(word: str, rows: int) -> str:
    """Return what a report does about a requirement: a word, and how many rows do not meet it."""
    return f"{word}, {format_count(rows, 'row')}" if rows else word
