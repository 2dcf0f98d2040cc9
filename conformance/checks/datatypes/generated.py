"""Checks with stored tensors that Hypothesis generated once: as binary inputs, as binary outputs, and as both."""

from __future__ import annotations

from conformance.checks.datatypes.half_floats import FP32_ALSO_WRONG, is_fp32_right, is_half_float_read_right
from conformance.checks.support.controls import (
    SIDES,
    Side,
    expect_both_sides,
    expect_right,
    expect_side,
    is_right_alone,
    is_side_right,
)
from conformance.checks.support.generated import SEVERAL_DIMENSIONS, expect_generated, make_generated_rows
from conformance.expect.unmet import BlockedError, UnmetError, block_if
from conformance.roles import roles
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

_DATATYPES_WITH_REQUIREMENT = ("BOOL", "BYTES", "BF16")  # datatypes with a requirement of their own
_HALF_DATATYPES = ("FP16", "BF16")


def _list_requirements(role: str, direction: str) -> tuple[str, ...]:
    """Return the requirements on the inputs (direction I) or outputs (O) of a role."""
    model = roles.load()[role]
    datatype = (model.outputs if direction == "O" else model.inputs)[0].datatype
    own = f"BIN-{datatype if datatype in _DATATYPES_WITH_REQUIREMENT else 'DATATYPES'}-{direction}"
    return (own, f"BIN-ROW-MAJOR-{direction}") if role in SEVERAL_DIMENSIONS else (own,)


def _list_read_requirements(role: str) -> tuple[str, ...]:
    """Return the requirements on the inputs of a role."""
    return _list_requirements(role, "I")


def _list_written_requirements(role: str) -> tuple[str, ...]:
    """Return the requirements on the outputs of a role."""
    return _list_requirements(role, "O")


def _list_requirements_of_both_sides(role: str) -> tuple[str, ...]:
    """Return the requirements on a role whose inputs and outputs are both binary data."""
    if _is_identity(role):
        return (*_list_read_requirements(role), *_list_written_requirements(role))
    return _list_written_requirements(role) if role.startswith("cast_fp32") else _list_read_requirements(role)


def _is_identity(role: str) -> bool:
    """Say whether a role returns its inputs unchanged."""
    return roles.load()[role].compute == "identity"


@check("datatypes.generated-inputs-are-read", requirements="BIN-DATATYPES-I")
@rows(*make_generated_rows("read", _list_read_requirements))
def generated_inputs_are_read(target: Target, model: Model) -> None:
    """The server correctly reads binary inputs that Hypothesis generated; its JSON outputs show the values."""
    expect_generated(model, "read", lambda tensor: _expect_one_side(target, model, tensor, "read"))


@check("datatypes.generated-outputs-are-written", requirements="BIN-DATATYPES-O")
@rows(*make_generated_rows("written", _list_written_requirements))
def generated_outputs_are_written(target: Target, model: Model) -> None:
    """The server correctly writes binary outputs for JSON inputs that Hypothesis generated."""
    expect_generated(model, "written", lambda tensor: _expect_one_side(target, model, tensor, "written"))


@check("datatypes.generated-tensors-survive", requirements=("BIN-DATATYPES-I", "BIN-DATATYPES-O"))
@rows(*make_generated_rows("both", _list_requirements_of_both_sides))
def generated_tensors_survive(target: Target, model: Model) -> None:
    """The server changes no bit of tensors that Hypothesis generated, if inputs and outputs are binary data."""
    expect_generated(model, "both", lambda tensor: _expect_both_sides(target, model, tensor))


def _expect_one_side(target: Target, model: Model, tensor: Tensor, side: Side) -> None:
    """Expect correct outputs, with the inputs or the outputs (`side`) as binary data.

    A failure that is due to the order of dimensions is attributed to that order.
    """
    try:
        expect_side(target, model, [tensor], side)
    except UnmetError as unmet:
        _attribute_to_dimension_order(target, model, tensor, side, unmet)
        raise


def _attribute_to_dimension_order(target: Target, model: Model, tensor: Tensor, side: Side, unmet: UnmetError) -> None:
    """Attribute the failure of a tensor with several dimensions to their order, unless there is a simpler cause.

    Raises:
        BlockedError: the flattened tensor fails as well, or the request fails without any binary data.
    """
    if model.role.name not in SEVERAL_DIMENSIONS:
        return
    if not is_right_alone(target, tensor, side):
        raise BlockedError(f"the flattened {tensor.datatype} tensor is also wrong", unmet) from None
    if not is_side_right(target, model, [tensor], "neither"):
        raise BlockedError("the answer is also wrong without binary data", unmet) from None
    unmet.requirement = unmet.requirement or f"BIN-ROW-MAJOR-{'O' if side == 'written' else 'I'}"


def _expect_both_sides(target: Target, model: Model, tensor: Tensor) -> None:
    """Expect correct outputs with binary data on both sides: the same tensor, or its cast to another datatype."""
    requirement = _list_written_requirements(model.role.name)[-1]
    if model.role.compute == "cast":
        half_floats = tensor.array
        with block_if(lambda: not is_fp32_right(target, half_floats), FP32_ALSO_WRONG):
            expect_right(target, model, [tensor], **SIDES["both"])
    elif model.role.compute != "identity":
        expect_right(target, model, [tensor], **SIDES["both"])
    elif tensor.datatype in _HALF_DATATYPES:
        _expect_half_floats_return(target, model, tensor, requirement)
    else:
        try:
            expect_both_sides(target, model, [tensor], requirement)
        except UnmetError as unmet:
            _attribute_to_dimension_order(target, model, tensor, "both", unmet)
            raise


def _expect_half_floats_return(target: Target, model: Model, tensor: Tensor, written: str) -> None:
    """Expect 16-bit floats to return unchanged.

    If a cast shows that the server reads the floats correctly, a failure violates the requirement `written`.
    """
    try:
        expect_right(target, model, [tensor], **SIDES["both"])
    except UnmetError as unmet:
        if is_half_float_read_right(target, tensor, unmet):
            unmet.requirement = written
        raise
