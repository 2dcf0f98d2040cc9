"""Shapes as Hypothesis draws them: what the `explore` profile adds."""

from __future__ import annotations

from conformance.checks.support.binary_sides import Side, expect_survival
from conformance.checks.support.exploring import explore
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target

# --- explored ---------------------------------------------------------------------------------------------------------

DRAWN = tuple(Row(role, role=role) for role in ("rank2", "rank3", "rank4", "rank2_bytes"))


@check("bytes.drawn-shapes-are-read", answers="BIN-ROW-MAJOR-I", explores=True)
@rows(*DRAWN, Row("weighted_sum", role="weighted_sum"))
def drawn_shapes_are_read(target: Target, model: Model) -> None:
    """A binary input of any shape is read row by row."""
    _explore(target, model, "read")


@check("bytes.drawn-shapes-are-written", answers="BIN-ROW-MAJOR-O", explores=True)
@rows(*DRAWN)
def drawn_shapes_are_written(target: Target, model: Model) -> None:
    """A binary output of any shape is written row by row."""
    _explore(target, model, "written")


def _explore(target: Target, model: Model, side: Side) -> None:
    from conformance.roles import tensor_strategies  # and with it hypothesis: see `exploring`

    spec = model.role.inputs[0]
    drawn = tensor_strategies.tensors(spec.name, spec.datatype, spec.shape, json=True)
    explore(drawn, lambda tensor: expect_survival(target, model, [tensor], side))
