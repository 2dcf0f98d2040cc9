"""Computes the verdict of a run from its results, by reproducible rules.

conformant      every applicable MUST was judged and met
partial         nothing failed, but something applicable was not judged: there was no model, or the profile skipped it
nonconformant   a MUST is not met (or a SHOULD, when strict), even if the target was lost or not all rows ran
incomplete      unknown: the target was lost, nothing was judged, a row was blocked or in error, or the run ended early
narrowed        the user selected some rows, and none of them failed

A target is interoperable if it meets every MUST of the concerns exchange and transport. Interoperability follows from
the same rules, applied only to the rows of these requirements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from conformance.spec import ledger
from conformance.spec.coverage import FULL_COVERAGE, Coverage, Gap
from conformance.spec.extensions import EXTENSIONS, PROTOCOL
from conformance.spec.outcome import (
    CONFORMANT,
    INCOMPLETE,
    NARROWED,
    NONCONFORMANT,
    PARTIAL,
    UNMET_OUTCOMES,
    Outcome,
    ReasonKind,
)
from conformance.spec.report import ExtensionVerdict, RequirementEntry
from conformance.spec.result import CheckResult

Missing = Mapping[str, Collection[str]]

# For a narrowed run pytest chooses the status.
EXIT_STATUS = {CONFORMANT: 0, PARTIAL: 0, NONCONFORMANT: 1, INCOMPLETE: 6}
# The concerns that interoperability covers.
INTEROPERABILITY_CONCERNS = (ledger.Concern.EXCHANGE, ledger.Concern.TRANSPORT)

# About the status of a refusal alone, whatever is refused.
REFUSAL_STATUSES = ("OIP-ERROR-STATUS", "OIP-ERROR-STATUS/grpc")

# From best to worst: a requirement gets the worst outcome of its checks.
_WORST = (
    Outcome.NOT_APPLICABLE,
    Outcome.PASS,
    Outcome.OBSERVED,
    Outcome.ADVISORY,
    Outcome.BLOCKED,
    Outcome.ERROR,
    Outcome.KNOWN_FAILURE,
    Outcome.FAIL,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a run about its target, with the reasons.

    Attributes:
        verdict: `conformant`, `partial`, `nonconformant`, `incomplete` or `narrowed`.
        why: one line for each reason; empty when conformant.
        interoperable: whether every MUST of exchange and transport is met; None if unknown.
    """

    verdict: str
    why: list[str] = field(default_factory=list)
    interoperable: bool | None = None

    def exit_status(self, gate: str | None = None) -> int:
        """Return the exit status; `gate` is the value of `--conformance-gate`, None if the option is not given.

        Without a gate only nonconformant and incomplete runs have a status other than 0.
        """
        if gate is None:
            return EXIT_STATUS.get(self.verdict, 0)
        if gate == CONFORMANT:
            return EXIT_STATUS[INCOMPLETE if self.verdict in (PARTIAL, NARROWED) else self.verdict]
        return EXIT_STATUS[_VERDICT_OF_INTEROPERABILITY[self.interoperable]]


def describe_verdict(verdict: str, interoperable: bool | None, limits: str = "") -> str:
    """Return a verdict, with "but interoperable" if the target is interoperable and not conformant.

    `limits` are the declared limits in words, such as "without BYTES"; a verdict without praise does not need them.
    """
    found = f"{verdict} but interoperable" if interoperable and verdict != CONFORMANT else verdict
    return f"{found} {limits}" if limits and (interoperable or verdict in (CONFORMANT, PARTIAL)) else found


def format_sentence(name: str, verdict: str, interoperable: bool | None, limits: str = "") -> str:
    """Return a sentence with the target's name and verdict, without a full stop; see `describe_verdict`."""
    words = describe_verdict(verdict, interoperable, limits)
    return f"{name}: narrowed run" if verdict == NARROWED else f"{name} is {words}"


_VERDICT_OF_INTEROPERABILITY: Mapping[bool | None, str] = {True: CONFORMANT, False: NONCONFORMANT, None: INCOMPLETE}


