"""Ten times the examples of `explore`, and what they cost."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from benchmarks.children import PYTEST, bundled, folder, run
from benchmarks.ratio import CannotMeasureError, Measured, benchmark

# A plugin for Hypothesis' settings, since the suite has no option of its own for what Hypothesis has one for; it leaves
# the most memory that the run took.
PLUGIN = f"""
import sys
from pathlib import Path

import hypothesis

sys.path.append({str(Path(__file__).parents[1])!r})
from benchmarks.children import most_memory

for name, examples in (("one", 50), ("ten", 500)):
    hypothesis.settings.register_profile(
        name, max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )

def pytest_unconfigure():
    Path("memory").write_text(str(most_memory()))
"""
# What draws steps of the walk, with the plainest role, of every kind.
DRAWN = "drawn_exchanges_are_right and identity_int32"


@benchmark("explore-x10", "ten times the examples of `explore` on the walk", "one time", reach=10)
def explore() -> Measured:
    """With the same seed; the memory of both shows whether something is kept for each example."""
    if find_spec("hypothesis") is None:
        raise CannotMeasureError("hypothesis is not here: pip install hypothesis")
    with bundled() as server, folder() as into:
        (into / "explored.py").write_text(PLUGIN)
        options = ("-q", "-p", "explored", f"--target-url={server.url}", "--conformance-profile=explore", "-k", DRAWN)
        costs = []
        for name in ("one", "ten"):
            seeded = ("--hypothesis-seed=1", f"--hypothesis-profile={name}")
            elapsed, _ = run(*PYTEST, *options, *seeded, folder=into)
            costs.append((elapsed, float((into / "memory").read_text())))
    (one, once), (ten, often) = costs
    return Measured(ten, one, remarks=f"{once:.0f} MB once, {often:.0f} MB ten times")
