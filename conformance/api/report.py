"""The report of `judge` as a Python object: a view of the JSON report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from conformance.api.arguments import JudgeError
from conformance.report import formats
from conformance.report.findings import find_requirement, get_failure
from conformance.report.scope import describe_limits_of
from conformance.spec import ledger
from conformance.spec import report as reports
from conformance.spec.check import format_label
from conformance.spec.outcome import Outcome
from conformance.spec.text import escape_text, join_some
from conformance.spec.user_error import UserError
from conformance.spec.verdict import EXIT_STATUS, format_sentence

# Limits of a report's text form.
SHOWN_REQUIREMENTS, SHOWN_ROWS, SHOWN_NAMES = 10, 3, 5


@dataclass(frozen=True, slots=True)
class UnmetRow:
    """One row of a check that failed. All texts are safe to print.

    Attributes:
        check: the id of the check.
        row: the id of the row, or empty.
        message: the expected and the actual value.
        sent: a short description of the request; empty if none was sent.
        repeat: a shell command that sends the request again. If an ASGI app was judged, serve it first.
    """

    check: str
    row: str
    message: str
    sent: str
    repeat: str

    @property
    def label(self) -> str:
        """The id of the check with its row."""
        return format_label(self.check, self.row)


@dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """An unmet requirement with its failed rows.

    Attributes:
        requirement: the id of the requirement in the ledger.
        level: `MUST` or `SHOULD`.
        explain: the shell command that explains the requirement.
        rows: the failed rows, at least one.
    """

    requirement: str
    level: str
    statement: str
    explain: str
    rows: tuple[UnmetRow, ...]


@dataclass(frozen=True, slots=True)
class Robustness:
    """The robustness results of a server, which do not affect the verdict.

    Attributes:
        held: the number of rows that the server passed.
        of: the number of rows that were judged.
        unmet: the unmet requirements, in the order of the ledger.
    """

    held: int
    of: int
    unmet: tuple[UnmetRequirement, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a judged server. A report is always true in a boolean context; use `verdict` or `passed`.

    Attributes:
        document: the JSON report, described by `schemas/report.schema.json`; do not modify it.
    """

    document: reports.Report

    @property
    def verdict(self) -> str:
        """The verdict: `conformant`, `partial`, `nonconformant` or `incomplete`."""
        return self.document["verdict"]

    @property
    def passed(self) -> bool:
        """Whether something was judged and nothing failed; pytest would end with exit status 0."""
        return EXIT_STATUS[self.verdict] == 0

    @property
    def interoperable(self) -> bool | None:
        """Whether every MUST about exchange and transport is met; None if unknown."""
        return self.document["interoperable"]

    @property
    def why(self) -> tuple[str, ...]:
        """The reasons for the verdict, one line each; empty if the verdict is `conformant`."""
        return tuple(self.document["why"])

    @property
    def failures(self) -> tuple[UnmetRequirement, ...]:
        """The unmet requirements that fail the target, in the order of the ledger."""
        return self._list_unmet(Outcome.FAIL)

    @property
    def advice(self) -> tuple[UnmetRequirement, ...]:
        """The unmet SHOULDs, in the order of the ledger."""
        return self._list_unmet(Outcome.ADVISORY)

    @property
    def robustness(self) -> Robustness | None:
        """The results of hostile requests; None if `judge` sent none."""
        found = self.document.get("robustness")
        return found and Robustness(found["held"], found["of"], _list_unmet(found["rows"], Outcome.ADVISORY))

    def _list_unmet(self, outcome: Outcome) -> tuple[UnmetRequirement, ...]:
        return _list_unmet(self.document["rows"], outcome)

    def to_dict(self) -> dict[str, Any]:
        """Return a deep copy of the JSON report."""
        return deepcopy(dict(self.document))

    def write(self, path: str | PathLike[str]) -> None:
        """Write the report in the format of the suffix: `.json`, `.html`, `.md`, `.svg` or `.shields.json`.

        Raises:
            JudgeError: the suffix is unknown.
            OSError: the file cannot be written.
        """
        try:
            formats.write(self.document, Path(path))
        except UserError as error:
            raise JudgeError(str(error)) from None

    def __str__(self) -> str:
        """Return the verdict and the unmet requirements in a few lines."""
        return "\n".join([self._format_headline(), *_format_failures(self.failures)])

    def __repr__(self) -> str:
        """Return the verdict and the ids of unmet requirements on one line, for pytest's assertion messages."""
        names = [failure.requirement for failure in self.failures]
        unmet = f"; not met: {join_some(names, SHOWN_NAMES)}" if names else ""
        return f"<Report {self._format_headline()}{unmet}>"

    def _format_headline(self) -> str:
        why = f": {escape_text('; '.join(self.why), 600)}" if self.why else ""
        url, limits = escape_text(self.document["target"]["url"]), describe_limits_of(self.document)
        return f"{format_sentence(url, self.verdict, self.interoperable, limits)}{why}"


def _list_unmet(checks: Sequence[reports.ReportRow], outcome: Outcome) -> tuple[UnmetRequirement, ...]:
    """Return the unmet requirements of the rows with an outcome."""
    rows: dict[str, list[UnmetRow]] = {}
    for check in checks:
        if check["outcome"] == outcome:
            rows.setdefault(find_requirement(check), []).append(_build_row(check))
    return tuple(_build_requirement(entry, rows[name]) for name, entry in ledger.load().items() if name in rows)


def _build_row(check: reports.ReportRow) -> UnmetRow:
    failure = get_failure(check)
    return UnmetRow(check["check"], check["row"], check["message"], failure["sent"], failure["repeat"])


def _build_requirement(entry: ledger.Requirement, rows: Sequence[UnmetRow]) -> UnmetRequirement:
    return UnmetRequirement(entry.id, str(entry.level), entry.statement, entry.explain, tuple(rows))


def _format_failures(failures: Sequence[UnmetRequirement]) -> Iterator[str]:
    for failure in failures[:SHOWN_REQUIREMENTS]:
        yield f"{failure.level} {failure.requirement}: {failure.statement}"
        for row in failure.rows[:SHOWN_ROWS]:
            yield f"    {row.label}: {row.message}"
        others = len(failure.rows) - SHOWN_ROWS
        if others > 0:
            yield f"    and {others} more row{'s' if others > 1 else ''}"
        yield f"    {failure.explain}"
    if len(failures) > SHOWN_REQUIREMENTS:
        yield f"and {len(failures) - SHOWN_REQUIREMENTS} more requirements"
