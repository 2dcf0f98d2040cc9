"""What the user sees beside findings: the header, a summary by extension and area, observations, the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from conformance.judging.baseline import Gate
from conformance.report import deployed_models
from conformance.roles import roles
from conformance.survey.survey import Survey
from conformance.terms import ledger
from conformance.terms.extensions import CHOICES, EXTENSIONS, PROTOCOL
from conformance.terms.ledger import Party
from conformance.terms.outcome import WORDS, Outcome, ReasonKind
from conformance.terms.result import CheckResult
from conformance.terms.tally import ABSENT, by_concern, tally
from conformance.terms.text import safe
from conformance.terms.verdict import Missing, Verdict, of_extension, of_extensions, of_requirements

# The columns of the summary.
COLUMNS = (
    *(Outcome.PASS, Outcome.FAIL, Outcome.ADVISORY, Outcome.OBSERVED, Outcome.BLOCKED, Outcome.ERROR),
    *(Outcome.NOT_APPLICABLE, Outcome.KNOWN_FAILURE, Outcome.FIXED),
)
ONLY_WITH_BASELINE = (Outcome.KNOWN_FAILURE, Outcome.FIXED)
JUDGED = (Outcome.PASS, Outcome.FAIL, Outcome.KNOWN_FAILURE)
COLORS = {"conformant": "green", "nonconformant": "red", "incomplete": "yellow"}
CONCERN_WIDTH = 12
LISTED_ROWS = 6
LONGEST_WHY = 1200  # characters


def header(
    url: str, survey: Survey, profile: str, seed: int | None, grpc: str = "", *, connections: int = 1
) -> list[str]:
    """Return the lines above the run: who is judged, on what, and how; `grpc` says where, or why not."""
    server = " ".join(safe(part, 60) for part in (survey.name, survey.version) if part) or "no server metadata"
    offered = [f"{name} ({survey.offered[name]})" for name in CHOICES if name in survey.offered]
    return [
        f"target      {safe(url)}: {server}",
        *([f"gRPC        {grpc}"] if grpc else []),
        f"extensions  {', '.join(offered) or 'none offered'}",
        *[f"            {name} is {survey.absence(name)}" for name in survey.refusals],
        *([f"roles       {len(survey.roles)} of {len(roles.load())} filled"] if survey.roles else []),
        *deployed_models.header(survey),
        f"profile     {profile}{_shown_seed(profile, seed)}",
        *([f"connections {connections} at once (--conformance-concurrency=1 for one)"] if connections > 1 else []),
    ]


def _shown_seed(profile: str, seed: int | None) -> str:
    """Return the seed and the option that repeats it; empty for that of every run."""
    if profile == "explore":
        return f", seed {seed} (repeat with --hypothesis-seed={seed})"
    return f", seed {seed} (repeat with --conformance-seed={seed})" if seed else ""


def suffering(row: str, connections: int) -> Iterator[str]:
    """Yield what is to be said of a target that answers many at once otherwise than one after another."""
    yield (
        f"On {connections} connections at once the target answered {safe(row)} otherwise than alone. What it says "
        "alone counts; the rest was asked one row after another."
    )


def shown_headers(found: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each header of the user's whose value cannot be hidden, and why; names, never values."""
    return [f"not hidden  the value of {safe(name)}, where the server repeats it: {why}" for name, why in found]


def summary(
    results: Sequence[CheckResult],
    survey: Survey,
    missing: Missing = MappingProxyType({}),
    party: Party = Party.SERVER,
) -> Iterator[str]:
    """Yield the table of outcomes by extension and area; `missing` are the rows that were not run, by extension."""
    outcomes = {result.outcome for result in results}
    columns = [outcome for outcome in COLUMNS if outcome in outcomes or outcome not in ONLY_WITH_BASELINE]
    yield f"{'':34}" + "".join(f"{WORDS[outcome].short:>9}" for outcome in columns)
    for name, entry in of_extensions(results, survey.offered, missing).items():
        own = of_extension(results, name)
        if not own:
            continue
        yield f"{name:34}" + _counts(own, columns) + f"   {entry['verdict'] if entry['offered'] else ABSENT[party]}"
        for area in dict.fromkeys(result.area for result in own):
            if entry["offered"]:
                yield f"  {area:32}" + _counts([result for result in own if result.area == area], columns)


def concerns(
    results: Sequence[CheckResult],
    offered: Collection[str],
    asked: Collection[str] = (),
    party: Party = Party.SERVER,
) -> Iterator[str]:
    """Yield a table of MUSTs met, by extension and concern; an interoperable target meets the first and the last.

    The arguments are those of `verdict_line`.
    """
    requirements = of_requirements(results, party)
    for place, name in enumerate(name for name in (PROTOCOL, *EXTENSIONS) if name == PROTOCOL or name in offered):
        found = by_concern(requirements, name, offered, asked, party)
        if not place:
            yield f"{'':34}" + "".join(f"{concern:>{CONCERN_WIDTH}}" for concern in found)
        yield f"{name:34}" + "".join(f"{f'{own.met}/{own.applying}':>{CONCERN_WIDTH}}" for own in found.values())


