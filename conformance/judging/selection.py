"""Which rows a run consists of: by profile, by transport, and of model roles, of deployed models or of a client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from conformance import checks
from conformance.spec.check import Check, Row, format_key, list_rows
from conformance.spec.extensions import GRPC, HTTP, ROBUSTNESS, find_transport
from conformance.spec.ledger import Party


@dataclass(frozen=True, slots=True)
class Subjects:
    """What a run is about: the model roles, deployed models by their names, or both; or a client.

    Attributes:
        models: names of deployed models, each judged on every row that it fits (`spec.fit`).
        with_roles: whether the rows of the roles are judged, too.
        robustness: what a server withstands is asked for, too.
    """

    models: tuple[str, ...] = ()
    with_roles: bool = True
    party: Party = Party.SERVER
    robustness: bool = False


ROLES = Subjects()
CLIENTS = Subjects(party=Party.CLIENT)


def select_subjects(named: Iterable[str], tables: Iterable[str], *, robustness: bool = False) -> Subjects:
    """Return what is judged: the roles, and these models beside them.

    Args:
        named: models that the user names.
        tables: models that have a table in the file about the target.
        robustness: whether what a server withstands is asked for.
    """
    return Subjects(tuple(dict.fromkeys([*named, *tables])), robustness=robustness)


def collected_rows(
    profile: str, *, dangerous: bool = False, subjects: Subjects = ROLES, transports: Sequence[str] = (HTTP,)
) -> list[tuple[Check, Row]]:
    """Return what a whole run of a profile consists of, with the rows that have ended servers or without them."""
    found = [case for area in list_areas(subjects, transports) for case in list_area_rows(area, subjects)]
    return [(check, row) for check, row in found if is_in_profile(check, row, profile, dangerous)]


def list_areas(subjects: Subjects, transports: Sequence[str]) -> tuple[str, ...]:
    """Return the areas of a run over `http`, over `grpc`, or both."""
    if subjects.party is Party.CLIENT:
        return tuple(area for area in checks.CLIENT_AREAS if find_transport(area) in transports)
    http = tuple(area for area in checks.AREAS if area != checks.GRPC) if HTTP in transports else ()
    grpc = (checks.GRPC,) if GRPC in transports else ()
    return (*http, *grpc, *((ROBUSTNESS,) if subjects.robustness else ()))


def list_area_rows(area: str, subjects: Subjects) -> list[tuple[Check, Row]]:
    """Return the rows of an area in a run: those of the roles or of no model, then those of each deployed model."""
    cases = list_rows(checks.list_area_checks(area))
    if area == ROBUSTNESS or subjects.party is Party.CLIENT:
        return cases
    plain = [(check, row) for check, row in cases if _is_without_model(check, row, with_roles=subjects.with_roles)]
    fitting = [(check, row) for check, row in cases if check.find_fit(row)]
    return [*plain, *((check, bind_model(model, row)) for model in subjects.models for check, row in fitting)]


def _is_without_model(check: Check, row: Row, *, with_roles: bool) -> bool:
    """Say whether a row is one of the roles, where these are judged, or takes no model at all."""
    return with_roles if check.find_role(row) else check.find_fit(row) is None


def find_row(check_id: str, row_id: str, models: Sequence[str] = ()) -> tuple[Check, Row] | None:
    """Return a row by its names, among those of the roles and those of these deployed models; None where it is none."""
    for area in checks.PACKAGES:
        for check, row in list_area_rows(area, Subjects(tuple(models))):
            if (check.id, row.id) == (check_id, row_id):
                return check, row
    return None


def bind_model(model: str, row: Row) -> Row:
    """Return a row as it is judged on a deployed model; no row of a role has an id with `@`."""
    return replace(row, id=f"{row.id}@{model}", model=model)


def is_in_profile(check: Check, row: Row, profile: str, dangerous: bool) -> bool:
    """Say whether a row is part of a profile."""
    if row.dangerous and not dangerous:
        return False
    return profile == "explore" or not (check.explores or (profile == "quick" and row.thorough))


def is_named(check: Check, row: Row, patterns: Iterable[str]) -> bool:
    """Say whether the id of a check, or `id[row]`, fits a pattern with * and ?; brackets mean themselves."""
    names = (check.id, format_key(check.id, row.id))
    return any(is_match(name, pattern) for pattern in patterns for name in names)


def is_match(name: str, pattern: str) -> bool:
    """Say whether a name fits a pattern, in which * stands for any text, ? for any character, all else for itself."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), name) is not None
