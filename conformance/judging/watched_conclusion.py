"""What the watching of clients comes to: verdict and gate by the rules for servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.baseline import Baseline
from conformance.judging.conclusion import Conclusion, conclude_nothing_judged, conclude_run
from conformance.judging.coverage import find_coverage_of_watch
from conformance.spec.outcome import INCOMPLETE, NONCONFORMANT, Outcome
from conformance.spec.result import CheckResult
from conformance.spec.verdict import Verdict

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
