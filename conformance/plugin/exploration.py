"""Configures Hypothesis for the `explore` profile, with the suite's or the user's settings and a reported seed."""

from __future__ import annotations

import os
from random import SystemRandom
from tempfile import TemporaryDirectory
from typing import Any

import pytest

MAX_EXAMPLES = 50


def choose_seed(config: pytest.Config, from_controller: int | None) -> int:
    """Configure Hypothesis and return its seed: `from_controller`, or the user's seed, or a new one."""
    import hypothesis  # lazy: only this profile needs it

    hypothesis.settings.register_profile(
        "oip-explore",
        max_examples=MAX_EXAMPLES,
        deadline=None,
        derandomize=False,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    if not config.getoption("hypothesis_profile", None):
        hypothesis.settings.load_profile("oip-explore")
        _use_temporary_storage(config)
    chosen: Any = config.getoption("hypothesis_seed", None)
    seed = from_controller or (int(chosen) if chosen else SystemRandom().randrange(2**32))
    hypothesis.core.global_force_seed = seed  # type: ignore[assignment]  # what --hypothesis-seed sets
    return seed


def _use_temporary_storage(config: pytest.Config) -> None:
    """Store Hypothesis's files in a temporary folder, unless the user has set a storage directory."""
    if "HYPOTHESIS_STORAGE_DIRECTORY" not in os.environ:
        from hypothesis.configuration import set_hypothesis_home_dir

        notes = TemporaryDirectory(prefix="oip-hypothesis-", ignore_cleanup_errors=True)
        set_hypothesis_home_dir(notes.name)
        config.add_cleanup(notes.cleanup)