def _counts(results: Iterable[CheckResult], columns: Iterable[Outcome]) -> str:
    counts = Counter(result.outcome for result in results)
    return "".join(f"{counts[outcome] or '.':>9}" for outcome in columns)


def gate(found: Gate | None) -> Iterator[str]:
    """Yield how a run differs from its baseline; nothing without one."""
    if found is None:
        return
    for title, labels in (("new", found.new), ("fixed", found.fixed), ("stale entries", found.stale)):
        yield f"{title:14}{len(labels):6}"
        yield from (f"      {safe(label, 400)}" for label in labels)
    yield f"known failures{len(found.known):6}"
    if found.fixed or found.stale:
        yield "Take entries that are fixed or stale out of the baseline, or let --conformance-update-baseline do it."


def observations(results: Sequence[CheckResult]) -> Iterator[str]:
    """Yield how who is judged decides what the documents leave open: a line for each requirement and way."""
    ways: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.outcome is Outcome.OBSERVED and result.observation:
            ways.setdefault((result.requirements[0], result.observation), []).append(result.label)
    for (requirement, observation), (first, *others) in sorted(ways.items()):
        more = f" and {len(others)} more" if others else ""
        yield f"{requirement:16} {observation}  ({first}{more})"


def not_judged(results: Sequence[CheckResult], survey: Survey) -> Iterator[str]:
    """Yield what was not judged for want of a model, and which to deploy, those first that most depends on."""
    lost = [result for result in results if result.is_for(ReasonKind.TARGET_LOST)]
    if lost:
        yield f"{len(lost)} rows are not judged: {lost[0].message}"
    yield from deployed_models.not_judged(results, survey)
    idle = [result for result in results if result.is_for(ReasonKind.NOTHING_OVER_HTTP)]
    if idle:
        yield f"{len(idle)} rows over HTTP do not apply: {idle[0].message}. The verdict is that of gRPC."
    waiting: dict[str, list[CheckResult]] = {}
    for result in results:
        if result.reason and result.reason.kind is ReasonKind.NO_MODEL and result.reason.subject not in survey.roles:
            waiting.setdefault(result.reason.subject, []).append(result)
    if not waiting:
        return
    judged = _judged_musts(results)
    needed = dict(_fewest({role: _musts(found) - judged for role, found in waiting.items()}))
    count, unjudged = sum(map(len, waiting.values())), sum(map(len, needed.values())) or "none"
    yield f"Rows skipped because no model fills their role: {count}. MUSTs not judged because of that: {unjudged}."
    yield "Deploy these roles to run them (`oip-conformance models export` writes them for several servers):"
    for role, found in needed.items():
        yield f"      {role:28}{_shortened(sorted(found))}"
    others = [role for role in waiting if role not in needed]
    if others:
        yield f"      {'and ' if needed else ''}for more rows: {', '.join(others)}"


def _fewest(musts: Mapping[str, set[str]]) -> Iterator[tuple[str, set[str]]]:
    """Yield few roles with which every MUST is judged, each with those that it adds: the one that adds most first."""
    left = set().union(*musts.values())
    while left:
        role = max(musts, key=lambda name: len(musts[name] & left))
        yield role, musts[role] & left
        left -= musts[role]


def verdict_line(
    verdict: Verdict,
    name: str,
    results: Sequence[CheckResult],
    found: Gate | None = None,
    offered: Collection[str] = (),
    asked: Collection[str] = (),
    party: Party = Party.SERVER,
) -> str:
    """Return the last line of a run; under a baseline it says whether the gate lets it through.

    Args:
        verdict: of the run.
        name: of who was judged, or the URL.
        results: of every row that was run.
        found: what a baseline found; None without one.
        offered: the extensions that are judged, or the protocol alone.
        asked: the extensions that the user asked for; empty where none were named.
        party: who was judged.
    """
    why = f": {safe('; '.join(verdict.why), LONGEST_WHY)}" if verdict.why else ""
    if not results:
        return f"{verdict.verdict}{why}"
    scope = " in the protocol beneath the extensions" if set(offered) == {PROTOCOL} else ""
    musts = tally("MUST", of_requirements(results, party), offered, asked, party)
    line = f"{safe(name)} is {verdict.words}{scope}{why} ({musts.sentence})"
    if found is None:
        return line
    counts = {"new": found.new, "fixed": found.fixed, "stale": found.stale}
    differences = ", ".join(f"{len(labels)} {word}" for word, labels in counts.items() if labels)
    return f"{line}; gate {'passed' if found.is_passed else f'not passed: {differences}'}"


def _judged_musts(results: Sequence[CheckResult]) -> set[str]:
    judged = [entry for entry in of_requirements(results) if entry["verdict"] in JUDGED]
    return {entry["id"] for entry in judged if entry["level"] == "MUST"}


def _musts(results: Iterable[CheckResult]) -> set[str]:
    """Return the MUSTs that results answer for."""
    return {
        requirement
        for result in results
        for requirement in result.requirements
        if ledger.requirement(requirement).level == "MUST"
    }


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED_ROWS} more" if len(names) > LISTED_ROWS else ""
    return ", ".join(names[:LISTED_ROWS]) + more
