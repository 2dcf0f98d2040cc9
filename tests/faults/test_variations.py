"""No server that is different and right fails a check, and advice is given where a SHOULD is missed, and only there."""

from __future__ import annotations

import pytest

from tests.support import variations
from tests.support.matrix import run, strays
from tests.support.seeing import Sighting


@pytest.fixture(scope="session")
def sightings() -> dict[str, Sighting]:
    return run(variations.load, variations.load(), whole=False)


@pytest.mark.parametrize("name", variations.load())
def test_an_honest_server_fails_nothing(name: str, sightings: dict[str, Sighting]) -> None:
    assert strays(sightings[name], variations.load()[name]) == []
