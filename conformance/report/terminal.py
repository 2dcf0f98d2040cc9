"""Terminal output, except findings: the header, a summary by extension and area, observations, the verdict."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.applicability import find_models_like_another
from conformance.judging.conclusion import Conclusion
from conformance.report import deployed_models
from conformance.report.findings import Observation
from conformance.report.scope import covers_grpc_alone
from conformance.roles import roles
from conformance.roles.declared_limits import describe_limits
from conformance.spec.coverage import Coverage
from conformance.spec.extensions import CHOICES, PROTOCOL
from conformance.spec.ledger import Concern
from conformance.spec.outcome import (
    CONFORMANT,
    INCOMPLETE,
    NARROWED,
    NONCONFORMANT,
    OUTCOME_WORDINGS,
    PARTIAL,
    Outcome,
    ReasonKind,
)
from conformance.spec.report import Gate, Report, find_party
from conformance.spec.result import CheckResult
from conformance.spec.tally import ABSENT, Tally, tally_report
from conformance.spec.text import escape_text, format_count, join_some
from conformance.spec.verdict import format_sentence
from conformance.transport.client_names import COMMON_NAMES

if TYPE_CHECKING:  # needed at the end only
    from conformance.report.view import View

# The columns of the summary.
COLUMNS = (
    *(Outcome.PASS, Outcome.FAIL, Outcome.ADVISORY, Outcome.OBSERVED, Outcome.BLOCKED, Outcome.ERROR),
    *(Outcome.NOT_APPLICABLE, Outcome.KNOWN_FAILURE, Outcome.FIXED),
)
ONLY_WITH_BASELINE = (Outcome.KNOWN_FAILURE, Outcome.FIXED)
COLORS = {CONFORMANT: "green", PARTIAL: "cyan", NONCONFORMANT: "red", INCOMPLETE: "yellow", NARROWED: "cyan"}
CONCERN_WIDTH = 12
MIN_SHOWN_WAIT_S = 1.0
MAX_NAMED_ROLES = 4  # more are a deployment of the roles
MIN_SHOWN_RUN_S = 60.0
# The environment variable with the file descriptor to which the duration of a run is written as well.
DURATION_VARIABLE = "OIP_CONFORMANCE_DURATION_FD"
MAX_LISTED_ROWS = 6
MAX_REASON_CHARS = 1200  # characters


def format_header(
    url: str, discovery_result: DiscoveryResult, profile: str, seed: int | None, grpc: str = "", *, connections: int = 1
) -> list[str]:
    """Return the header lines of a run; `grpc` is the gRPC address, or the reason why gRPC is not judged."""
    server = (
        " ".join(escape_text(part, 60) for part in (discovery_result.name, discovery_result.version) if part)
        or "no server metadata"
    )
    offered = [f"{name} ({discovery_result.offered[name]})" for name in CHOICES if name in discovery_result.offered]
    return [
        f"target      {escape_text(url)}: {server}",
        *([f"gRPC        {grpc}"] if grpc else []),
        f"extensions  {', '.join(offered) or 'none offered'}",
        *[f"            {name} is {discovery_result.describe_absence(name)}" for name in discovery_result.refusals],
        *_format_roles(discovery_result),
        *deployed_models.format_header(discovery_result),
        *[f"versions    {line}" for line in discovery_result.describe_versions()],
        *_format_refused_clients(discovery_result),
        *([f"limits      {describe_limits(discovery_result.limits)}"] if discovery_result.limits else []),
        f"profile     {profile}{_format_seed(profile, seed)}{_format_shortened(profile, discovery_result)}",
        *([f"connections {connections} at once (--conformance-concurrency=1 for one)"] if connections > 1 else []),
    ]


def format_duration(seconds: float, latency: float, connections: int) -> Iterator[str]:
    """Yield about how long a run takes on a slow target; nothing if it ends soon."""
    if seconds >= MIN_SHOWN_RUN_S:
        time = f"{seconds:.0f} s" if seconds < 2 * MIN_SHOWN_RUN_S else f"{seconds / 60:.0f} min"
        yield f"duration    about {time}, at {latency:.1f} s for an inference and {connections} at once"


def _format_roles(discovery_result: DiscoveryResult) -> Iterator[str]:
    """Yield the number of roles, their names if they are few, and each model that only has the name of a role."""
    found = discovery_result.roles
    if found or discovery_result.other_models:
        # a user's own model may have the name of a role, and is judged as that role
        which = f" ({escape_text(', '.join(found), 80)})" if len(found) <= MAX_NAMED_ROLES else ""
        yield f"roles       {len(found)} of {len(roles.load_with_packs())} filled{which if found else ''}"
        yield from (f"{'':12}{line}" for line in discovery_result.describe_other_models())


def _format_refused_clients(discovery_result: DiscoveryResult) -> Iterator[str]:
    """Yield a line with the clients that the server refuses by name, if any."""
    named = [f"{COMMON_NAMES[name].http} ({status})" for name, status in discovery_result.refused_clients.items()]
    if named:
        yield f"refused     clients, by their names, which no row sends: {', '.join(named)}"


def _format_seed(profile: str, seed: int | None) -> str:
    """Return the seed and the option that repeats it; empty for the default seed."""
    if profile == "explore":
        return f", seed {seed} (repeat with --hypothesis-seed={seed})"
    return f", seed {seed} (repeat with --conformance-seed={seed})" if seed else ""


def _format_shortened(profile: str, discovery_result: DiscoveryResult) -> str:
    """Return for how many deployed models `quick` has only a few rows; empty if for none."""
    models = find_models_like_another(discovery_result) if profile == "quick" else ()
    return f", with one row of each area for {format_count(len(models), 'model')} like another" if models else ""


def describe_changed_answer(row: str, connections: int) -> Iterator[str]:
    """Yield the message that concurrent requests changed an answer of the target."""
    yield (
        f"With {connections} concurrent connections the target answered {escape_text(row)} differently than with one. "
        "The suite used the answer with one connection, and ran the remaining rows one after another."
    )


def suggest_rate(conclusion: Conclusion) -> Iterator[str]:
    """Yield advice about a server that limits the rate of requests, if rows have no verdict."""
    has_none = any(result.outcome in (Outcome.BLOCKED, Outcome.ERROR) for result in conclusion.results)
    if has_none or conclusion.coverage.deployments:
        yield "The server answered 429 (too many requests): --target-rate N sends at most N requests per second."


def describe_waits(results: Iterable[CheckResult], seconds: float) -> Iterator[str]:
    """Yield the seconds spent on incomplete answers, and the number of rows that were not run with the full timeout."""
    if seconds >= MIN_SHOWN_WAIT_S:
        yield f"The run waited {seconds:.0f} s for answers that did not arrive completely."
    if short := sum(result.has_reason(ReasonKind.SHORT_WAIT) for result in results):
        yield (
            f"Rows without an answer after a shortened timeout: {short}. The suite did not repeat them with the full "
            "timeout, because other rows of the same requirements had no answer within the full timeout either."
        )


def describe_visible_headers(headers: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each header of the user whose value the suite cannot hide, with the reason, not the value."""
    return [
        f"not hidden  the value of {escape_text(name)} is visible if the server repeats it: {why}"
        for name, why in headers
    ]


