"""What a run comes to: results in the order of the suite, what was not run, the verdict, the gate of a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.baseline import Baseline, GateResult
from conformance.judging.coverage import find_coverage_of_watch
from conformance.judging.selection import Subjects, collected_rows
from conformance.spec import ledger
from conformance.spec.check import format_key
from conformance.spec.coverage import FULL_COVERAGE, Coverage
from conformance.spec.extensions import ROBUSTNESS, TRANSPORTS
from conformance.spec.outcome import INCOMPLETE, NONCONFORMANT, Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.verdict import Verdict, conclude

RowKey = tuple[str, str]  # the ids of a check and of its row


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a run came to.

    Attributes:
        results: in the order of the suite, as the baseline has them where there is one.
        missing: the rows that should have been run and were not, by extension.
        lost: why the target is gone, or None.
        gate: how the run differs from the baseline, or None without one.
        robustness: what came of the hostile requests, which say nothing of the verdict.
        judged_nothing: there was nothing to judge, so that no row was run.
        coverage: what of the run was not judged.
        is_narrowed: the missing rows are those that the user did not ask for.
    """

    verdict: Verdict
    results: Sequence[CheckResult] = ()
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lost: str | None = None
    gate: GateResult | None = None
    judged_nothing: bool = False
    robustness: Sequence[CheckResult] = ()
    coverage: Coverage = FULL_COVERAGE
    is_narrowed: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every row was run."""
        return not (self.missing or self.judged_nothing)


def conclude_nothing_judged(reason: str, results: Sequence[CheckResult] = ()) -> Conclusion:
    """Return the conclusion of a run that has nothing to judge, but for what it found while it looked for that."""
    verdict = conclude(results, lost=None)
    if verdict.verdict == NONCONFORMANT:
        interoperable = None if verdict.interoperable else verdict.interoperable
        found = Verdict(NONCONFORMANT, [*verdict.why, reason], interoperable)
        return Conclusion(found, results, judged_nothing=True)
    return Conclusion(Verdict(INCOMPLETE, [reason]), judged_nothing=True)


def sort_results(results: Sequence[CheckResult], subjects: Subjects) -> list[CheckResult]:
    """Return results in the order of the suite, however workers sent them."""
    places = index_rows(subjects)
    return sorted(results, key=lambda result: places[result.id, result.row])


def index_rows(subjects: Subjects) -> dict[RowKey, int]:
    """Return the place of each row in the suite."""
    rows = collected_rows("explore", dangerous=True, subjects=subjects, transports=TRANSPORTS)
    return {(check.id, row.id): index for index, (check, row) in enumerate(rows)}


def find_missing_rows(
    results: Sequence[CheckResult], profile: str, *, dangerous: bool, subjects: Subjects, transports: Sequence[str]
) -> dict[str, list[str]]:
    """Return the rows that should have been run and were not, by extension."""
    run = {(result.id, result.row) for result in results}
    missing: dict[str, list[str]] = {}
    for check, row in collected_rows(profile, dangerous=dangerous, subjects=subjects, transports=transports):
        extension = str(ledger.get_requirement(check.requirements(row)[0]).extension)
        if (check.id, row.id) not in run and extension != ROBUSTNESS:
            missing.setdefault(extension, []).append(format_key(check.id, row.id))
    return missing


def conclude_run(
    every: Sequence[CheckResult],
    missing: Mapping[str, Sequence[str]],
    baseline: Baseline | None,
    stopped: str,
    gate: str | None = None,
    *,
    coverage: Coverage = FULL_COVERAGE,
    is_narrowed: bool = False,
) -> Conclusion:
    """Return what a run came to; what a server withstands is kept beside the verdict.

    Args:
        every: result, in the order of the suite.
        missing: see `find_missing_rows`.
        baseline: the failures that are known, or None.
        stopped: why the run was ended, where it was.
        gate: what the user asks for, `conformant` or `interoperable`; None: that nothing fails.
        coverage: what of the run was not judged.
        is_narrowed: the missing rows are those that the user did not ask for.
    """
    results = [result for result in every if result.extension != ROBUSTNESS]
    hostile = [result for result in every if result.extension == ROBUSTNESS]
    lost = next((r.reason.subject for r in results if r.reason and r.reason.kind is ReasonKind.TARGET_LOST), None)
    absent = [label for labels in missing.values() for label in labels]
    verdict = conclude(results, absent, lost, stopped, coverage=coverage, is_narrowed=is_narrowed)
    found = None if baseline is None else baseline.gate(results, whole=not missing, gate=gate)
    return Conclusion(
        verdict, results, missing, lost, found, robustness=hostile, coverage=coverage, is_narrowed=is_narrowed
    )


# --- of watched clients -----------------------------------------------------------------------------------------------


NO_REQUEST = "no inference request came"


def conclude_watch(
    results: Sequence[CheckResult], baseline: Baseline | None, stopped: str, gate: str | None = None
) -> Conclusion:
    """Return what a watch came to.

    Args:
        results: of every client, as the baseline has them where there is one.
        baseline: the failures that are known, or None.
        stopped: why it was cut short; empty where it was not.
        gate: what the user asks for, `conformant` or `interoperable`; None for nothing.
    """
    if not results:
        return conclude_nothing_judged("; ".join(reason for reason in (NO_REQUEST, stopped) if reason))
    coverage = find_coverage_of_watch(results, summarize_clients(results, ()).offered)
    conclusion = conclude_run(results, {}, baseline, "", gate, coverage=coverage)
    if not stopped:
        return conclusion
    verdict = conclusion.verdict
    is_failed = verdict.verdict == NONCONFORMANT
    interoperable = None if verdict.interoperable else verdict.interoperable  # what was not seen mends no failure
    why = [*verdict.why, stopped] if is_failed else [stopped]
    cut_short = Verdict(NONCONFORMANT if is_failed else INCOMPLETE, why, interoperable)
    found = None if baseline is None else baseline.gate(results, whole=False, gate=gate)
    return replace(conclusion, verdict=cut_short, gate=found, missing={"protocol": [stopped]})


def summarize_clients(results: Sequence[CheckResult], names: Sequence[str]) -> DiscoveryResult:
    """Return what is known of watched clients: their names, and the extensions that they used."""
    used = {result.extension: "used" for result in results if result.outcome is not Outcome.NOT_APPLICABLE}
    if len(names) != 1:
        return DiscoveryResult(", ".join(names) or None, offered=used)
    product, slash, version = names[0].partition("/")
    is_product = bool(slash) and product.isascii() and " " not in product
    return DiscoveryResult(product, version, offered=used) if is_product else DiscoveryResult(names[0], offered=used)
