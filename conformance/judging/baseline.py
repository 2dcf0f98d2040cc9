"""The regression gate: known failures pass it; new failures and outdated entries fail it.

An entry names rows and the reason why they fail. A named row that fails for that reason is a `known_failure`.
An entry for one check covers every row that it names. A named row that no longer fails is `fixed`; it fails the gate
until it is removed from the entry, so that fixes are noticed and kept. A wide entry, for a requirement or several
checks, covers some of the rows that it names; it is stale when none of them fails any more. An entry that has expired
or matches no row is stale as well. The verdict ignores the gate: a server with known failures is not conformant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from conformance.judging.selection import matches_pattern
from conformance.spec.check import Case, format_label
from conformance.spec.outcome import CONFORMANT, INCOMPLETE, INTEROPERABLE, NONCONFORMANT, Outcome
from conformance.spec.report import Gate
from conformance.spec.result import CheckResult
from conformance.spec.verdict import EXIT_STATUS, Verdict, counts_for_interoperability

# Outcomes that an entry can explain, and outcomes that show it to be out of date.
UNMET = (Outcome.FAIL, Outcome.BLOCKED, Outcome.KNOWN_FAILURE)
MET = (Outcome.PASS, Outcome.OBSERVED, Outcome.FIXED)

MAX_SHOWN_ROWS = 4  # per entry in a message


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """One baseline entry, with the fields of `schemas/baseline.schema.json`; `rows` holds patterns."""

    reason: str
    check: str | None = None
    rows: tuple[str, ...] = ("*",)
    requirement: str | None = None
    message: str | None = None
    issue: str | None = None
    expires: date | None = None

    @property
    def is_wide(self) -> bool:
        """Whether the entry names a requirement or a pattern of checks, instead of one check."""
        return self.check is None or "*" in self.check or "?" in self.check

    @property
    def display_name(self) -> str:
        """The check with its rows, or the requirement, as messages show it."""
        if self.check is None:
            return str(self.requirement)
        more = f" and {len(self.rows) - MAX_SHOWN_ROWS} more" if len(self.rows) > MAX_SHOWN_ROWS else ""
        return format_label(self.check, ", ".join(self.rows[:MAX_SHOWN_ROWS]) + more)

    def names_row(self, result: CheckResult) -> bool:
        """Return whether the entry names the row or the requirement of a result."""
        return self._names((result.id, result.row), _list_matched_requirements(result))

    def names_case(self, case: Case) -> bool:
        """Return whether the entry names a row that did not run, or its requirement."""
        return self._names(case.ids, case.requirements)

    def _names(self, ids: tuple[str, str], requirements: Sequence[str]) -> bool:
        if self.check is None:
            return self.requirement in requirements
        check, row = ids
        return matches_pattern(check, self.check) and any(matches_pattern(row, pattern) for pattern in self.rows)

    def explains(self, result: CheckResult) -> bool:
        """Return whether a row fails as the entry states; an entry may state a requirement and a message."""
        about = result.failure.requirement if result.failure else None
        return is_explained(self.requirement, about) and (self.message or "") in result.message

    def has_expired(self, today: date) -> bool:
        """Return whether the expiry date of the entry has passed."""
        return self.expires is not None and today > self.expires


def is_explained(known: str | None, unmet: str | None) -> bool:
    """Return whether a known failure explains a failing row.

    Args:
        known: the requirement that the known failure violates; None if it states none.
        unmet: the requirement that the row violates; None if it is blocked.
    """
    return known in (None, unmet) or unmet is None


def _list_matched_requirements(result: CheckResult) -> Sequence[str]:
    """Return the requirements by which an entry can name a row: the violated one, or else all that the row tests."""
    return [result.failure.requirement] if result.failure else result.requirements


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of the regression gate: the differences between a run and its baseline.

    Attributes:
        known: the rows that fail as an entry states, each as `CHECK [ROW]`.
        new: the rows that fail without an entry; they include advisory rows if the baseline counts advice.
        fixed: the rows that pass although an entry for one check names them.
        stale: entries that have expired, match no row, or name rows that no longer fail, each with the reason.
    """

    known: Sequence[str] = ()
    new: Sequence[str] = ()
    fixed: Sequence[str] = ()
    stale: Sequence[str] = ()

    @property
    def is_passed(self) -> bool:
        """Whether the run passes the gate."""
        return not (self.new or self.fixed or self.stale)

    @property
    def color(self) -> str:
        """The verdict whose color the terminal uses for this result: conformant if it is passed, else nonconformant."""
        return CONFORMANT if self.is_passed else NONCONFORMANT

    def exit_status(self, verdict: Verdict, lost: str | None = None, gate: str | None = None) -> int:
        """Return the exit status of a run with a baseline.

        Args:
            verdict: the verdict of the run.
            lost: why the target became unreachable, or None.
            gate: the verdict that the user requires; see `conclude_run`.
        """
        if not self.is_passed:
            return EXIT_STATUS[NONCONFORMANT]
        is_incomplete = lost or verdict.exit_status(gate) == EXIT_STATUS[INCOMPLETE]
        return EXIT_STATUS[INCOMPLETE if is_incomplete else CONFORMANT]

    def to_dict(self) -> Gate:
        """Return the gate result as JSON data for the report."""
        return {
            "passed": self.is_passed,
            "known": list(self.known),
            "new": list(self.new),
            "fixed": list(self.fixed),
            "stale": list(self.stale),
        }