def conclude(
    results: Sequence[CheckResult],
    missing: Collection[str] = (),
    lost: str | None = None,
    stopped: str = "",
    *,
    coverage: Coverage = FULL_COVERAGE,
    is_narrowed: bool = False,
) -> Verdict:
    """Return the verdict of a run, and whether its target is interoperable.

    `missing`: labels of the selected rows that did not run.
    `lost`: why the target has become unreachable, or None.
    `stopped`: why the run ended early; empty if the run did not end early.
    `coverage`: what the run did not judge.
    `is_narrowed`: whether the user deselected the missing rows.
    """

    def build_verdict(counted: Sequence[CheckResult], counted_coverage: Coverage) -> Verdict:
        return _build_verdict(counted, missing, lost, stopped, counted_coverage, is_narrowed=is_narrowed)

    found = build_verdict(results, coverage)
    counted = [result for result in results if counts_for_interoperability(result)]
    exchange = build_verdict(counted, coverage.limit_to(lambda entry: entry.concern in INTEROPERABILITY_CONCERNS))
    values = {word: value for value, word in _VERDICT_OF_INTEROPERABILITY.items()}
    return replace(found, interoperable=values.get(exchange.verdict))


def counts_for_interoperability(result: CheckResult) -> bool:
    """Return whether the failed requirement of a row counts for interoperability.

    If no requirement failed, return whether any requirement that the row covers counts.
    """
    named = [result.failure.requirement] if result.failure else result.requirements
    return any(ledger.get_requirement(name).concern in INTEROPERABILITY_CONCERNS for name in named)


def _build_verdict(
    results: Sequence[CheckResult],
    missing: Collection[str],
    lost: str | None,
    stopped: str,
    coverage: Coverage,
    *,
    is_narrowed: bool,
) -> Verdict:
    counts = Counter(result.outcome for result in results)
    judged = counts.total() - counts[Outcome.NOT_APPLICABLE]
    cut_short = (
        [_describe_lost_target(results, lost)]
        if lost
        else [_describe_missing_rows(missing, stopped)]
        if missing
        else []
    )
    failures = _describe_failures(counts)
    stuck = [f"{_format_rows(counts[o])} {word}" for o, word in _BLOCKED_OR_ERROR.items() if counts[o]]
    if failures:  # rows that were not run cannot change this
        return Verdict(NONCONFORMANT, [*failures, *cut_short, *coverage.omissions])
    if cut_short and is_narrowed and not (lost or stuck):
        return Verdict(NARROWED, [f"{len(results)} of {_format_rows(len(results) + len(missing))}, none failed"])
    if cut_short:
        return Verdict(INCOMPLETE, [*(() if lost else stuck), *cut_short])
    if not judged:
        return Verdict(INCOMPLETE, ["nothing could be judged"])
    if stuck:
        return Verdict(INCOMPLETE, stuck)
    return Verdict(PARTIAL, coverage.reasons) if coverage.has_gap else Verdict(CONFORMANT)


_BLOCKED_OR_ERROR = {Outcome.BLOCKED: "blocked", Outcome.ERROR: "in error"}


def _describe_lost_target(results: Sequence[CheckResult], lost: str) -> str:
    count = sum(result.has_reason(ReasonKind.TARGET_LOST) for result in results)
    return f"{_format_rows(count)} not judged: the target is gone: {lost}" if count else f"the target is gone: {lost}"


def _describe_missing_rows(missing: Collection[str], stopped: str) -> str:
    return f"{_format_rows(len(missing))} not run{stopped and ': '}{stopped}"


def _describe_failures(counts: Counter[Outcome]) -> list[str]:
    new, known = counts[Outcome.FAIL], counts[Outcome.KNOWN_FAILURE]
    return [
        *([f"{_format_rows(new)} failed"] if new else []),
        *([f"{_format_rows(known)} known to fail"] if known else []),
    ]


def _format_rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def conclude_extensions(
    results: Sequence[CheckResult],
    offered: Collection[str],
    missing: Missing = MappingProxyType({}),
    coverage: Coverage = FULL_COVERAGE,
    *,
    is_narrowed: bool = False,
) -> dict[str, ExtensionVerdict]:
    """Return the report's entry of each extension and of the base protocol: offered or not, verdict, and counts.

    `offered`: the extensions that the target offers and the run judges.
    `missing`: extension -> labels of its selected rows that did not run.
    `coverage`: what the run did not judge.
    `is_narrowed`: see `conclude`.
    """
    extensions: dict[str, ExtensionVerdict] = {}
    for name in (PROTOCOL, *EXTENSIONS):
        own = filter_by_extension(results, name)
        counts = Counter(str(result.outcome) for result in own)
        is_offered = name == PROTOCOL or name in offered
        found = Verdict("not_applicable")
        if is_offered:
            gaps = coverage.limit_to(partial(_belongs_to_extension, name))
            found = _decide_extension(own, missing.get(name, ()), gaps, is_narrowed=is_narrowed)
        extensions[name] = {
            "offered": is_offered,
            "verdict": found.verdict,
            "interoperable": found.interoperable,
            "counts": dict(sorted(counts.items())),
        }
    return extensions


