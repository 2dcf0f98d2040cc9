"""What the watching of clients comes to: verdict and gate by the rules for servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.judging.baseline import Baseline
from conformance.judging.conclusion import Conclusion, concluded, nothing_judged
from conformance.judging.coverage import find_coverage_of_watch
from conformance.survey.survey import Survey
from conformance.terms.outcome import INCOMPLETE, NONCONFORMANT, Outcome
from conformance.terms.result import CheckResult
from conformance.terms.verdict import Verdict

NOTHING = "no inference request came"


def of_watch(results: Sequence[CheckResult], baseline: Baseline | None, stopped: str) -> Conclusion:
    """Return what a watch came to.

    Args:
        results: of every client, as the baseline has them where there is one.
        baseline: the failures that are known, or None.
        stopped: why it was cut short; empty where it was not.
    """
    if not results:
        return nothing_judged("; ".join(reason for reason in (NOTHING, stopped) if reason))
    coverage = find_coverage_of_watch(results, survey_of(results, ()).offered)
    conclusion = concluded(results, {}, baseline, "", coverage=coverage)
    if not stopped:
        return conclusion
    verdict = conclusion.verdict
    is_failed = verdict.verdict == NONCONFORMANT
    kept = Verdict(NONCONFORMANT, [*verdict.why, stopped]) if is_failed else Verdict(INCOMPLETE, [stopped])
    gate = None if baseline is None else baseline.gate(results, whole=False)
    return replace(conclusion, verdict=kept, gate=gate, missing={"protocol": [stopped]})


def survey_of(results: Sequence[CheckResult], names: Sequence[str]) -> Survey:
    """Return what is known of watched clients: their names, and the extensions that they used."""
    used = {result.extension: "used" for result in results if result.outcome is not Outcome.NOT_APPLICABLE}
    if len(names) != 1:
        return Survey(", ".join(names) or None, offered=used)
    product, slash, version = names[0].partition("/")
    is_product = bool(slash) and product.isascii() and " " not in product
    return Survey(product, version, offered=used) if is_product else Survey(names[0], offered=used)
