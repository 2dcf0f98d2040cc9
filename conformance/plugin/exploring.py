"""How the `explore` profile explores: with Hypothesis, under our settings or the user's, by a seed that is shown."""

from __future__ import annotations

from random import SystemRandom
from typing import Any

import pytest

EXAMPLES = 50


def choose_seed(config: pytest.Config, given: int | None) -> int:
    """Set Hypothesis up, and return the seed: the one that a controller or the user gave, or a new one."""
    import hypothesis  # for this profile alone

    hypothesis.settings.register_profile(
        "oip-explore",
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=False,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    if not config.getoption("hypothesis_profile", None):
        hypothesis.settings.load_profile("oip-explore")
    chosen: Any = config.getoption("hypothesis_seed", None)
    seed = given or (int(chosen) if chosen else SystemRandom().randrange(2**32))
    hypothesis.core.global_force_seed = seed  # type: ignore[assignment]  # what --hypothesis-seed sets
    return seed
