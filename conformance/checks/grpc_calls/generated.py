"""Checks on stored tensors that Hypothesis generated, sent in typed and in raw contents."""

from __future__ import annotations

from conformance.checks.support.generated import expect_generated, make_generated_rows
from conformance.checks.support.over_grpc import expect_return_over_grpc
from conformance.roles import roles
from conformance.roles.model import Model
from conformance.spec.check import check, rows
from conformance.spec.extensions import GRPC
from conformance.transport.grpc_target import GrpcTarget

_OWN_REQUIREMENTS = {"BYTES": ("GRPC-RAW-BYTES", "GRPC-RAW"), "FP16": ("GRPC-FP16",), "BF16": ("GRPC-BF16",)}


def _list_typed_requirements(_: str) -> tuple[str, ...]:
    """Return the requirements on typed contents."""
    return ("GRPC-TYPED",)


def _list_raw_requirements(role: str) -> tuple[str, ...]:
    """Return the requirements on raw contents of the datatypes of a role."""
    model = roles.load()[role]
    datatypes = (model.inputs[0].datatype, model.outputs[0].datatype)
    return next((own for datatype, own in _OWN_REQUIREMENTS.items() if datatype in datatypes), ("GRPC-RAW",))


@check("grpc.generated-tensors-come-back-typed", answers="GRPC-TYPED", over=(GRPC,))
@rows(*make_generated_rows("typed-contents", _list_typed_requirements))
def generated_tensors_come_back_typed(target: GrpcTarget, model: Model) -> None:
    """The server reads and writes typed contents of tensors that Hypothesis generated."""
    expect_generated(model, "typed-contents", lambda tensor: expect_return_over_grpc(target, model, [tensor], "json"))


@check("grpc.generated-tensors-come-back-raw", answers="GRPC-RAW", over=(GRPC,))
@rows(*make_generated_rows("raw-contents", _list_raw_requirements))
def generated_tensors_come_back_raw(target: GrpcTarget, model: Model) -> None:
    """The server reads and writes raw contents of tensors that Hypothesis generated."""
    expect_generated(model, "raw-contents", lambda tensor: expect_return_over_grpc(target, model, [tensor], "binary"))
