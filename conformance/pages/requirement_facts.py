"""Facts about each requirement, for its page and for `oip-conformance explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from conformance import checks
from conformance.spec import ledger
from conformance.spec.check import Case, Check, Row, list_rows
from conformance.spec.extensions import ROBUSTNESS
from conformance.spec.ledger import Party
from conformance.transport import reference_faults
from conformance.transport.reference_faults import Fault


@dataclass(frozen=True, slots=True)
class RequirementCheck:
    """A check that covers a requirement, with the rows that cover it."""

    check: Check
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class RequirementFaults:
    """The faults of the reference server that violate a requirement.

    `beside`: the faults that violate this requirement as a side effect.
    """

    about: tuple[Fault, ...]
    beside: tuple[Fault, ...]


def needs_target_model(check: Check) -> bool:
    """Say whether a check runs only on models that the user names with `--target-model`."""
    return all(case.fit and not case.role for case in check.cases)


def describe_row_count(requirement_check: RequirementCheck) -> str:
    """Return how many rows of a check cover a requirement, and whether they need `--target-model`."""
    count = len(requirement_check.rows)
    option = ", with `--target-model`" if needs_target_model(requirement_check.check) else ""
    return f"{count} row{'' if count == 1 else 's'}{option}"


def find_clearest_check(requirement: str) -> RequirementCheck | None:
    """Return the check that is most specific to a requirement; None if no check covers it."""
    return min(map_checks().get(requirement, ()), key=lambda found: _build_sort_key(found, requirement), default=None)


def _build_sort_key(requirement_check: RequirementCheck, requirement: str) -> tuple[bool, bool, int, int]:
    """Return a sort key: checks that are more specific to a requirement come first.

    The key consists of: whether the check is not part of every run, whether it belongs to another area, the position at
    which it lists the requirement, and how many requirements it lists.
    """
    check = requirement_check.check
    is_special = (
        check.explores
        or check.judges_discovery
        or needs_target_model(check)
        or any(row.dangerous for row in requirement_check.rows)
    )
    names = {name for case in check.cases for name in case.requirements}
    place = min(Case(check, row).requirements.index(requirement) for row in requirement_check.rows)
    return is_special, check.area != ledger.get_requirement(requirement).area, place, len(names)


def list_checks(party: Party | None = None) -> tuple[Check, ...]:
    """Return all checks of a party, or of both, in the suite's order, including those on deployed models."""
    servers = (*checks.AREAS, ROBUSTNESS) if party is not Party.CLIENT else ()
    clients = checks.CLIENT_AREAS if party is not Party.SERVER else ()
    return tuple(check for area in (*servers, *clients) for check in checks.list_area_checks(area))


@cache
def map_checks(
    of_pack: tuple[Check, ...] | None = None, party: Party | None = None
) -> Mapping[str, Sequence[RequirementCheck]]:
    """Return requirement id -> the checks that cover it, in the order of the suite or of a pack."""
    found: dict[str, dict[str, tuple[Check, list[Row]]]] = {}
    for case in list_rows(list_checks(party) if of_pack is None else of_pack):
        for requirement in case.requirements:
            found.setdefault(requirement, {}).setdefault(case.check.id, (case.check, []))[1].append(case.row)
    return {name: [RequirementCheck(check, tuple(rows)) for check, rows in own.values()] for name, own in found.items()}


def find_faults(requirement: str) -> RequirementFaults:
    """Return the faults of the reference server that violate a requirement.

    Raises NoFaultsError: the reference server does not list its faults.
    """
    known = reference_faults.load().values()
    return RequirementFaults(
        tuple(fault for fault in known if fault.breaks[:1] == (requirement,)),
        tuple(fault for fault in known if requirement in fault.breaks[1:]),
    )
