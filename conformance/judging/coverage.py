"""Finds the requirements that a run did not judge. Rows that pytest did not collect count as not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.applicability import build_applicability_test, is_offered
from conformance.judging.selection import CLIENTS, Subjects, list_profile_rows, select_profile
from conformance.roles import roles
from conformance.roles.declared_limits import find_excess_of_role
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.coverage import Coverage, Deployment, Gap, GapReason, UnjudgedRow
from conformance.spec.extensions import PROTOCOL
from conformance.spec.ledger import Party
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.spec.tally import is_judged, select_requirements
from conformance.spec.verdict import conclude_requirements


@dataclass(frozen=True, slots=True)
class _ApplicableRequirements:
    """The ids of the requirements that apply to a target (`applying`), and of those that a row judged (`judged`).

    `tried` are those of which a row ran and found that it does not apply, whatever models there are.
    """

    applying: dict[str, None]
    judged: Collection[str]
    tried: Collection[str]


def find_coverage(
    results: Sequence[CheckResult],
    discovery_result: DiscoveryResult,
    *,
    profile: str,
    transports: Sequence[str],
    requested: Collection[str] = (),
    party: Party = Party.SERVER,
) -> Coverage:
    """Return the requirements that a run did not judge.

    Args:
        results: of every row that ran.
        discovery_result: the extensions that the target offers, and the roles that its models fill.
        profile: the profile of the run.
        transports: the judged transports.
        requested: the extensions that the user requested; empty if none.
        party: whether a server or a client was judged.
    """
    results = [result for result in results if not ledger.get_requirement(result.requirements[0]).is_of_pack]
    known = _find_requirements(results, discovery_result.offered, requested, party)
    run = {(result.id, result.row) for result in results}
    subjects = Subjects(tuple(discovery_result.models)) if party is Party.SERVER else CLIENTS
    applies = build_applicability_test(discovery_result, transports)
    every = list_profile_rows("certify", subjects=subjects, transports=transports)
    others = [
        case
        for case in every
        if case.ids not in run
        and (applies(case) if case.row.model else is_offered(case, discovery_result.offered, transports))
        and not _exceeds_limits(case, discovery_result)
    ]
    chosen = {
        case.ids
        for case in select_profile(
            every, profile, dangerous=False, transports=transports, discovery_result=discovery_result
        )
    }
    rows = [*_iterate_rows_without_verdict(results), *_iterate_rows_not_run(others, discovery_result.roles, chosen)]
    return _build_coverage(list(_limit_to_applicable_requirements(rows, known)), known, profile)


def find_coverage_of_watch(results: Sequence[CheckResult], used: Collection[str]) -> Coverage:
    """Return the requirements that the requests of watched clients did not exercise.

    Args:
        results: of every client.
        used: the extensions that the clients use.
    """
    known = _find_requirements(results, used, (), Party.CLIENT)
    gaps = {name: Gap(0, (GapReason.NOT_SENT,)) for name in known.applying if name not in known.judged}
    return Coverage(gaps, tuple(name for name in gaps if _is_must(name)))


def find_coverage_of_pack(results: Sequence[CheckResult]) -> Coverage:
    """Return the requirements of a pack that no row could judge because no model fills a role."""
    judged = {name for one in results if one.outcome is not Outcome.NOT_APPLICABLE for name in one.requirements}
    rows = [row for row in _iterate_rows_without_verdict(results) if not judged & set(row.requirements)]
    gaps = _build_gaps(rows)
    unjudged = tuple(filter(_is_must, gaps))
    return Coverage(gaps, unjudged, tuple(_choose_deployments([row for row in rows if row.role], unjudged)))


def _find_requirements(
    results: Sequence[CheckResult], offered: Collection[str], requested: Collection[str], party: Party
) -> _ApplicableRequirements:
    entries = select_requirements(conclude_requirements(results, party), requested)
    applying = [entry["id"] for entry in entries if entry["extension"] in (PROTOCOL, *offered)]
    others = [result for result in results if result.has_reason(ReasonKind.NOT_FOR_THIS_TARGET)]
    tried = {name for result in others if party is Party.SERVER for name in result.requirements}
    judged = {entry["id"] for entry in entries if is_judged(entry)}
    return _ApplicableRequirements(dict.fromkeys(applying), judged, tried)


# --- rows -----------------------------------------------------------------------------------------------------------


def _iterate_rows_without_verdict(results: Iterable[CheckResult]) -> Iterator[UnjudgedRow]:
    """Yield the rows that ran but have no verdict: a model is missing, or the client cannot send the request."""
    for result in results:
        if result.outcome is not Outcome.NOT_APPLICABLE:
            continue
        names = tuple(result.requirements)
        if ledger.get_requirement(names[0]).party is Party.CLIENT:
            yield UnjudgedRow(names, GapReason.CANNOT)
        elif result.reason and result.reason.kind is ReasonKind.NO_MODEL:
            yield UnjudgedRow(names, GapReason.NO_MODEL, result.reason.subject)


def _exceeds_limits(case: Case, discovery_result: DiscoveryResult) -> bool:
    role = roles.load_with_packs().get(case.role or "")
    return role is not None and find_excess_of_role(discovery_result.limits, role) is not None


def _iterate_rows_not_run(
    rows: Iterable[Case], filled: Collection[str], chosen: Collection[tuple[str, str]]
) -> Iterator[UnjudgedRow]:
    """Yield the rows that did not run, each with the reason.

    Args:
        rows: the rows that did not run.
        filled: the roles for which the target has a model.
        chosen: the ids of the rows that belong to the profile of the run.
    """
    for case in rows:
        names, role = case.requirements, case.role
        if role is not None and role not in filled:
            yield UnjudgedRow(names, GapReason.NO_MODEL, role)
        else:
            yield UnjudgedRow(names, GapReason.NOT_RUN if case.ids in chosen else GapReason.LEFT_OUT)


def _limit_to_applicable_requirements(
    rows: Sequence[UnjudgedRow], known: _ApplicableRequirements
) -> Iterator[UnjudgedRow]:
    """Yield the rows with a requirement that applies to the target, without their other requirements.

    A row that needs an optional role, or that a client cannot run, counts only if no other row covers its requirement.
    """
    usual = {*known.tried, *(name for row in rows if not _is_fallback_row(row) for name in row.requirements)}
    for row in rows:
        names = [name for name in row.requirements if name in known.applying]
        if _is_fallback_row(row):
            names = [name for name in names if name not in known.judged and name not in usual]
        if names:
            yield row if len(names) == len(row.requirements) else replace(row, requirements=tuple(names))


def _is_fallback_row(row: UnjudgedRow) -> bool:
    """Return whether a row needs an optional role, or a client cannot run it."""
    return row.why is GapReason.CANNOT or _is_optional_role(row.role)


def _is_optional_role(name: str) -> bool:
    role = roles.load_with_packs().get(name)
    return role is not None and role.is_optional


# --- gaps and deployments -------------------------------------------------------------------------------------------


def _build_coverage(rows: Sequence[UnjudgedRow], known: _ApplicableRequirements, profile: str) -> Coverage:
    gaps = _build_gaps(rows)
    unjudged = tuple(name for name in known.applying if name in gaps and name not in known.judged and _is_must(name))
    of_musts = [row for row in rows if any(map(_is_must, row.requirements))]
    counts = Counter(row.why for row in of_musts)
    return Coverage(
        {name: gaps[name] for name in known.applying if name in gaps},
        unjudged,
        tuple(_choose_deployments([row for row in of_musts if row.role], unjudged)),
        counts[GapReason.NO_MODEL],
        counts[GapReason.LEFT_OUT],
        profile,
    )


def _build_gaps(rows: Iterable[UnjudgedRow]) -> dict[str, Gap]:
    found: dict[str, list[UnjudgedRow]] = {}
    for row in rows:
        for name in row.requirements:
            found.setdefault(name, []).append(row)
    return {name: _build_gap(own) for name, own in found.items()}


def _build_gap(rows: Sequence[UnjudgedRow]) -> Gap:
    needs = Counter(row.role for row in rows if row.role)
    return Gap(len(rows), tuple(dict.fromkeys(row.why for row in rows)), tuple(role for role, _ in needs.most_common()))


def _choose_deployments(rows: Sequence[UnjudgedRow], unjudged: Collection[str]) -> Iterator[Deployment]:
    """Yield the roles to deploy: a few that cover all unjudged MUSTs, most useful first; then others by row count."""
    waiting = Counter(row.role for row in rows)
    musts: dict[str, set[str]] = {role: set() for role in waiting}
    for row in rows:
        musts[row.role] |= {name for name in row.requirements if name in unjudged}
    left = set().union(*musts.values())
    while left:
        role = max(musts, key=lambda name: (len(musts[name] & left), waiting[name]))
        yield Deployment(role, tuple(name for name in unjudged if name in musts[role] & left), waiting.pop(role))
        left -= musts.pop(role)
    yield from (Deployment(role, (), count) for role, count in waiting.most_common() if not _is_optional_role(role))


def _is_must(name: str) -> bool:
    return ledger.get_requirement(name).level == "MUST"
