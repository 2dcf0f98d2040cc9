"""Concludes a run: sorts results, finds missing rows, and determines the verdict and the gate result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.baseline import Baseline, GateResult
from conformance.judging.coverage import find_coverage_of_pack, find_coverage_of_watch
from conformance.judging.selection import Subjects, list_profile_rows
from conformance.spec.check import Case
from conformance.spec.coverage import FULL_COVERAGE, Coverage
from conformance.spec.extensions import ROBUSTNESS, TRANSPORTS
from conformance.spec.outcome import INCOMPLETE, NONCONFORMANT, Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.verdict import Verdict, conclude

RowKey = tuple[str, str]  # the ids of a check and of its row


@dataclass(frozen=True, slots=True)
class PackConclusion:
    """The verdict of a pack, by the same rules as that of a run, and its results in order."""

    name: str
    verdict: Verdict
    results: Sequence[CheckResult]
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict of a run, and the results and missing rows on which the verdict is based.

    Attributes:
        results: of every row that ran, in the order of the suite, with the baseline applied if there is one.
        missing: the rows that did not run although they belong to the run, by extension.
        lost: why the target became unreachable, or None.
        gate: how the run differs from the baseline, or None without a baseline.
        robustness: the results of hostile requests, which do not affect the verdict.
        packs: the conclusions of packs, which do not affect the verdict.
        judged_nothing: whether the run judged no rows, because it found nothing to judge.
        coverage: the requirements that the run did not judge.
        is_narrowed: whether rows are missing because the user deselected them.
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
    packs: Sequence[PackConclusion] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all expected rows ran."""
        return not (self.missing or self.judged_nothing)


def conclude_nothing_judged(reason: str, results: Sequence[CheckResult] = ()) -> Conclusion:
    """Return the conclusion of a run that found nothing to judge; `results` are failures found during discovery."""
    verdict = conclude(results, lost=None)
    if verdict.verdict == NONCONFORMANT:
        interoperable = None if verdict.interoperable else verdict.interoperable
        found = Verdict(NONCONFORMANT, [*verdict.why, reason], interoperable)
        return Conclusion(found, results, judged_nothing=True)
    return Conclusion(Verdict(INCOMPLETE, [reason]), judged_nothing=True)


def sort_results(results: Sequence[CheckResult], subjects: Subjects) -> list[CheckResult]:
    """Sort results into the order of the suite; workers send them in any order."""
    places = index_rows(subjects)
    return sorted(results, key=lambda result: places[result.id, result.row])


def index_rows(subjects: Subjects) -> dict[RowKey, int]:
    """Return the position of each row in the order of the suite, by check and row id."""
    rows = list_profile_rows("explore", dangerous=True, subjects=subjects, transports=TRANSPORTS)
    return {case.ids: index for index, case in enumerate(rows)}


def find_missing_rows(
    results: Sequence[CheckResult],
    profile: str,
    *,
    dangerous: bool,
    subjects: Subjects,
    transports: Sequence[str],
    discovery_result: DiscoveryResult,
) -> dict[str, list[str]]:
    """Return the rows that did not run although they belong to the run, by extension."""
    run = {(result.id, result.row) for result in results}
    missing: dict[str, list[str]] = {}
    rows = list_profile_rows(
        profile, dangerous=dangerous, subjects=subjects, transports=transports, discovery_result=discovery_result
    )
    for case in rows:
        extension = str(case.requirement.extension)
        if case.ids not in run and extension != ROBUSTNESS:
            missing.setdefault(extension, []).append(case.key)
    return missing


def find_left_out_rows(results: Sequence[CheckResult], *, subjects: Subjects, transports: Sequence[str]) -> list[Case]:
    """Return the rows that a run of another profile, or one with dangerous rows, would judge in addition."""
    run = {(result.id, result.row) for result in results}
    rows = list_profile_rows("explore", dangerous=True, subjects=subjects, transports=transports)
    return [case for case in rows if case.ids not in run]


