"""What fuzzing has found worth keeping is replayed: each property holds for each input."""

from __future__ import annotations

import pytest

from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_property_holds_for_the_corpus(target: Target) -> None:
    inputs = target.inputs()
    assert inputs
    for data in inputs:
        target.holds(data)
