"""All there is to say of each requirement, gathered for its page and for `oip-conformance explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from conformance import checks
from conformance.terms import ledger
from conformance.terms.check import Check, Row, all_rows
from conformance.terms.extensions import ROBUSTNESS
from conformance.transport import reference_faults
from conformance.transport.reference_faults import Fault


@dataclass(frozen=True, slots=True)
class Answering:
    """A check that answers for a requirement, with those of its rows that do."""

    check: Check
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that break a requirement: those that are about it, and those that cannot help breaking it, too."""

    about: tuple[Fault, ...]
    beside: tuple[Fault, ...]


def is_of_models(check: Check) -> bool:
    """Say whether a check is run on a model that the user names, and not otherwise."""
    return all(check.fit_of(row) and not check.role_of(row) for row in check.rows)


def counted_rows(found: Answering) -> str:
    """Return how many rows of a check answer for a requirement, and whether they need a model that the user names."""
    count = len(found.rows)
    return f"{count} row{'' if count == 1 else 's'}{', with `--target-model`' if is_of_models(found.check) else ''}"


def clearest(requirement: str) -> Answering | None:
    """Return the check that is about a requirement above all; None where none answers for it."""
    return min(answering().get(requirement, ()), key=lambda found: _spread(found, requirement), default=None)


def _spread(found: Answering, requirement: str) -> tuple[bool, bool, int, int]:
    """Return how far a check is from a requirement.

    That is: whether it is not part of every run, whether it is of another area, how far down it names the requirement,
    and how many it names.
    """
    check = found.check
    is_special = check.explores or check.of_survey or is_of_models(check) or any(row.dangerous for row in found.rows)
    names = {name for row in check.rows for name in check.requirements(row)}
    place = min(check.requirements(row).index(requirement) for row in found.rows)
    return is_special, check.area != ledger.requirement(requirement).area, place, len(names)


def every_check() -> tuple[Check, ...]:
    """Return all checks, those on models that the user names and those of clients included, in the suite's order."""
    others = [check for area in (ROBUSTNESS, *checks.OF_CLIENTS) for check in checks.of_area(area)]
    return (*checks.load(), *others)


@cache
def answering() -> Mapping[str, Sequence[Answering]]:
    """Return requirement id -> the checks that answer for it, in the order of the suite."""
    found: dict[str, dict[str, tuple[Check, list[Row]]]] = {}
    for check, row in all_rows(every_check()):
        for requirement in check.requirements(row):
            found.setdefault(requirement, {}).setdefault(check.id, (check, []))[1].append(row)
    return {name: [Answering(check, tuple(rows)) for check, rows in own.values()] for name, own in found.items()}


def faults_of(requirement: str) -> Faults:
    """Return the faults of the reference server that break a requirement.

    Raises:
        NoFaultsError: the server's own list cannot be had.
    """
    known = reference_faults.load().values()
    return Faults(
        tuple(fault for fault in known if fault.breaks[:1] == (requirement,)),
        tuple(fault for fault in known if requirement in fault.breaks[1:]),
    )
