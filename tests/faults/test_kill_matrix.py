"""Each fault is seen, by exactly the checks of what it breaks; each MUST, each SHOULD and each check has one.

No server that is different and right fails a check, and advice is given where a SHOULD is missed, and only there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.judging.selection import Subjects, list_profile_rows
from conformance.spec import ledger
from conformance.spec.extensions import TRANSPORTS
from conformance.spec.ledger import Party
from reference_server import faults
from tests.support import kept_results, sampling, valid_servers
from tests.support.matrix import find_complaints, find_false_alarms, is_seen_by, load_all, run, run_changed
from tests.support.quick_record import list_server_rows, read_record
from tests.support.samples import read_seen_by
from tests.support.sightings import Sighting
from tests.support.tables import on_each, own_name

EVERYTHING = Subjects(robustness=True)
# Requirements that no fault of ours can break, and why.
UNBROKEN: Mapping[str, str] = {}


@pytest.fixture(scope="session")
def sightings() -> dict[str, Sighting]:
    if sampling.is_whole:
        return run(load_all())
    kept = kept_results.read()
    changed = dict(run_changed(kept))
    return {name: changed.get(name) or kept.get_sighting(name) for name in load_all()}


@on_each(faults.load())
def test_a_fault_is_killed_exactly(name: str, *, sightings: dict[str, Sighting]) -> None:
    assert find_complaints(sightings[name], faults.load()[name]) == []


@on_each(valid_servers.load())
def test_an_honest_server_fails_nothing(name: str, *, sightings: dict[str, Sighting]) -> None:
    assert find_false_alarms(sightings[name], valid_servers.load()[name]) == []


@on_each([one.id for one in ledger.load().values() if one.party is Party.SERVER and one.level in ("MUST", "SHOULD")])
def test_a_requirement_has_a_fault(name: str) -> None:
    broken = [fault.name for fault in faults.load().values() if name in fault.breaks]
    assert bool(broken) != (name in UNBROKEN)


def checks_with_a_level() -> list[str]:
    """Return the checks of MUSTs and SHOULDs whose requests are the same each time."""
    levels = {
        case.check.id: {ledger.get_requirement(name).level for name in case.requirements}
        for case in list_profile_rows("certify", dangerous=True, subjects=EVERYTHING, transports=TRANSPORTS)
    }
    return [name for name, found in levels.items() if found & {"MUST", "SHOULD"}]


def test_a_check_sees_a_fault(sightings: dict[str, Sighting]) -> None:
    seen = {miss.check for fault in faults.load() for miss in sightings[fault].select("fail", "advisory")}
    known = {name: one.rows for name, one in read_record().faults.items()}
    unseen = [name for name in checks_with_a_level() if name not in seen]
    assert [name for name in unseen if not is_seen_by(name, faults.load, known)] == []


@on_each(faults.load())
def test_the_record_names_a_row_that_is_there(name: str) -> None:
    assert set(read_seen_by()[name]) & set(list_server_rows()), "write it: python -m tests.support.pages"


@on_each(faults.load().values(), own_name)
def test_a_fault_names_known_requirements_and_says_what_it_does(fault: faults.Fault) -> None:
    assert set(fault.breaks) <= set(ledger.load())
    assert bool(fault.breaks) != fault.broad
    assert fault.summary.endswith(".")
    assert fault.steps