def _belongs_to_extension(extension: str, entry: ledger.Requirement) -> bool:
    return entry.extension == extension


def _decide_extension(
    own: Sequence[CheckResult], missing: Collection[str], coverage: Coverage, *, is_narrowed: bool
) -> Verdict:
    """Return the verdict of an extension; partial if all its rows lack a model, so that none could be judged."""
    is_judged = any(result.outcome is not Outcome.NOT_APPLICABLE for result in own)
    if not (is_judged or missing) and coverage.has_gap:
        return Verdict(PARTIAL)
    return conclude(own, missing, coverage=coverage, is_narrowed=is_narrowed)


def filter_by_extension(results: Sequence[CheckResult], name: str) -> list[CheckResult]:
    """Return the results of an extension, or of the base protocol."""
    return [result for result in results if name in find_extensions(result)]


def find_extensions(result: CheckResult) -> set[str]:
    """Return the extensions for which a result counts.

    For a server this is the extension of the check's first requirement. For a client these are the extensions of all
    covered requirements, or only that of the failed requirement.
    """
    if ledger.get_requirement(result.requirements[0]).party is ledger.Party.SERVER:
        return {result.extension}
    named = [result.failure.requirement] if result.failure else result.requirements
    return {ledger.get_requirement(name).extension for name in named}


def conclude_requirements(
    results: Sequence[CheckResult],
    party: ledger.Party = ledger.Party.SERVER,
    gaps: Mapping[str, Gap] = MappingProxyType({}),
    entries: Iterable[ledger.Requirement] | None = None,
) -> list[RequirementEntry]:
    """Return the report's entry of every requirement of a party; its verdict is the worst outcome of its rows.

    `party`: the party that must meet the requirements.
    `gaps`: requirement id -> its unjudged rows.
    `entries`: the requirements, if not all of the suite for this party.
    """
    rows, chosen = group_by_requirement(results), ledger.load_for_party(party) if entries is None else entries
    return [_conclude_requirement(entry, rows.get(entry.id, []), gaps.get(entry.id)) for entry in chosen]


def group_by_requirement(results: Sequence[CheckResult]) -> dict[str, list[CheckResult]]:
    """Group the results by requirement; a result is in the group of each requirement that its row covers or fails."""
    rows: dict[str, list[CheckResult]] = {}
    for result in results:
        named = [result.failure.requirement] if result.failure else []  # a walk may fail any requirement
        for requirement in dict.fromkeys([*result.requirements, *named]):
            rows.setdefault(requirement, []).append(result)
    return rows


def _conclude_requirement(
    entry: ledger.Requirement, results: Sequence[CheckResult], gap: Gap | None
) -> RequirementEntry:
    verdicts = [said for result in results if (said := find_outcome(result, entry)) is not None]
    if results and not verdicts:
        verdicts = [Outcome.BLOCKED]
    found: RequirementEntry = {
        "id": entry.id,
        "transport": entry.transport,
        "level": str(entry.level),
        "concern": str(entry.concern),
        "area": str(entry.area),
        "extension": str(entry.extension),
        "verdict": str(max(verdicts, key=_WORST.index, default=Outcome.NOT_APPLICABLE)),
        "checks": list(dict.fromkeys(result.id for result in results)),
        "url": entry.url,
    }
    if gap:
        found["unjudged"] = gap.to_dict()
    return found


def _is_met_nevertheless(named: str, result: CheckResult, entry: ledger.Requirement) -> bool:
    """Say whether a row that fails for another requirement shows that this one is met.

    A refusal with another status than is advised is a refusal. What should be refused and was answered had a correct
    answer, if the requirement with the suffix -SAFE is not the one that is named.
    """
    is_refused = named in REFUSAL_STATUSES and entry.id == result.requirements[0]
    name, _, transport = named.partition("/")
    is_safe = entry.id == f"{name}-SAFE" + (f"/{transport}" if transport else "")
    return is_safe or (is_refused and entry.concern is ledger.Concern.REFUSAL)


def find_outcome(result: CheckResult, entry: ledger.Requirement) -> Outcome | None:
    """Return the outcome of a result for one of its requirements; None if the row failed for another requirement."""
    if result.failure is None:
        if result.outcome is Outcome.OBSERVED and entry.level != "OBSERVE":
            return Outcome.PASS
        return Outcome.PASS if result.outcome is Outcome.FIXED else result.outcome
    if result.failure.requirement != entry.id:
        return Outcome.PASS if _is_met_nevertheless(result.failure.requirement, result, entry) else None
    return result.outcome if result.outcome in (Outcome.FAIL, Outcome.KNOWN_FAILURE) else UNMET_OUTCOMES[entry.level]
