"""The regression gate: failures that are known do not fail it; new ones do, and so do entries that no longer hold.

An entry names a check, a pattern of its rows, and why they fail. A row that it names and that fails for the stated
reason is a `known_failure`. One that no longer fails is `fixed`, and fails the gate until the entry is removed, so that
a fix is noticed and kept. So do entries that have expired, or that name nothing. The verdict on the server is another
matter: a server with known failures is not conformant.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from conformance.judging.selection import fits
from conformance.terms import data
from conformance.terms.check import Check, Row
from conformance.terms.outcome import Outcome
from conformance.terms.result import CheckResult
from conformance.terms.verdict import EXIT_STATUS, Verdict

# Outcomes that an entry can explain, and those by which it turns out to be out of date.
UNMET = (Outcome.FAIL, Outcome.BLOCKED, Outcome.KNOWN_FAILURE)
MET = (Outcome.PASS, Outcome.OBSERVED)

HEAD = """\
# Failures that are known: see --conformance-baseline. Written by --conformance-update-baseline, which keeps comments.
"""
NO_REASON = "not looked into yet"


class BaselineError(ValueError):
    """The file cannot be used; the message is one line."""


@dataclass(frozen=True, slots=True)
class Known:
    """One entry; the fields are those of `schemas/baseline.schema.json`."""

    check: str
    reason: str
    rows: str = "*"
    requirement: str | None = None
    message: str | None = None
    issue: str | None = None
    expires: date | None = None

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"{self.check} [{self.rows}]"

    def names(self, result: CheckResult) -> bool:
        """Say whether a row is among those of the entry."""
        return result.id == self.check and fits(result.row, self.rows)

    def explains(self, result: CheckResult) -> bool:
        """Say whether a row that is not met fails for the stated reason."""
        about = result.failure.requirement if result.failure else None
        return (self.requirement in (None, about) or about is None) and (self.message or "") in result.message

    def has_expired(self, today: date) -> bool:
        """Say whether the entry no longer counts."""
        return self.expires is not None and today > self.expires


@dataclass(frozen=True, slots=True)
class Gate:
    """What came of a run under a baseline.

    Attributes:
        known: labels of rows that fail as they are known to; so with the others.
        new: failures that no entry explains.
        fixed: rows that an entry names, and that are met.
        stale: entries that have expired or name nothing, each with the reason.
    """

    known: Sequence[str] = ()
    new: Sequence[str] = ()
    fixed: Sequence[str] = ()
    stale: Sequence[str] = ()

    @property
    def is_passed(self) -> bool:
        """Whether the gate lets the run through."""
        return not (self.new or self.fixed or self.stale)

    @property
    def color(self) -> str:
        """As the verdict that it is like, for a terminal."""
        return "conformant" if self.is_passed else "nonconformant"

    def exit_status(self, verdict: Verdict, lost: str | None = None) -> int:
        """Return the exit status of a run under a baseline: about the difference, where all could be judged."""
        if not self.is_passed:
            return EXIT_STATUS["nonconformant"]
        return EXIT_STATUS["incomplete" if lost or verdict.verdict == "incomplete" else "conformant"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as the report has it."""
        lists = {name: list(getattr(self, name)) for name in ("known", "new", "fixed", "stale")}
        return {"passed": self.is_passed, **lists}


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of a file, as they count on one day."""

    entries: Sequence[Known] = ()
    today: date = field(default_factory=date.today)

    def applied(self, result: CheckResult) -> CheckResult:
        """Return a row's result as the baseline has it: `known_failure` or `fixed` where an entry says so."""
        entry = next((entry for entry in self._valid() if entry.names(result)), None)
        if entry is None:
            return result
        if result.outcome in MET:
            return replace(result, outcome=Outcome.FIXED, message=f"known to fail, and does not: {entry.reason}")
        explaining = (e for e in self._valid() if e.names(result) and e.explains(result))
        if result.outcome in UNMET and next(explaining, None) is not None:
            return replace(result, outcome=Outcome.KNOWN_FAILURE)
        return result

    def applying(self, judge: Callable[[Check, Row], CheckResult]) -> Callable[[Check, Row], CheckResult]:
        """Return a judge whose results are as the baseline has them."""
        return lambda check, row: self.applied(judge(check, row))

    def _valid(self) -> Iterator[Known]:
        return (entry for entry in self.entries if not entry.has_expired(self.today))

    def gate(self, results: Sequence[CheckResult], *, whole: bool) -> Gate:
        """Return what came of a run; entries that name nothing count for a `whole` one alone."""
        named = {outcome: [r.label for r in results if r.outcome is outcome] for outcome in Outcome}
        return Gate(
            named[Outcome.KNOWN_FAILURE], named[Outcome.FAIL], named[Outcome.FIXED], tuple(self._stale(results, whole))
        )

    def _stale(self, results: Sequence[CheckResult], whole: bool) -> Iterator[str]:
        for entry in self.entries:
            if entry.has_expired(self.today):
                yield f"{entry.label} expired on {entry.expires}: {entry.reason}"
            elif whole and not any(entry.names(result) for result in results):
                yield f"{entry.label} names no check or row of this run"