def format_summary(view: View) -> Iterator[str]:
    """Yield the table of rows by extension, area and outcome."""
    columns = [outcome for outcome in COLUMNS if outcome in view.counts or outcome not in ONLY_WITH_BASELINE]
    yield f"{'rows':34}" + "".join(f"{OUTCOME_WORDINGS[outcome].short:>9}" for outcome in columns)
    absent = ABSENT[find_party(view.report)]
    for part in view.parts:
        if part.counts:
            verdict = part.verdict if part.offered else absent
            yield f"{part.name:34}{_format_counts(part.counts, columns)}   {verdict}"
            yield from (f"  {area.name:32}{_format_counts(area.counts, columns)}" for area in part.areas)


def _format_counts(counts: Mapping[str, int], columns: Iterable[Outcome]) -> str:
    return "".join(f"{counts.get(outcome, '.'):>9}" for outcome in columns)


def format_concerns(view: View) -> Iterator[str]:
    """Yield a table of met MUSTs by extension and concern.

    Only the first and the last concern decide whether a server is interoperable.
    """
    yield f"{'':34}" + "".join(f"{concern:>{CONCERN_WIDTH}}" for concern in Concern)
    for part in view.parts:
        if part.offered:
            yield f"{part.name:34}" + "".join(f"{musts:>{CONCERN_WIDTH}}" for musts in part.musts.values())


def explain_words(view: View) -> Iterator[str]:
    """Yield definitions of words such as "not judged" in the output."""
    rows = [Outcome(outcome) for outcome in view.counts]
    found = view.definitions | {
        OUTCOME_WORDINGS[outcome].short: f"of a row: {view.words.explain(outcome)}" for outcome in rows
    }
    yield from (f"{word:16}{meaning}" for word, meaning in found.items())


def format_gate(gate: Gate) -> Iterator[str]:
    """Yield the differences of a run from its baseline."""
    for title, labels in (("new", gate["new"]), ("fixed", gate["fixed"]), ("stale entries", gate["stale"])):
        yield f"{title:14}{len(labels):6}"
        yield from (f"      {escape_text(label, 400)}" for label in labels)
    yield f"known failures{len(gate['known']):6}"
    if gate["fixed"] or gate["stale"]:
        yield "Remove fixed and stale entries from the baseline, or use --conformance-update-baseline."


def format_observations(observations: Iterable[Observation]) -> Iterator[str]:
    """Yield a line for each observed behavior that the documents leave open, with its requirement and rows."""
    for one in observations:
        more = f" and {len(one.labels) - 1} more" if len(one.labels) > 1 else ""
        yield f"{one.requirement:16} {one.observation}  ({one.labels[0]}{more})"


