"""Compares two reports of one server: new failures, vanished rows and fixed rows.

A vanished row counts as a regression, because a run without some checks has fewer failures. A row that fails for
another requirement than before is a new failure, as it is with a baseline of the old report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.judging.baseline import is_explained
from conformance.spec.outcome import Outcome
from conformance.spec.report import Report, ReportRow
from conformance.spec.text import escape_text

FAILED = ("fail", "known_failure", "error", "blocked")
MET = ("pass", "observed", "advisory", "fixed")
Rows = Mapping[tuple[str, str], ReportRow]


@dataclass(frozen=True, slots=True)
class Regression:
    """The differences of a report from an earlier report; each entry is a line of text.

    Attributes:
        new: rows that fail and did not fail before, at least not for this requirement, or were not judged before.
        vanished: rows that were judged before and are now absent or not judged.
        fixed: rows that failed before and are met now.
    """

    new: tuple[str, ...]
    vanished: tuple[str, ...]
    fixed: tuple[str, ...]

    @property
    def exit_status(self) -> int:
        """The exit status: 1 for new failures or vanished rows, else 0."""
        return 1 if self.new or self.vanished else 0

    def format_lines(self) -> Iterator[str]:
        """Yield the lines to print."""
        for title, entries in (("new failures", self.new), ("vanished", self.vanished), ("fixed", self.fixed)):
            yield f"{title:14}{len(entries):6}"
            yield from (f"      {entry}" for entry in entries)


def compare(old: Report, new: Report) -> Regression:
    """Return the changes from report `old` to report `new`; both must match `schemas/report.schema.json`."""
    before, after = _map_rows(old), _map_rows(new)
    failing = {key for key, row in after.items() if row["outcome"] in FAILED}
    judged = {key for key, row in before.items() if row["outcome"] in (*FAILED, *MET)}
    still = {key for key, row in after.items() if row["outcome"] in (*FAILED, *MET)}
    return Regression(
        tuple(
            _format_row(after[key]) for key in after if key in failing and not _is_known(before.get(key), after[key])
        ),
        tuple(_format_change(before[key], after.get(key)) for key in before if key in judged - still),
        tuple(
            _format_row(before[key])
            for key in before
            if _find_outcome(before, key) in FAILED and _find_outcome(after, key) in MET
        ),
    )


def _map_rows(report: Report) -> Rows:
    return {(row["check"], row["row"]): row for row in report["rows"]}


def _is_known(old: ReportRow | None, row: ReportRow) -> bool:
    """Return whether a failure of the old report explains a row that fails or is not judged."""
    if old is None or old["outcome"] not in FAILED:
        return False
    unmet = row["failure"]["requirement"] if row["failure"] else None
    if old["failure"] is None and old["outcome"] == Outcome.ERROR:
        return unmet is None  # it was not judged, so a baseline has no entry for it
    return is_explained(old["failure"]["requirement"] if old["failure"] else None, unmet)


def _find_outcome(rows: Rows, key: tuple[str, str]) -> str:
    return rows[key]["outcome"] if key in rows else ""


def _format_row(row: ReportRow) -> str:
    return escape_text(f"{row['check']} [{row['row']}]: {row['message']}", 400)


def _format_change(row: ReportRow, now: ReportRow | None) -> str:
    return escape_text(
        f"{row['check']} [{row['row']}]: " + ("not in the new report" if now is None else now["message"]), 400
    )
