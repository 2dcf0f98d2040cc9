"""The verdict of a run: computed from the results, by rules that anybody can apply again.

conformant      every MUST that applies was judged and met
nonconformant   a MUST is not met (or a SHOULD, when strict), though the target was lost then, or not all was run
incomplete      it cannot be said: target lost, nothing offered, something blocked or in error, or not all was run

Interoperable is who meets every MUST of exchange and transport: the same rules, applied to the rows of these alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from conformance.terms import ledger
from conformance.terms.extensions import EXTENSIONS, PROTOCOL
from conformance.terms.outcome import CONFORMANT, UNMET, Outcome, ReasonKind
from conformance.terms.result import CheckResult

Missing = Mapping[str, Collection[str]]

EXIT_STATUS = {"conformant": 0, "nonconformant": 1, "incomplete": 6}
# The concerns of the requirements that an interoperable server meets.
OF_INTEROPERABILITY = (ledger.Concern.EXCHANGE, ledger.Concern.TRANSPORT)

# From best to worst: a requirement is as good as the worst of its checks.
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
    """What a run says about its target.

    Attributes:
        verdict: `conformant`, `nonconformant` or `incomplete`.
        why: one line for each reason; empty when conformant.
        interoperable: whether every MUST of exchange and transport is met; None where that cannot be said.
    """

    verdict: str
    why: list[str] = field(default_factory=list)
    interoperable: bool | None = None

    @property
    def words(self) -> str:
        """The verdict as a sentence has it: see `in_words`."""
        return in_words(self.verdict, self.interoperable)

    def exit_status(self, gate: str = CONFORMANT) -> int:
        """Return the exit status of the contract, as this gate takes it."""
        return EXIT_STATUS[self.verdict if gate == CONFORMANT else _AS_VERDICT[self.interoperable]]


def in_words(verdict: str, interoperable: bool | None) -> str:
    """Return a verdict as a sentence has it: who is not conformant may be interoperable."""
    return f"{verdict} but interoperable" if interoperable and verdict != "conformant" else verdict


_AS_VERDICT: Mapping[bool | None, str] = {True: "conformant", False: "nonconformant", None: "incomplete"}


def conclude(
    results: Sequence[CheckResult], missing: Collection[str] = (), lost: str | None = None, stopped: str = ""
) -> Verdict:
    """Return the verdict of a run, and whether its target is interoperable.

    Args:
        results: of every row that was run.
        missing: labels of the rows that should have been run and were not.
        lost: why the target can no longer be reached, or None.
        stopped: why the run was ended, where it was.
    """
    found = _concluded(results, missing, lost, stopped)
    own = _concluded([result for result in results if bears_on_interoperability(result)], missing, lost, stopped)
    words = {word: value for value, word in _AS_VERDICT.items()}
    return replace(found, interoperable=words[own.verdict])


def bears_on_interoperability(result: CheckResult) -> bool:
    """Say whether a row counts for interoperability: by what it does not meet, else by all that it answers for."""
    named = [result.failure.requirement] if result.failure else result.requirements
    return any(ledger.requirement(name).concern in OF_INTEROPERABILITY for name in named)


def _concluded(results: Sequence[CheckResult], missing: Collection[str], lost: str | None, stopped: str) -> Verdict:
    counts = Counter(result.outcome for result in results)
    judged = counts.total() - counts[Outcome.NOT_APPLICABLE]
    cut_short = [_gone(results, lost)] if lost else [_not_run(missing, stopped)] if missing else []
    failures = _failures(counts)
    if failures:  # what was not run cannot mend it
        return Verdict("nonconformant", [*failures, *cut_short])
    if cut_short:
        return Verdict("incomplete", cut_short)
    if not judged:
        return Verdict("incomplete", ["nothing could be judged"])
    stuck = [f"{_rows(counts[o])} {word}" for o, word in _STUCK.items() if counts[o]]
    return Verdict("incomplete", stuck) if stuck else Verdict("conformant")


_STUCK = {Outcome.BLOCKED: "blocked", Outcome.ERROR: "in error"}


def _gone(results: Sequence[CheckResult], lost: str) -> str:
    count = sum(result.is_for(ReasonKind.TARGET_LOST) for result in results)
    return f"{_rows(count)} not judged: the target is gone: {lost}" if count else f"the target is gone: {lost}"


def _not_run(missing: Collection[str], stopped: str) -> str:
    return f"{_rows(len(missing))} not run{stopped and ': '}{stopped}"


def _failures(counts: Counter[Outcome]) -> list[str]:
    new, known = counts[Outcome.FAIL], counts[Outcome.KNOWN_FAILURE]
    return [*([f"{_rows(new)} failed"] if new else []), *([f"{_rows(known)} known to fail"] if known else [])]


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def of_extensions(
    results: Sequence[CheckResult], offered: Collection[str], missing: Missing = MappingProxyType({})
) -> dict[str, dict[str, Any]]:
    """Return for each extension, and for the protocol beneath them, whether it is offered, its verdict and its rows.

    Args:
        results: of every row that was run.
        offered: the extensions that are judged.
        missing: labels of the rows that should have been run and were not, by extension.
    """
    extensions: dict[str, dict[str, Any]] = {}
    for name in (PROTOCOL, *EXTENSIONS):
        own = of_extension(results, name)
        counts = Counter(str(result.outcome) for result in own)
        is_offered = name == PROTOCOL or name in offered
        found = conclude(own, missing.get(name, ())) if is_offered else Verdict("not_applicable")
        extensions[name] = {
            "offered": is_offered,
            "verdict": found.verdict,
            "interoperable": found.interoperable,
            "counts": dict(sorted(counts.items())),
        }
    return extensions


def of_extension(results: Sequence[CheckResult], name: str) -> list[CheckResult]:
    """Return the results that count for an extension, or for the protocol beneath them."""
    return [result for result in results if name in extensions_of(result)]


def extensions_of(result: CheckResult) -> set[str]:
    """Return what a result counts for: of a server that of the first requirement, of a client those of all of them.

    What a client fails counts for the requirement that it fails, alone.
    """
    if ledger.requirement(result.requirements[0]).party is ledger.Party.SERVER:
        return {result.extension}
    named = [result.failure.requirement] if result.failure else result.requirements
    return {ledger.requirement(name).extension for name in named}


def of_requirements(results: Sequence[CheckResult], party: ledger.Party = ledger.Party.SERVER) -> list[dict[str, Any]]:
    """Return every requirement of a party with its verdict: that of the worst row which says something about it."""
    rows = rows_of_requirements(results)
    return [_requirement(entry, rows.get(entry.id, [])) for entry in ledger.of_party(party)]


def rows_of_requirements(results: Sequence[CheckResult]) -> dict[str, list[CheckResult]]:
    """Return the rows that answer for a requirement, or do not meet it, by its id."""
    rows: dict[str, list[CheckResult]] = {}
    for result in results:
        named = [result.failure.requirement] if result.failure else []  # a walk may come upon any
        for requirement in dict.fromkeys([*result.requirements, *named]):
            rows.setdefault(requirement, []).append(result)
    return rows


def _requirement(entry: ledger.Requirement, results: Sequence[CheckResult]) -> dict[str, Any]:
    verdicts = [said for result in results if (said := says(result, entry)) is not None]
    if results and not verdicts:
        verdicts = [Outcome.BLOCKED]
    return {
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


def says(result: CheckResult, entry: ledger.Requirement) -> Outcome | None:
    """Return what a result says about one of its requirements; nothing, when it stopped at another one."""
    if result.failure is None:
        if result.outcome is Outcome.OBSERVED and entry.level != "OBSERVE":
            return Outcome.PASS
        return Outcome.PASS if result.outcome is Outcome.FIXED else result.outcome
    if result.failure.requirement != entry.id:
        return None
    return result.outcome if result.outcome in (Outcome.FAIL, Outcome.KNOWN_FAILURE) else UNMET[entry.level]
