"""The regression gate: failures that are known do not fail it; new ones do, and so do entries that no longer hold.

An entry names rows, and why they fail. A row that it names and that fails for the stated reason is a `known_failure`.
An entry of one check means each row that it names: one that no longer fails is `fixed`, and fails the gate until it is
taken out, so that a fix is noticed and kept. A wide entry, of a requirement or of several checks, means some of what it
names; it is out of date when none of that fails any more. So is one that has expired, or that names nothing. The
verdict on the server is another matter: a server with known failures is not conformant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from conformance.judging.selection import is_match
from conformance.spec.check import Check, Row, format_label
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, INTEROPERABLE, NONCONFORMANT, Outcome
from conformance.spec.result import CheckResult
from conformance.spec.verdict import EXIT_STATUS, Verdict, bears_on_interoperability

# Outcomes that an entry can explain, and those by which it turns out to be out of date.
UNMET = (Outcome.FAIL, Outcome.BLOCKED, Outcome.KNOWN_FAILURE)
MET = (Outcome.PASS, Outcome.OBSERVED, Outcome.FIXED)

MAX_SHOWN_ROWS = 4  # of an entry, in messages


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """One entry; the fields are those of `schemas/baseline.schema.json`, `rows` always as patterns."""

    reason: str
    check: str | None = None
    rows: tuple[str, ...] = ("*",)
    requirement: str | None = None
    message: str | None = None
    issue: str | None = None
    expires: date | None = None

    @property
    def is_wide(self) -> bool:
        """Whether it is of more than one check."""
        return self.check is None or "*" in self.check or "?" in self.check

    @property
    def label(self) -> str:
        """How messages call it."""
        if self.check is None:
            return str(self.requirement)
        more = f" and {len(self.rows) - MAX_SHOWN_ROWS} more" if len(self.rows) > MAX_SHOWN_ROWS else ""
        return format_label(self.check, ", ".join(self.rows[:MAX_SHOWN_ROWS]) + more)

    def names(self, result: CheckResult) -> bool:
        """Say whether a row is among those of the entry."""
        if self.check is None:
            return self.requirement in _about(result)
        return is_match(result.id, self.check) and any(is_match(result.row, pattern) for pattern in self.rows)

    def explains(self, result: CheckResult) -> bool:
        """Say whether a row that is not met fails for the stated reason."""
        about = result.failure.requirement if result.failure else None
        return (self.requirement in (None, about) or about is None) and (self.message or "") in result.message

    def has_expired(self, today: date) -> bool:
        """Say whether the entry no longer counts."""
        return self.expires is not None and today > self.expires


def _about(result: CheckResult) -> Sequence[str]:
    """Return the requirement that a row does not meet; all that it answers for, where it does not say which."""
    return [result.failure.requirement] if result.failure else result.requirements


@dataclass(frozen=True, slots=True)
class GateResult:
    """What came of a run under a baseline: the difference.

    Attributes:
        known: labels of rows that are not met as they are known not to be; so with the others.
        new: what is not met, and no entry explains: failures, and advice where the baseline counts that.
        fixed: rows that an entry of one check names, and that are met.
        stale: entries that have expired, name nothing, or hold for nothing any more, each with the reason.
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
        return CONFORMANT if self.is_passed else NONCONFORMANT

    def exit_status(self, verdict: Verdict, lost: str | None = None, gate: str | None = None) -> int:
        """Return the exit status of a run under a baseline: about the difference, where all could be judged."""
        if not self.is_passed:
            return EXIT_STATUS[NONCONFORMANT]
        is_incomplete = lost or verdict.exit_status(gate) == EXIT_STATUS[INCOMPLETE]
        return EXIT_STATUS[INCOMPLETE if is_incomplete else CONFORMANT]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as the report has it."""
        lists = {name: list(getattr(self, name)) for name in ("known", "new", "fixed", "stale")}
        return {"passed": self.is_passed, **lists}


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of a file, as they count on one day.

    Attributes:
        advice: whether a SHOULD that is not met counts for the gate; for the verdict it never does.
    """

    entries: Sequence[BaselineEntry] = ()
    today: date = field(default_factory=date.today)
    advice: bool = False

    @property
    def unmet(self) -> Sequence[Outcome]:
        """The outcomes that an entry can explain."""
        return (*UNMET, Outcome.ADVISORY) if self.advice else UNMET

    def applied(self, result: CheckResult) -> CheckResult:
        """Return a row's result as the baseline has it: `known_failure` or `fixed` where an entry says so."""
        naming = [entry for entry in self.entries if not entry.has_expired(self.today) and entry.names(result)]
        exact = next((entry for entry in naming if not entry.is_wide), None)
        if result.outcome in MET and exact is not None:
            return replace(result, outcome=Outcome.FIXED, message=f"known to fail, and does not: {exact.reason}")
        if result.outcome in UNMET and any(entry.explains(result) for entry in naming):
            return replace(result, outcome=Outcome.KNOWN_FAILURE)
        return result

    def applying(self, judge: Callable[[Check, Row], CheckResult]) -> Callable[[Check, Row], CheckResult]:
        """Return a judge whose results are as the baseline has them."""
        return lambda check, row: self.applied(judge(check, row))

    def gate(self, results: Sequence[CheckResult], *, whole: bool, gate: str | None = None) -> GateResult:
        """Return what came of a run; what entries no longer name, or hold for, counts for a `whole` one alone.

        Under the gate `interoperable` a new failure counts only where it bears on that.
        """
        known, new = [], []
        for result in results:
            if result.outcome is Outcome.KNOWN_FAILURE or self._is_known_advice(result):
                known.append(result.label)
            elif result.outcome in self.unmet and result.outcome is not Outcome.BLOCKED:
                if gate == INTEROPERABLE and not bears_on_interoperability(result):
                    continue
                new.append(result.label)
        fixed = [result.label for result in results if result.outcome is Outcome.FIXED]
        return GateResult(known, new, fixed, tuple(self._stale(results, whole)))

    def _is_known_advice(self, result: CheckResult) -> bool:
        valid = (entry for entry in self.entries if not entry.has_expired(self.today))
        is_counted = self.advice and result.outcome is Outcome.ADVISORY
        return is_counted and any(entry.names(result) and entry.explains(result) for entry in valid)

    def _stale(self, results: Sequence[CheckResult], whole: bool) -> Iterator[str]:
        for entry in self.entries:
            if entry.has_expired(self.today):
                yield f"{entry.label} expired on {entry.expires}: {entry.reason}"
            elif whole:
                yield from self._without_use(entry, results)

    def _without_use(self, entry: BaselineEntry, results: Sequence[CheckResult]) -> Iterator[str]:
        """Say what of an entry names nothing, or that nothing which it names fails any more."""
        for pattern in entry.rows:
            one = replace(entry, rows=(pattern,))
            if not any(one.names(result) for result in results):
                yield f"{one.label} names no check or row of this run"
        named = [result for result in results if entry.names(result)]
        holds = any(result.outcome in self.unmet and entry.explains(result) for result in named)
        if entry.is_wide and not holds and any(result.outcome in MET for result in named):
            yield f"{entry.label} no longer fails: {entry.reason}"


def revert_baseline(result: CheckResult) -> CheckResult:
    """Return a row's result as it was before a baseline was applied."""
    if result.outcome is Outcome.KNOWN_FAILURE:
        return replace(result, outcome=Outcome.FAIL if result.failure else Outcome.BLOCKED)
    return replace(result, outcome=Outcome.PASS, message="") if result.outcome is Outcome.FIXED else result
