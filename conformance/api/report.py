"""What a judgement came to, for programs: a view of the JSON report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from conformance.api.arguments import JudgeError
from conformance.report import formats
from conformance.spec import ledger
from conformance.spec.check import format_label
from conformance.spec.outcome import Outcome
from conformance.spec.text import escape_text, join_some
from conformance.spec.verdict import EXIT_STATUS, format_sentence

# How much a text of a report shows.
SHOWN_REQUIREMENTS, SHOWN_ROWS, SHOWN_NAMES = 10, 3, 5


@dataclass(frozen=True, slots=True)
class UnmetRow:
    """One row of a check that shows that a requirement is not met. All texts are safe to print.

    Attributes:
        check: its id; `row`: that of the row, or empty.
        message: what was expected, and what came instead.
        sent: the request in a few words; empty where none was sent.
        repeat: a shell command that sends it again; an app that was judged in process has to be served for that.
    """

    check: str
    row: str
    message: str
    sent: str
    repeat: str

    @property
    def label(self) -> str:
        """The check with its row."""
        return format_label(self.check, self.row)


@dataclass(frozen=True, slots=True)
class UnmetRequirement:
    """One requirement that is not met, with all rows that show it.

    Attributes:
        requirement: its id in the ledger; `explain`: the shell command that explains it.
        level: `MUST` or `SHOULD`.
        rows: at least one.
    """

    requirement: str
    level: str
    statement: str
    explain: str
    rows: tuple[UnmetRow, ...]


@dataclass(frozen=True, slots=True)
class Robustness:
    """What a server withstands; no verdict rests on it.

    Attributes:
        held: how many rows held, of so many (`of`) that were judged.
        unmet: the requirements that some row did not hold, in the order of the ledger.
    """

    held: int
    of: int
    unmet: tuple[UnmetRequirement, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a judgement came to. Whether it is good enough is for `verdict` to say: a report is always true.

    Attributes:
        document: the JSON report, as `schemas/report.schema.json` has it; not to be changed.
    """

    document: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """The verdict: `conformant`, `partial`, `nonconformant` or `incomplete`."""
        return str(self.document["verdict"])

    @property
    def passed(self) -> bool:
        """Whether the verdict is one that a run ends with status 0 for: something was judged, and nothing failed."""
        return EXIT_STATUS[self.verdict] == 0

    @property
    def interoperable(self) -> bool | None:
        """Whether every MUST of exchange and transport is met; None where that cannot be said."""
        found: bool | None = self.document["interoperable"]
        return found

    @property
    def why(self) -> tuple[str, ...]:
        """A line for each reason; none where the verdict is `conformant`."""
        return tuple(self.document["why"])

    @property
    def failures(self) -> tuple[UnmetRequirement, ...]:
        """The requirements that are not met, and fail the target, in the order of the ledger."""
        return self._unmet(Outcome.FAIL)

    @property
    def advice(self) -> tuple[UnmetRequirement, ...]:
        """The SHOULDs that are not met, in the order of the ledger."""
        return self._unmet(Outcome.ADVISORY)

    @property
    def robustness(self) -> Robustness | None:
        """What became of hostile requests; None where none were asked for."""
        found = self.document.get("robustness")
        return found and Robustness(found["held"], found["of"], _unmet(found["rows"], Outcome.ADVISORY))

    def _unmet(self, outcome: Outcome) -> tuple[UnmetRequirement, ...]:
        return _unmet(self.document["rows"], outcome)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON report, as a copy of its own."""
        return deepcopy(dict(self.document))

    def write(self, path: str | PathLike[str]) -> None:
        """Write the report, in the format of the suffix: `.json`, `.html`, `.md`, `.svg` or `.shields.json`.

        Raises:
            JudgeError: a suffix that is not known.
            OSError: it cannot be written there.
        """
        if formats.find_suffix(Path(path)) is None:
            raise JudgeError(f"{path}: unknown suffix, known are {', '.join(formats.FORMATS)}")
        formats.write(self.document, Path(path))

    def __str__(self) -> str:
        """Return the verdict, and what is not met, in a few lines."""
        return "\n".join([self._headline(), *_lines(self.failures)])

    def __repr__(self) -> str:
        """Return the verdict and the ids of what is not met, on one line: pytest shows no more of what is compared."""
        names = [failure.requirement for failure in self.failures]
        unmet = f"; not met: {join_some(names, SHOWN_NAMES)}" if names else ""
        return f"<Report {self._headline()}{unmet}>"

    def _headline(self) -> str:
        why = f": {escape_text('; '.join(self.why), 600)}" if self.why else ""
        return f"{format_sentence(escape_text(self.document['target']['url']), self.verdict, self.interoperable)}{why}"


def _unmet(checks: Sequence[Mapping[str, Any]], outcome: Outcome) -> tuple[UnmetRequirement, ...]:
    """Return what checks with an outcome do not meet."""
    rows: dict[str, list[UnmetRow]] = {}
    for check in checks:
        if check["outcome"] == outcome:
            rows.setdefault(check["failure"]["requirement"], []).append(_row(check))
    return tuple(_requirement(entry, rows[name]) for name, entry in ledger.load().items() if name in rows)


def _row(check: Mapping[str, Any]) -> UnmetRow:
    failure = check["failure"]
    return UnmetRow(check["check"], check["row"], check["message"], failure["sent"], failure["repeat"])


def _requirement(entry: ledger.Requirement, rows: Sequence[UnmetRow]) -> UnmetRequirement:
    return UnmetRequirement(entry.id, str(entry.level), entry.statement, entry.explain, tuple(rows))


def _lines(failures: Sequence[UnmetRequirement]) -> Iterator[str]:
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
