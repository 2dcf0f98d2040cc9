"""Tensors of every datatype as Hypothesis draws them: what the `explore` profile adds."""

from __future__ import annotations

from conformance.checks.support.binary_sides import Side, expect_survival
from conformance.checks.support.datatypes import JSON_CAPABLE, get_identity_role
from conformance.checks.support.exploring import explore
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target

# --- explored ---------------------------------------------------------------------------------------------------------


def make_drawn_rows(side: str, **others: str) -> list[Row]:
    """Return a row for each datatype, with the requirement of its own where it has one; `others` are more roles."""
    roles = {datatype: get_identity_role(datatype) for datatype in JSON_CAPABLE} | others
    own = {"BOOL": "BOOL", "BYTES": "BYTES", "string_length": "BYTES"}
    return [Row(name, role=role, answers=(f"BIN-{own.get(name, 'DATATYPES')}-{side}",)) for name, role in roles.items()]


@check("datatypes.drawn-inputs-are-read", answers="BIN-DATATYPES-I", explores=True)
@rows(*make_drawn_rows("I", FP16="cast_fp16_fp32"))
def drawn_inputs_are_read(target: Target, model: Model) -> None:
    """Any binary input is read right, as JSON outputs show."""
    _explore(target, model, "read", json=True)


@check("datatypes.drawn-outputs-are-written", answers="BIN-DATATYPES-O", explores=True)
@rows(*make_drawn_rows("O", FP16="cast_fp32_fp16"))
def drawn_outputs_are_written(target: Target, model: Model) -> None:
    """Any binary output is written right, for JSON inputs."""
    _explore(target, model, "written", json=True)


@check("datatypes.drawn-tensors-survive", answers="BIN-DATATYPES-I", explores=True)
@rows(*make_drawn_rows("I", FP16="identity_fp16", string_length="string_length"))
def drawn_tensors_survive(target: Target, model: Model) -> None:
    """Any tensor comes back from binary data as binary data, whatever its bits."""
    _explore(target, model, "both", json=False)


def _explore(target: Target, model: Model, side: Side, *, json: bool) -> None:
    from conformance.roles import tensor_strategies  # and with it hypothesis: see `exploring`

    spec = model.role.inputs[0]
    drawn = tensor_strategies.tensors(spec.name, spec.datatype, spec.shape, json=json)
    explore(drawn, lambda tensor: expect_survival(target, model, [tensor], side))