def unapplied(result: CheckResult) -> CheckResult:
    """Return a row's result as it was before a baseline was applied."""
    if result.outcome is Outcome.KNOWN_FAILURE:
        return replace(result, outcome=Outcome.FAIL if result.failure else Outcome.BLOCKED)
    return replace(result, outcome=Outcome.PASS, message="") if result.outcome is Outcome.FIXED else result


def load(path: Path) -> Baseline:
    """Read a file.

    Raises:
        BaselineError: it cannot be read, is not TOML, or does not fit the schema.
    """
    try:
        return of_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BaselineError(f"--conformance-baseline {path}: {error.strerror}") from error
    except (BaselineError, UnicodeDecodeError) as error:
        raise BaselineError(f"--conformance-baseline {path}: {error}") from error


def of_text(text: str) -> Baseline:
    """Return the baseline that a file's text is.

    Raises:
        BaselineError: it is not TOML, or does not fit the schema.
    """
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BaselineError(f"not TOML: {error}") from error
    if fault := _fault(entries):
        raise BaselineError(fault)
    return Baseline([Known(**entry) for entry in entries.get("known", ())])


def write(path: Path, text: str) -> None:
    """Write a file.

    Raises:
        OSError: it cannot be written.
    """
    path.write_text(text, encoding="utf-8")


def _fault(entries: Mapping[str, Any]) -> str | None:
    """Return how entries do not fit the schema, or None."""
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import best_match

    schema = json.loads((data.folder("schemas") / "baseline.schema.json").read_text(encoding="utf-8"))
    plain = json.loads(json.dumps(entries, default=str))  # dates of TOML as JSON has them
    error = best_match(Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(plain))
    if error is None:
        dated = [entry for entry in entries.get("known", ()) if "expires" in entry]
        wrong = next((entry for entry in dated if type(entry["expires"]) is not date), None)
        return f"expires: write a date without quotes, such as 2027-01-31, not {wrong['expires']!r}" if wrong else None
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place}: {error.message}" if place else error.message


def updated(text: str, results: Collection[CheckResult]) -> str:
    """Return a file brought up to date with a whole run: without what no longer holds, with what fails anew.

    Each row that fails anew gets an entry of its own. Comments and the order of what stays are kept.

    Raises:
        BaselineError: the text is not TOML.
    """
    try:
        document = tomlkit.parse(text or HEAD)
    except TOMLKitError as error:
        raise BaselineError(f"not TOML: {error}") from error
    tables = document.setdefault("known", tomlkit.aot())
    open_ones = [result for result in results if result.outcome in UNMET]
    kept = [Known(**table.unwrap()) for table in tables]
    for index in reversed(range(len(tables))):
        named = [result for result in results if kept[index].names(result)]
        if not any(r in open_ones and kept[index].explains(r) for r in named) or any(
            r.outcome in (*MET, Outcome.FIXED) for r in named
        ):
            del tables[index], kept[index]
    for result in open_ones:
        if not any(entry.names(result) and entry.explains(result) for entry in kept):
            tables.append(_table(result))
    return tomlkit.dumps(document)


def _table(result: CheckResult) -> Any:
    table = tomlkit.table()
    table["check"] = result.id
    if result.row:
        table["rows"] = result.row
    if result.failure:
        table["requirement"] = result.failure.requirement
    table["reason"] = NO_REASON
    return table
