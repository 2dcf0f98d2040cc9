"""How the `explore` profile explores: with Hypothesis, under our settings or the user's, by a seed that is shown."""

from __future__ import annotations

import os
from random import SystemRandom
from tempfile import TemporaryDirectory
from typing import Any

import pytest

MAX_EXAMPLES = 50


def choose_seed(config: pytest.Config, given: int | None) -> int:
    """Set Hypothesis up, and return the seed: the one that a controller or the user gave, or a new one."""
    import hypothesis  # for this profile alone

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
        _leave_nothing(config)
    chosen: Any = config.getoption("hypothesis_seed", None)
    seed = given or (int(chosen) if chosen else SystemRandom().randrange(2**32))
    hypothesis.core.global_force_seed = seed  # type: ignore[assignment]  # what --hypothesis-seed sets
    return seed


def _leave_nothing(config: pytest.Config) -> None:
    """Keep what Hypothesis notes for itself out of the folder of the user, unless he says where it is to be."""
    if "HYPOTHESIS_STORAGE_DIRECTORY" not in os.environ:
        from hypothesis.configuration import set_hypothesis_home_dir

        notes = TemporaryDirectory(prefix="oip-hypothesis-", ignore_cleanup_errors=True)
        set_hypothesis_home_dir(notes.name)
        config.add_cleanup(notes.cleanup)
