"""What the user sees: the header, a summary by extension and area, failures, advice, observations, the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from conformance import ledger, roles
from conformance.options import EXTENSIONS
from conformance.outcome import Outcome
from conformance.report.failure import block
from conformance.report.result import CheckResult
from conformance.report.verdict import Verdict, of_extensions
from conformance.target.survey import Survey
from conformance.text import safe

# The columns of the summary: outcome, heading.
COLUMNS = (
    (Outcome.PASS, "pass"),
    (Outcome.FAIL, "fail"),
    (Outcome.ADVISORY, "advice"),
    (Outcome.OBSERVED, "observed"),
    (Outcome.BLOCKED, "blocked"),
    (Outcome.ERROR, "error"),
    (Outcome.NOT_APPLICABLE, "n/a"),
)
COLORS = {"conformant": "green", "nonconformant": "red", "incomplete": "yellow"}
LISTED_ROWS = 6


def header(url: str, survey: Survey, profile: str, seed: int | None) -> list[str]:
    """Return the lines above the run: who is judged, on what, and how."""
    server = " ".join(safe(part, 60) for part in (survey.name, survey.version) if part) or "no server metadata"
    offered = [f"{name} ({survey.offered[name]})" for name in EXTENSIONS if name in survey.offered]
    return [
        f"target      {safe(url)}: {server}",
        f"extensions  {', '.join(offered) or 'none offered'}",
        *[f"            {name} is not offered: {safe(survey.refusals[name], 120)}" for name in survey.refusals],
        f"roles       {len(survey.roles)} of {len(roles.load())} filled",
        f"profile     {profile}{'' if seed is None else f', seed {seed} (repeat with --hypothesis-seed={seed})'}",
    ]


def summary(results: Sequence[CheckResult], survey: Survey) -> Iterator[str]:
    """Yield the table of outcomes by extension and area."""
    yield f"{'':34}" + "".join(f"{heading:>9}" for _, heading in COLUMNS)
    for name, entry in of_extensions(results, survey.offered).items():
        own = [result for result in results if result.extension == name]
        if not own:
            continue
        yield f"{name:34}" + _counts(own) + f"   {'not offered' if not entry['offered'] else entry['verdict']}"
        for area in dict.fromkeys(result.area for result in own):
            if entry["offered"]:
                yield f"  {area:32}" + _counts([result for result in own if result.area == area])


def _counts(results: Iterable[CheckResult]) -> str:
    counts = Counter(result.outcome for result in results)
    return "".join(f"{counts[outcome] or '.':>9}" for outcome, _ in COLUMNS)


def failures(results: Sequence[CheckResult], rerun: str) -> Iterator[str]:
    """Yield a block for each check that failed, is blocked or in error: its first row whole, the others by name."""
    bad = [r for outcome in (Outcome.FAIL, Outcome.ERROR, Outcome.BLOCKED) for r in results if r.outcome is outcome]
    for first, *others in _alike(bad):
        yield from block(first, rerun)
        yield from _others(others)
        yield ""


def advice(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield a few lines for each check with advice."""
    for first, *others in _alike([result for result in results if result.outcome is Outcome.ADVISORY]):
        yield f"{first.failure.requirement if first.failure else '':16} {first.label}: {first.claim}"
        yield f"      {first.message}"
        yield from _others(others)


def _alike(results: Iterable[CheckResult]) -> Iterable[list[CheckResult]]:
    """Return the results of one check that miss one requirement together, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[CheckResult]] = {}
    for result in results:
        key = (result.id, result.outcome, result.failure and result.failure.requirement)
        groups.setdefault(key, []).append(result)
    return groups.values()


def observations(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield how the server decides what the documents leave open: a line for each requirement and way."""
    ways: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.outcome is Outcome.OBSERVED and result.observation:
            ways.setdefault((result.requirements[0], result.observation), []).append(result.label)
    for (requirement, observation), (first, *others) in sorted(ways.items()):
        more = f" and {len(others)} more" if others else ""
        yield f"{requirement:16} {observation}  ({first}{more})"


def not_judged(results: Sequence[CheckResult], survey: Survey) -> Iterator[str]:
    """Yield which roles are missing, and how many checks could therefore not judge."""
    missing = [name for name in roles.load() if name not in survey.roles]
    unjudged = [r for r in results if r.outcome is Outcome.NOT_APPLICABLE and "role" in r.message]
    if missing and unjudged:
        yield f"{len(unjudged)} checks had no model to run on. Deploy these roles to judge them:"
        for start in range(0, len(missing), LISTED_ROWS):
            yield f"      {', '.join(missing[start : start + LISTED_ROWS])}"


def verdict_line(verdict: Verdict, url: str, results: Sequence[CheckResult]) -> str:
    """Return the last line of a run."""
    why = f": {safe('; '.join(verdict.why))}" if verdict.why else ""
    if not results:
        return f"{verdict.verdict}{why}"
    return f"{safe(url)} is {verdict.verdict}{why} ({_must_count(results)})"


def _must_count(results: Sequence[CheckResult]) -> str:
    """Return how many MUSTs of the ledger were judged."""
    judged = {
        requirement
        for result in results
        if result.outcome in (Outcome.PASS, Outcome.FAIL)
        for requirement in result.requirements
        if ledger.requirement(requirement).level == "MUST"
    }
    total = sum(entry.level == "MUST" for entry in ledger.load().values())
    return f"{len(judged)} of {total} MUSTs judged"


def _others(others: Sequence[CheckResult]) -> Iterator[str]:
    if others:
        named = ", ".join(result.row for result in others[:LISTED_ROWS])
        more = f" and {len(others) - LISTED_ROWS} more" if len(others) > LISTED_ROWS else ""
        yield f"      And       {len(others)} other row{'s' if len(others) > 1 else ''}: {named}{more}"
