"""`python -m tests.support.covering_arrays`: compute the covering arrays of the walk, and write their file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from conformance.checks.support.covering import PairRule, Step, StepSpace
from conformance.checks.walk.axes import KINDS, find_cost, is_excluded, is_needed
from conformance.checks.walk.axes_over_grpc import CALLS, is_excluded_call
from conformance.checks.walk.covering_arrays import DIGITS, FILE

ALL_AXES = {**KINDS, **CALLS}


def compute_arrays() -> dict[str, list[Step]]:
    """Return kind -> its covering array, over HTTP and gRPC."""
    return {
        **{kind: _compute_array(axes, partial(is_excluded, kind)) for kind, axes in KINDS.items()},
        **{kind: _compute_array(axes, partial(is_excluded_call, kind)) for kind, axes in CALLS.items()},
    }


def _compute_array(axes: Mapping[str, Sequence[str]], excluded: PairRule) -> list[Step]:
    return StepSpace(axes, excluded, find_cost, is_needed).build_array()[0]


def _format_step(step: Step, axes: Mapping[str, Sequence[str]]) -> str:
    return "".join(DIGITS[values.index(step[axis])] for axis, values in axes.items())


if __name__ == "__main__":
    written = {kind: [_format_step(step, ALL_AXES[kind]) for step in steps] for kind, steps in compute_arrays().items()}
    FILE.write_text(json.dumps(written, indent=0) + "\n", encoding="utf-8")