def format_unjudged(conclusion: Conclusion, discovery_result: DiscoveryResult) -> Iterator[str]:
    """Yield why rows were not judged, and the roles to deploy, the most useful first."""
    results = conclusion.results
    lost = [result for result in results if result.has_reason(ReasonKind.TARGET_LOST)]
    if lost:
        yield f"{len(lost)} rows are not judged: {lost[0].message}"
    yield from deployed_models.format_unjudged(results, discovery_result)
    if idle := _list_idle_rows(results):
        yield f"{len(idle)} rows over HTTP do not apply: {idle[0].message}. The verdict covers gRPC only."
        yield f"To judge the base protocol over HTTP as well, use --target-extension={PROTOCOL}."
    if not conclusion.is_narrowed:
        yield from _format_deployments(conclusion.coverage)
        yield from _format_optional_roles(results, conclusion.coverage)


def _list_idle_rows(results: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the rows over HTTP of a server that offers no extension over HTTP; only gRPC is judged."""
    return [result for result in results if result.has_reason(ReasonKind.NOTHING_OVER_HTTP)]


def format_ways_on(fatal_row: str) -> Iterator[str]:
    """Yield the settings with which a run continues after the row that crashed the target."""
    yield "To judge them as well, add one of these lines to the top of the target file (--target-config):"
    yield '      restart = "systemctl restart my-server"  # a command that starts the server again'
    yield f"      never = [{json.dumps(fatal_row)}]  # not sent; the run is then incomplete"


def _format_optional_roles(results: Sequence[CheckResult], coverage: Coverage) -> Iterator[str]:
    """Yield a line with the missing roles that are optional."""
    needed = {one.role for one in coverage.deployments}
    waiting = [r.reason.subject for r in results if r.reason and r.reason.kind is ReasonKind.NO_MODEL]
    if optional := [role for role in waiting if role not in needed]:
        yield f"{len(optional)} rows need models for optional roles: {', '.join(dict.fromkeys(optional))}."


def _format_deployments(coverage: Coverage) -> Iterator[str]:
    """Yield the roles to deploy, most useful first, with the MUSTs that each role adds; nothing if none is missing."""
    needed = [one for one in coverage.deployments if one.musts]
    others = [one.role for one in coverage.deployments if not one.musts]
    if not coverage.deployments:
        return
    count = sum(len(one.musts) for one in needed) or "none"
    rows = f"Rows of MUSTs whose role no model fills, in this profile and beyond: {coverage.waiting}."
    yield f"{rows} MUSTs that these rows leave unjudged: {count}."
    yield "Deploy these roles to run them (`oip-conformance models export` writes them for several servers), or declare"
    yield "what the server cannot do under [limits] in the target file (`oip-conformance init` proposes limits):"
    yield from (f"      {one.role:28}{join_some(one.musts, MAX_LISTED_ROWS)}" for one in needed)
    if others:
        yield f"      {'and ' if needed else ''}for more rows: {join_some(others, MAX_LISTED_ROWS)}"


def format_verdict(report: Report | None, conclusion: Conclusion, name: str, offered: Collection[str]) -> str:
    """Return the last line of a run; with a baseline it includes the result of the gate.

    `report`: the report of the run; None if nothing was judged.
    `name`: the name of the server or client, or its URL.
    `offered`: the judged extensions; only `protocol` if no extension is judged.
    """
    verdict, found = conclusion.verdict, conclusion.gate
    why = escape_text("; ".join(verdict.why), MAX_REASON_CHARS)
    beside = _format_packs(report)
    if report is None or not conclusion.results:
        return f"{verdict.verdict}: {why}{beside}" if why else f"{verdict.verdict}{beside}"
    words = describe_limits(report["target"].get("limits"))
    scope = " over gRPC alone" if covers_grpc_alone(report) else ""
    scope += " in the base protocol" if set(offered) == {PROTOCOL} else ""
    sentence = f"{format_sentence(escape_text(name), verdict.verdict, verdict.interoperable, words)}{scope}"
    line = f"{sentence}{_format_reasons(conclusion, why, tally_report(report))}"
    if found is None:
        return line + beside
    counts = {"new": found.new, "fixed": found.fixed, "stale": found.stale}
    differences = ", ".join(f"{len(labels)} {word}" for word, labels in counts.items() if labels)
    return f"{line}{beside}; gate {'passed' if found.is_passed else f'not passed: {differences}'}"


def _format_packs(report: Report | None) -> str:
    """Return the verdicts of packs, for the last line of a run."""
    return "".join(f"; pack {pack['name']}: {pack['verdict']}" for pack in (report.get("packs", ()) if report else ()))


def _format_reasons(conclusion: Conclusion, why: str, musts: Tally) -> str:
    """Return the part of the last line after the verdict: the reasons, and the number of met MUSTs."""
    if conclusion.verdict.verdict == NARROWED:
        return f", {why}"
    if conclusion.verdict.verdict == PARTIAL:
        gaps = conclusion.coverage.brief + musts.inapplicable_counts
        return f": {musts.met} of {musts.applying} MUSTs met, none failed, {gaps}"
    return f"{f': {why}' if why else ''} ({musts.sentence})"
