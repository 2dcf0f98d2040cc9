"""Clients that are different and right are accused of nothing: by no row, and by no request of theirs alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import alterations
from tests.clients.alterations import Alteration
from tests.clients.matrix import find_false_alarms
from tests.clients.samples import select_apt
from tests.clients.sightings import SharedPeer, collect_rows

VARIATIONS = alterations.load("variations")
CLIENT = Path(__file__).parent / "honest"


@pytest.fixture(scope="module")
def stage() -> Iterator[SharedPeer]:
    with SharedPeer() as opened:
        yield opened


@pytest.mark.parametrize("variation", VARIATIONS.values(), ids=lambda variation: variation.name)
def test_a_variation_is_accused_of_nothing(variation: Alteration, stage: SharedPeer) -> None:
    rows = select_apt(variation, collect_rows(variation.transports))
    assert find_false_alarms(stage.see(variation, rows), variation) == []


def test_the_honest_client_meets_every_row(stage: SharedPeer) -> None:
    rows = collect_rows(("http", "grpc"), "certify")
    sighting = stage.see(None, rows)
    assert len(rows) > 300
    assert sighting.misses == ()
    assert sighting.watched == ()


def test_there_are_variations_enough() -> None:
    assert len(VARIATIONS) >= 25


@pytest.mark.parametrize("variation", VARIATIONS.values(), ids=lambda variation: variation.name)
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
