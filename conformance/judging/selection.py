"""Selects the rows of a run by profile, transport and subject: model roles, deployed models or a client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from conformance import checks
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging import packs
from conformance.judging.applicability import build_applicability_test, find_models_like_another
from conformance.judging.quick_rows import find_quick_position, select_quick_rows
from conformance.spec.check import Case, Row, list_rows
from conformance.spec.extensions import GRPC, HTTP, ROBUSTNESS, find_transport
from conformance.spec.ledger import Party


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a run: the model roles, deployed models by name, or both; or a client.

    Attributes:
        models: names of deployed models, each judged on every row that it fits (`spec.fit`).
        with_roles: whether the rows of the roles are judged.
        robustness: whether the robustness rows are judged.
        packs: names of loaded packs, whose rows are judged as well.
    """

    models: tuple[str, ...] = ()
    with_roles: bool = True
    party: Party = Party.SERVER
    robustness: bool = False
    packs: tuple[str, ...] = ()


ROLES = Subjects()
CLIENTS = Subjects(party=Party.CLIENT)


def list_profile_rows(
    profile: str,
    *,
    dangerous: bool = False,
    subjects: Subjects = ROLES,
    transports: Sequence[str] = (HTTP,),
    discovery_result: DiscoveryResult | None = None,
) -> list[Case]:
    """Return all rows of a profile in the order of the suite; see `select_profile` for the other arguments."""
    found = [case for area in list_areas(subjects, transports) for case in list_area_rows(area, subjects)]
    return select_profile(found, profile, dangerous=dangerous, transports=transports, discovery_result=discovery_result)


def select_profile(
    cases: Sequence[Case],
    profile: str,
    *,
    dangerous: bool,
    transports: Sequence[str],
    discovery_result: DiscoveryResult | None,
) -> list[Case]:
    """Return the rows that are part of a profile.

    Args:
        cases: all rows of some checks.
        profile: the profile.
        dangerous: whether to include rows that have crashed servers.
        transports: the judged transports.
        discovery_result: the discovery result, so that `quick` has rows for each model; None before discovery.
    """
    if profile != "quick" or discovery_result is None:
        return [case for case in cases if is_in_profile(case, profile, dangerous)]
    others = [case for case in cases if is_in_profile(case, "certify", dangerous)]
    applies = build_applicability_test(discovery_result, transports)
    return select_quick_rows(others, applies, find_models_like_another(discovery_result))


def list_areas(subjects: Subjects, transports: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the areas (packages of checks) that a run over these transports judges."""
    if subjects.party is Party.CLIENT:
        return tuple(area for area in checks.CLIENT_AREAS if find_transport(area) in transports)
    http = tuple(area for area in checks.AREAS if area != checks.GRPC) if HTTP in transports else ()
    grpc = (checks.GRPC,) if GRPC in transports else ()
    return (*http, *grpc, *subjects.packs, *((ROBUSTNESS,) if subjects.robustness else ()))


def list_area_rows(area: str, subjects: Subjects) -> list[Case]:
    """Return the rows of an area: first rows for roles or without a model, then the rows for each deployed model."""
    of_pack = packs.list_checks(area)
    cases = list_rows(checks.list_area_checks(area) if of_pack is None else of_pack)
    if area == ROBUSTNESS or subjects.party is Party.CLIENT:
        return cases
    plain = [case for case in cases if _needs_no_deployed_model(case, with_roles=subjects.with_roles)]
    fitting = [case for case in cases if case.fit]
    return [*plain, *(Case(check, bind_model(model, row)) for model in subjects.models for check, row in fitting)]


def _needs_no_deployed_model(case: Case, *, with_roles: bool) -> bool:
    """Return whether a row needs no deployed model: it uses a role (if roles are judged) or no model."""
    return with_roles if case.role else case.fit is None


def find_row(check_id: str, row_id: str, models: Sequence[str] = ()) -> Case | None:
    """Return a row by the ids of check and row, for the roles and the given deployed models, or None."""
    pack = None if check_id.partition(".")[0] in checks.PACKAGES else packs.load_pack_of_id(check_id)
    for area in checks.PACKAGES if pack is None else (pack.name,):
        for case in list_area_rows(area, Subjects(tuple(models))):
            if case.ids == (check_id, row_id):
                return case
    return None


def bind_model(model: str, row: Row) -> Row:
    """Bind a row to a deployed model; its id gets the suffix `@MODEL`, which rows of roles never have."""
    return replace(row, id=f"{row.id}@{model}", model=model)


def is_in_profile(case: Case, profile: str, dangerous: bool) -> bool:
    """Return whether a row is part of a profile, before the target's extensions and models are considered."""
    if case.row.dangerous and not dangerous:
        return False
    return profile == "explore" or not (
        case.check.explores
        or (profile == "quick" and find_quick_position(case) is None and not case.requirement.is_of_pack)
    )


def matches_any_pattern(case: Case, patterns: Iterable[str]) -> bool:
    """Return whether the id of a check, or `id[row]`, matches a pattern with * and ?; brackets are literal."""
    names = (case.check.id, case.key)
    return any(matches_pattern(name, pattern) for pattern in patterns for name in names)


def matches_pattern(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern with the wildcards * (any text) and ? (any character)."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), name) is not None