def conclude_run(
    all_results: Sequence[CheckResult],
    missing: Mapping[str, Sequence[str]],
    baseline: Baseline | None,
    stopped: str,
    gate: str | None = None,
    *,
    coverage: Coverage = FULL_COVERAGE,
    is_narrowed: bool = False,
    packs: Sequence[str] = (),
    left_out: Sequence[Case] = (),
) -> Conclusion:
    """Return the conclusion of a run; the results of robustness rows and of packs do not affect the verdict.

    Args:
        all_results: of every row that ran, in the order of the suite.
        missing: see `find_missing_rows`.
        baseline: the known failures, or None.
        stopped: why the run was stopped early; empty if it was not.
        gate: the verdict that the user requires, `conformant` or `interoperable`; None requires that nothing fails.
        coverage: the requirements that the run did not judge.
        is_narrowed: whether rows are missing because the user deselected them.
        packs: the names of the judged packs.
        left_out: see `find_left_out_rows`; only a run with a baseline needs them.
    """
    of_packs = [conclude_pack(name, all_results, missing, stopped, is_narrowed=is_narrowed) for name in packs]
    missing = {name: labels for name, labels in missing.items() if name not in packs}
    results = [result for result in all_results if result.extension not in (ROBUSTNESS, *packs)]
    hostile = [result for result in all_results if result.extension == ROBUSTNESS]
    lost = _find_loss(results)
    absent = [label for labels in missing.values() for label in labels]
    verdict = conclude(results, absent, lost, stopped, coverage=coverage, is_narrowed=is_narrowed)
    compared = [*results, *(result for pack in of_packs for result in pack.results)]
    found = None if baseline is None else baseline.gate(compared, whole=not missing, gate=gate, left_out=left_out)
    return Conclusion(
        verdict,
        results,
        missing,
        lost,
        found,
        robustness=hostile,
        coverage=coverage,
        is_narrowed=is_narrowed,
        packs=of_packs,
    )


def conclude_pack(
    name: str,
    all_results: Sequence[CheckResult],
    missing: Mapping[str, Sequence[str]] = MappingProxyType({}),
    stopped: str = "",
    *,
    is_narrowed: bool = False,
) -> PackConclusion:
    """Return the conclusion of a pack from the results of a run; for the arguments see `conclude_run`."""
    results = [result for result in all_results if result.extension == name]
    lost = _find_loss(results)
    coverage = find_coverage_of_pack(results)
    verdict = conclude(results, missing.get(name, ()), lost, stopped, coverage=coverage, is_narrowed=is_narrowed)
    return PackConclusion(name, verdict, results, coverage)


def _find_loss(results: Sequence[CheckResult]) -> str | None:
    return next((r.reason.subject for r in results if r.reason and r.reason.kind is ReasonKind.TARGET_LOST), None)


# --- watched clients --------------------------------------------------------------------------------------------------


NO_REQUEST = "no inference request came"


def conclude_watch(
    results: Sequence[CheckResult], baseline: Baseline | None, stopped: str, gate: str | None = None
) -> Conclusion:
    """Return the conclusion of a command that watched the traffic of clients.

    Args:
        results: of every client, with the baseline applied if there is one.
        baseline: the known failures, or None.
        stopped: why watching was stopped early; empty if it was not.
        gate: the verdict that the user requires, `conformant` or `interoperable`; None requires that nothing fails.
    """
    if not results:
        return conclude_nothing_judged("; ".join(reason for reason in (NO_REQUEST, stopped) if reason))
    coverage = find_coverage_of_watch(results, summarize_clients(results, ()).offered)
    conclusion = conclude_run(results, {}, baseline, "", gate, coverage=coverage)
    if not stopped:
        return conclusion
    verdict = conclusion.verdict
    is_failed = verdict.verdict == NONCONFORMANT
    interoperable = None if verdict.interoperable else verdict.interoperable  # unseen requests cannot undo a failure
    why = [*verdict.why, stopped] if is_failed else [stopped]
    cut_short = Verdict(NONCONFORMANT if is_failed else INCOMPLETE, why, interoperable)
    found = None if baseline is None else baseline.gate(results, whole=False, gate=gate)
    return replace(conclusion, verdict=cut_short, gate=found, missing={"protocol": [stopped]})


def summarize_clients(results: Sequence[CheckResult], names: Sequence[str]) -> DiscoveryResult:
    """Return the names of watched clients and the extensions that they used."""
    used = {result.extension: "used" for result in results if result.outcome is not Outcome.NOT_APPLICABLE}
    if len(names) != 1:
        return DiscoveryResult(", ".join(names) or None, offered=used)
    product, slash, version = names[0].partition("/")
    is_product = bool(slash) and product.isascii() and " " not in product
    return DiscoveryResult(product, version, offered=used) if is_product else DiscoveryResult(names[0], offered=used)
