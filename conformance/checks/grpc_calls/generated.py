"""Checks on stored tensors that Hypothesis generated, sent in typed and in raw contents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.checks.support.controls import expect_contents
from conformance.checks.support.generated import expect_generated, make_generated_rows
from conformance.roles import roles
from conformance.roles.generated_tensors import Sending
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.request import Form

_OWN_REQUIREMENTS = {"BYTES": ("GRPC-RAW-BYTES", "GRPC-RAW"), "FP16": ("GRPC-FP16",), "BF16": ("GRPC-BF16",)}


def _list_typed_requirements(_: str) -> tuple[str, ...]:
    """Return the requirements on typed contents."""
    return ("GRPC-TYPED",)


def _list_raw_requirements(role: str) -> tuple[str, ...]:
    """Return the requirements on raw contents of the datatypes of a role."""
    model = roles.load()[role]
    datatypes = (model.inputs[0].datatype, model.outputs[0].datatype)
    return next((own for datatype, own in _OWN_REQUIREMENTS.items() if datatype in datatypes), ("GRPC-RAW",))


def _list_rows(sending: Sending, send: Form, requirements: Callable[[str], tuple[str, ...]]) -> list[Row]:
    form = sending.partition("-")[0]
    return [
        replace(row, id=f"{row.id}-{form}", values=(sending, send))
        for row in make_generated_rows(sending, requirements)
    ]


@check("grpc.generated-tensors-come-back", requirements=("GRPC-TYPED", "GRPC-RAW"), over=(GRPC,))
@rows(
    *_list_rows("typed-contents", "json", _list_typed_requirements),
    *_list_rows("raw-contents", "binary", _list_raw_requirements),
)
def generated_tensors_come_back(target: GrpcTarget, model: Model, sending: Sending, send: Form) -> None:
    """The server reads and writes the contents of tensors that Hypothesis generated."""
    expect_generated(model, sending, lambda tensor: expect_contents(target, model, [tensor], send))
