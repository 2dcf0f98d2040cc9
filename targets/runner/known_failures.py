"""What is known to be wrong with a server, and how a run's report differs from it.

An entry of expected.toml names a check and rows of it (patterns as of `fnmatch`), the requirement that they do not
meet, and why the server is wrong. Where only some versions are, `versions` names them. All rows that the pattern fits
have to be unmet: one that is met is a difference, too, and so is an entry that fits nothing. An entry with
`some = true` is of rows that come upon the fault by chance: some of them are unmet. `instead` is another requirement
that chance may make the unmet one. `blocks`, a pattern of checks, says which rows the fault may leave blocked.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

UNMET = ("fail", "advisory", "blocked", "error")
MET = ("pass", "observed")
TARGET_LOST = "target_lost"  # the reason of rows that a crash leaves unjudged


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One entry of expected.toml."""

    check: str
    rows: str
    requirement: str
    reason: str
    some: bool = False
    instead: str = ""
    blocks: str = ""

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of a report is one of this entry's."""
        return fnmatchcase(row["check"], self.check) and fnmatchcase(row["row"], self.rows)

    def explains(self, row: Mapping[str, Any]) -> bool:
        """Whether a row that is not met is known."""
        return self.fits(row) and not {self.requirement, self.instead}.isdisjoint(find_unmet_requirements(row))

    def has_blocked(self, row: Mapping[str, Any]) -> bool:
        """Whether a row may be blocked by what this entry is about."""
        return row["outcome"] == "blocked" and fnmatchcase(row["check"], self.blocks)


def read_known(path: Path, version: str) -> list[KnownFailure]:
    """Return the entries of a file for a version of its server; members that only a baseline needs are passed over."""
    names = [each.name for each in fields(KnownFailure)]
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["known"]
    chosen = [entry for entry in entries if version in entry.get("versions", [version])]
    return [KnownFailure(**{name: entry[name] for name in names if name in entry}) for entry in chosen]


def find_unmet_requirements(row: Mapping[str, Any]) -> Sequence[str]:
    """Return the requirement that a row does not meet; all of its requirements where the report does not say which."""
    failure = row["failure"]
    return [failure["requirement"]] if failure else row["requirements"]


def compare(
    report: Mapping[str, Any], known: Sequence[KnownFailure], wanted: Mapping[str, Any], status: int
) -> list[str]:
    """Return a line for each difference between a run and what is known.

    Args:
        report: of the run, as `schemas/report.schema.json` has it.
        known: what the server is known not to meet.
        wanted: `verdict`, `exit_status`, and `why`, a list of patterns; each may be absent.
        status: the exit status of the run.
    """
    lost = [row for row in report["rows"] if (row.get("reason") or {}).get("kind") == TARGET_LOST]
    rows = [row for row in report["rows"] if row not in lost] if lost else report["rows"]
    judged = [entry for entry in known if not any(map(entry.fits, lost))]
    return [*_ending(report, wanted, status), *_unexpected(rows, known), *_not_seen(rows, judged)]


def _ending(report: Mapping[str, Any], wanted: Mapping[str, Any], status: int) -> Iterator[str]:
    if status != wanted.get("exit_status", status):
        yield f"OUTCOME     exit status {status}, known is {wanted['exit_status']}"
    if report["verdict"] != wanted.get("verdict", report["verdict"]):
        yield f"OUTCOME     {report['verdict']}, known is {wanted['verdict']}"
    for sentence in wanted.get("why", []):
        if not any(fnmatchcase(said, sentence) for said in report["why"]):
            yield f"OUTCOME     {'; '.join(report['why']) or 'no reason'}, known is {sentence}"


def _unexpected(rows: Sequence[Mapping[str, Any]], known: Sequence[KnownFailure]) -> Iterator[str]:
    for row in rows:
        if row["outcome"] in UNMET and not any(each.explains(row) or each.has_blocked(row) for each in known):
            requirements = " ".join(find_unmet_requirements(row))
            yield f"UNEXPECTED  {row['outcome']} {requirements} {row['check']} [{row['row']}]: {row['message']}"


def _not_seen(rows: Sequence[Mapping[str, Any]], known: Sequence[KnownFailure]) -> Iterator[str]:
    for entry in known:
        name = f"{entry.requirement} {entry.check}"
        fitting = [row for row in rows if entry.fits(row)]
        if not any(row["outcome"] in UNMET and entry.explains(row) for row in fitting):
            yield f"NOT SEEN    {name} [{entry.rows}]"
            continue
        for row in fitting:
            if row["outcome"] in MET and not entry.some:
                yield f"NOT SEEN    {name} [{row['row']}] is met; known by the pattern {entry.rows}"
