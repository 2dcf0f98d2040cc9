"""What the tests of fleets share."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.fleet import unit_runner
from tests.support.few_rows import FEW_ROWS


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be a whole run, for units that this process starts."""
    own = unit_runner._prepare_arguments
    monkeypatch.setattr(unit_runner, "_prepare_arguments", lambda unit, folder: [*own(unit, folder), *FEW_ROWS])
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
