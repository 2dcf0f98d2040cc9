"""The covering arrays of the walk with the models of roles.

Run `python -m tests.support.covering_arrays` to recompute the arrays when axes or rules change; a test in `tests/walk`
fails if the stored arrays are out of date. Computing them at each start of a run would take most of a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from conformance.checks.support.covering import Step

FILE = Path(__file__).with_suffix(".json")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # a step is stored as a digit for each axis: the index of its value


@cache
def _load_file() -> Mapping[str, Sequence[str]]:
    found: Mapping[str, Sequence[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def load_array(kind: str, axes: Mapping[str, Sequence[str]]) -> list[Step]:
    """Return the steps of the covering array of a kind of request or call; each step has a value for each axis."""
    return [
        {axis: values[DIGITS.index(digit)] for (axis, values), digit in zip(axes.items(), digits, strict=True)}
        for digits in _load_file()[kind]
    ]
