"""Make the rows of the walk over HTTP and gRPC: rows for each role, and a row for each single value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.checks.support.covering import Step
from conformance.checks.walk import deployed_steps
from conformance.checks.walk.single_factor import FORM_AXES
from conformance.spec.check import Row

BRIEF_STEPS = 4  # the brief part is this fraction of the array: its first steps, which cover the most pairs
MAX_REST_STEPS = 20  # of a row: the rows of a role can run at the same time on a slow server
# kind -> axis -> the values of the axis
Kinds = Mapping[str, Mapping[str, Sequence[str]]]
# kind -> the requirement that its steps break by default, and the extensions that its rows need
Judged = Mapping[str, tuple[str, tuple[str, ...]]]
# kind -> the simplest role, and the simplest forms of its tensors
Baselines = Mapping[str, tuple[str, Sequence[Step]]]


def make_array_rows(kinds: Kinds, judged: Judged, build_steps: Callable[[str], Sequence[Step]]) -> Iterator[Row]:
    """Yield the rows that send covering arrays: some for each role and kind of request, and for deployed models."""
    for kind in judged:
        common = list_common_fields(judged[kind])
        for role in kinds[kind]["role"]:
            for part in _divide_steps(build_steps(kind), role):
                yield Row(f"{kind}-{role}-{part}", (kind, part), role=role, **common)
        for number in range(deployed_steps.PARTS):
            fit = deployed_steps.FITS[kind]
            yield Row(f"{kind}-{number + 1}", (kind, str(number)), fit=fit, **common)


def make_single_value_rows(
    kinds: Kinds, judged: Judged, baselines: Baselines, build_steps: Callable[[str, str], Sequence[Step]]
) -> Iterator[Row]:
    """Yield a row for each value of each axis.

    `build_steps` returns the steps of a kind that are plain except for one value of an axis.
    """
    for kind, (role, _) in baselines.items():
        common, fit = list_common_fields(judged[kind]), deployed_steps.FITS[kind]
        for axis in kinds[kind]:
            if axis not in ("role", *FORM_AXES):
                for value in dict.fromkeys(step[axis] for step in build_steps(kind, axis)):
                    values = (kind, axis, value)
                    yield Row("-".join(values), values, role=role, fit=fit, **common)


def select_part(steps: Sequence[Step], role: str, part: str) -> tuple[Step, ...]:
    """Return the steps with one role in a part of a covering array: `brief`, `rest`, `rest-2` and so on."""
    return _divide_steps(steps, role)[part]


def _divide_steps(steps: Sequence[Step], role: str) -> dict[str, tuple[Step, ...]]:
    """Return the steps with one role, by the part of the covering array."""
    brief = len(steps) // BRIEF_STEPS
    first, rest = (tuple(step for step in half if step["role"] == role) for half in (steps[:brief], steps[brief:]))
    pieces = [rest[start : start + MAX_REST_STEPS] for start in range(0, max(1, len(rest)), MAX_REST_STEPS)]
    return {"brief": first, **{f"rest-{k}" if k > 1 else "rest": piece for k, piece in enumerate(pieces, 1)}}


def list_common_fields(judged: tuple[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the fields that all rows of a kind have in common."""
    requirement, needs = judged
    return {"requirements": (requirement,), "needs": needs}