@dataclass(frozen=True, slots=True)
class Baseline:
    """The entries of a baseline file, evaluated on one day.

    Attributes:
        advice: whether an unmet SHOULD counts for the gate; it never counts for the verdict.
    """

    entries: Sequence[BaselineEntry] = ()
    today: date = field(default_factory=date.today)
    advice: bool = False

    @property
    def unmet_outcomes(self) -> Sequence[Outcome]:
        """The outcomes that count as failures for the gate."""
        return (*UNMET, Outcome.ADVISORY) if self.advice else UNMET

    def apply(self, result: CheckResult) -> CheckResult:
        """Return a row's result, with the outcome changed to `known_failure` or `fixed` if an entry covers the row."""
        naming = [entry for entry in self.entries if not entry.has_expired(self.today) and entry.names_row(result)]
        exact = next((entry for entry in naming if not entry.is_wide), None)
        if result.outcome in MET and exact is not None:
            return replace(
                result, outcome=Outcome.FIXED, message=f"listed as a known failure, but it passes: {exact.reason}"
            )
        if result.outcome in UNMET and any(entry.explains(result) for entry in naming):
            return replace(result, outcome=Outcome.KNOWN_FAILURE)
        return result

    def wrap_judge(self, judge: Callable[[Case], CheckResult]) -> Callable[[Case], CheckResult]:
        """Return a judge that applies the baseline to each result of the given judge."""
        return lambda case: self.apply(judge(case))

    def gate(
        self, results: Sequence[CheckResult], *, whole: bool, gate: str | None = None, left_out: Sequence[Case] = ()
    ) -> GateResult:
        """Compare the results of a run with the baseline.

        Args:
            results: of the run, with the baseline applied.
            whole: whether every row ran. Otherwise entries that match no row, or whose rows pass, are not stale.
            gate: the verdict that the user requires. With `interoperable`, only failures that affect interoperability
                count as new.
            left_out: the rows that the profile leaves out; an entry that names one of them is not stale.
        """
        known, new = [], []
        for result in results:
            if result.outcome is Outcome.KNOWN_FAILURE or self._is_known_advice(result):
                known.append(result.label)
            elif result.outcome in self.unmet_outcomes and result.outcome is not Outcome.BLOCKED:
                if gate == INTEROPERABLE and not counts_for_interoperability(result):
                    continue
                new.append(result.label)
        fixed = [result.label for result in results if result.outcome is Outcome.FIXED]
        return GateResult(known, new, fixed, tuple(self._describe_outdated_entries(results, whole, left_out)))

    def _is_known_advice(self, result: CheckResult) -> bool:
        """Return whether an entry explains an unmet SHOULD, in a baseline that counts advice."""
        valid = (entry for entry in self.entries if not entry.has_expired(self.today))
        is_counted = self.advice and result.outcome is Outcome.ADVISORY
        return is_counted and any(entry.names_row(result) and entry.explains(result) for entry in valid)

    def _describe_outdated_entries(
        self, results: Sequence[CheckResult], whole: bool, left_out: Sequence[Case]
    ) -> Iterator[str]:
        for entry in self.entries:
            if entry.has_expired(self.today):
                yield f"{entry.display_name} expired on {entry.expires}: {entry.reason}"
            elif whole:
                yield from self._describe_stale_entry(entry, results, left_out)

    def _describe_stale_entry(
        self, entry: BaselineEntry, results: Sequence[CheckResult], left_out: Sequence[Case]
    ) -> Iterator[str]:
        """Yield a message for each pattern that matches no row, and for a wide entry whose rows no longer fail."""
        for pattern in entry.rows:
            one = replace(entry, rows=(pattern,))
            if not any(map(one.names_row, results)) and not any(map(one.names_case, left_out)):
                yield f"{one.display_name} matches no check or row of this run"
        named = [result for result in results if entry.names_row(result)]
        holds = any(result.outcome in self.unmet_outcomes and entry.explains(result) for result in named)
        holds = holds or any(map(entry.names_case, left_out))
        if entry.is_wide and not holds and any(result.outcome in MET for result in named):
            yield f"{entry.display_name} no longer fails: {entry.reason}"


def revert_baseline(result: CheckResult) -> CheckResult:
    """Return a row's result with the outcome that it had before the baseline was applied."""
    if result.outcome is Outcome.KNOWN_FAILURE:
        return replace(result, outcome=Outcome.FAIL if result.failure else Outcome.BLOCKED)
    return replace(result, outcome=Outcome.PASS, message="") if result.outcome is Outcome.FIXED else result
