"""Each fault of the client is seen and rightly named; clients that are different and right are accused of nothing."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.judging.selection import CLIENTS, list_profile_rows
from conformance.spec import ledger
from conformance.spec.extensions import TRANSPORTS
from conformance.spec.ledger import Party
from tests.clients import alterations
from tests.clients.alterations import Alteration
from tests.clients.matrix import find_complaints, find_false_alarms
from tests.clients.sightings import (
    MANY,
    SharedPeer,
    collect_rows,
    read_seen_rows,
    sample_rows,
    select_answering,
    select_apt,
)
from tests.support.tables import on_each, own_name

FAULTS = alterations.load("faults")
# Requirements that no fault of ours can miss, and why.
UNBROKEN: Mapping[str, str] = {}


@on_each(FAULTS.values(), own_name)
def test_a_fault_is_seen_and_rightly_named(fault: Alteration, *, stage: SharedPeer) -> None:
    rows = collect_rows(fault.transports)
    sighting = stage.see(fault, sample_rows(fault, rows))
    if fault.misses[0] not in sighting.named:  # the rows that saw it are there no more
        sighting = stage.see(fault, select_answering(rows, fault.misses), until=lambda named: fault.misses[0] in named)
    assert find_complaints(sighting, fault) == []


@on_each([entry.id for entry in ledger.load_for_party(Party.CLIENT) if entry.level != "OBSERVE"])
def test_a_requirement_has_a_fault(name: str) -> None:
    missed = [fault.name for fault in FAULTS.values() if name in fault.misses]
    assert bool(missed) != (name in UNBROKEN)


@on_each(sorted({check.id for check, _ in list_profile_rows("quick", subjects=CLIENTS, transports=TRANSPORTS)}))
def test_a_check_sees_a_fault(check: str) -> None:
    assert any(check == name for rows in read_seen_rows().values() for name, _ in rows)


def test_there_are_faults_enough() -> None:
    assert len(FAULTS) >= 60


@on_each(FAULTS.values(), own_name)
def test_a_fault_names_known_requirements_and_says_what_it_does(fault: Alteration) -> None:
    assert fault.misses
    assert set(fault.misses) <= {entry.id for entry in ledger.load_for_party(Party.CLIENT)}
    assert fault.summary.endswith(".")


# --- variations -------------------------------------------------------------------------------------------------------


VARIATIONS = alterations.load("variations")
CLIENT = Path(__file__).parent / "honest"


@on_each(VARIATIONS.values(), own_name)
def test_a_variation_is_accused_of_nothing(variation: Alteration, *, stage: SharedPeer) -> None:
    rows = collect_rows(variation.transports)
    for part in range(MANY):  # what is altered may be in few requests
        sighting = stage.see(variation, select_apt(variation, rows, part))
        if sighting.touched:
            break
    assert find_false_alarms(sighting, variation) == []


def test_a_client_that_sends_no_json_is_not_blamed_for_what_comes_after_an_answer(stage: SharedPeer) -> None:
    def send_no_json(original: alterations.Original, client: Any, one: Any, timeout: float) -> Any:
        is_binary = any(tensor.is_binary for tensor in one.inputs)
        return original(client, one, timeout) if is_binary else {"error": {"message": "no JSON alone"}}

    rows = [case for case in collect_rows(("http",)) if case.check.id == "client.goes-on-after-errors"]
    sighting = stage.see(Alteration("no-json", ("lines.result",), (), send_no_json), rows)
    assert {miss.outcome for miss in sighting.misses} == {"blocked"}
    assert len(sighting.misses) < len(rows)


def test_the_honest_client_meets_every_row(stage: SharedPeer) -> None:
    rows = collect_rows(("http", "grpc"))
    sighting = stage.see(None, rows)
    assert len(rows) > 300
    assert sighting.misses == ()
    assert sighting.watched == ()


def test_there_are_variations_enough() -> None:
    assert len(VARIATIONS) >= 25


@on_each(VARIATIONS.values(), own_name)
def test_a_variation_says_what_it_does(variation: Alteration) -> None:
    assert variation.misses == ()
    assert variation.summary.endswith(".")


@pytest.mark.parametrize("folder", ["honest", "faults", "variations"])
def test_the_client_shares_no_code_with_the_suite_or_the_server(folder: str) -> None:
    files = list((CLIENT.parent / folder).glob("*.py"))
    assert files
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"conformance", "reference_server"}, path.name
