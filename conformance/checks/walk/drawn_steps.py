"""Steps drawn by Hypothesis, for the `explore` profile, in addition to the covering arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.checks.support.covering import Step
from conformance.checks.support.exploring import explore
from conformance.checks.walk.axes import KINDS, NEUTRAL, is_excluded, is_invalid
from conformance.checks.walk.exchanges import HTTP_WALK, make_walk
from conformance.checks.walk.walk_rows import list_common_fields
from conformance.checks.walk.walking import salt_steps
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target

if TYPE_CHECKING:  # see `exploring`
    from hypothesis.strategies import SearchStrategy

MAX_STEPS = 4  # steps in one drawn sequence; the sequences of covering arrays are longer


def draw_steps(kind: str, role: str) -> SearchStrategy[list[Step]]:
    """Return a strategy that draws short sequences of steps of a kind with one role, and shrinks to a neutral step."""
    from hypothesis import strategies as st

    axes = {axis: values for axis, values in KINDS[kind].items() if axis != "role"}
    drawn = st.fixed_dictionaries({axis: st.sampled_from(list(values)) for axis, values in axes.items()})
    return st.lists(drawn.map(lambda values: _make_valid_step(kind, role, values)), min_size=1, max_size=MAX_STEPS)


def _make_valid_step(kind: str, role: str, values: Step) -> Step:
    """Return a step with these values; if two values exclude each other, the value of the later axis is replaced."""
    form = {"send": "raw", "want": "raw"} if kind == "raw" else {}
    chosen: dict[str, str] = {"role": role}
    for axis, value in values.items():
        if any(is_excluded(kind, axis, value, *other) for other in chosen.items()):
            chosen[axis] = next(
                (
                    other
                    for other in KINDS[kind][axis]
                    if not any(is_excluded(kind, axis, other, *previous) for previous in chosen.items())
                ),
                NEUTRAL[axis],
            )
        else:
            chosen[axis] = value
    step = {**NEUTRAL, **form, **chosen}
    return {**NEUTRAL, **form, "role": role} if is_invalid(step) and kind != "binary" else step


def _make_drawn_rows() -> Sequence[Row]:
    return [
        Row(f"{kind}-{role}", (kind, role), role=role, **list_common_fields(HTTP_WALK.judged[kind]))
        for kind, axes in KINDS.items()
        for role in axes["role"]
    ]


@check("walk.drawn-exchanges-are-right", requirements="OIP-ANSWER", explores=True)
@rows(*_make_drawn_rows())
def drawn_exchanges_are_right(target: Target, model: Model, kind: str, role: str) -> None:
    """The server answers any request of any kind correctly, after any earlier requests."""
    walk = make_walk(target, model, kind)
    explore(draw_steps(kind, role), lambda steps: walk.send_steps(salt_steps(steps, model.salt)), shrinks=False)
