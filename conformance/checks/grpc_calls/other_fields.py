"""Contents in the field of another datatype: the documents do so themselves, so nobody has to refuse them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from conformance.checks.support.over_grpc import chain_edits, expect_right, require_reading, set_typed
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.spec.fit import Fit
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.grpc_request import Edit, Pb, make_infer_message
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor

# Datatype -> field of another one, what it holds, and the elements that these are.
OTHER_FIELDS: tuple[tuple[str, str, str, tuple[int | float, ...]], ...] = (
    ("uint32-as-in-the-documents", "documented_scores", "int_contents", (4, 1, 3, 2)),
    ("uint32-in-int", "identity_uint32", "int_contents", (3, 1, 2)),
    ("int32-in-uint", "identity_int32", "uint_contents", (3, 1, 2)),
    ("int64-in-int", "identity_int64", "int_contents", (3, 1, 2)),
    ("uint64-in-uint", "identity_uint64", "uint_contents", (3, 1, 2)),
    ("fp32-in-int", "identity_fp32", "int_contents", (3, 1, 2)),
    ("fp32-in-fp64", "identity_fp32", "fp64_contents", (1.5, -2.25, 3.0)),
    ("fp64-in-fp32", "identity_fp64", "fp32_contents", (1.5, -2.25, 3.0)),
    ("fp16-in-fp32", "identity_fp16", "fp32_contents", (1.5, -2.25, 3.0)),
    ("bool-in-int", "identity_bool", "int_contents", (1, 0, 1)),
)
# Datatype of the first input of a deployed model -> field of another one, and what that holds.
_OWN: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("UINT8", "UINT16", "UINT32", "INT64"), ("int_contents", "<i4")),
    **dict.fromkeys(("INT8", "INT16", "INT32"), ("int64_contents", "<i8")),
    "UINT64": ("uint_contents", "<u4"),
    "FP32": ("fp64_contents", "<f8"),
    "FP64": ("fp32_contents", "<f4"),
}


@check("grpc.another-field-is-refused-or-read", answers="GRPC-OTHER-FIELD", over=(GRPC,))
@rows(
    *[Row(identity, (field, values), role=role) for identity, role, field, values in OTHER_FIELDS],
    Row("own", (None, ()), fit=Fit(inputs=frozenset(_OWN), is_json=True)),
)
def another_field_is_refused_or_read(
    target: GrpcTarget, model: Model, field: str | None, values: tuple[int | float, ...]
) -> str:
    """Contents in the field of another datatype are refused, or are the values that they are."""
    if field is None:
        tensors = require_reading(model)
        message = make_infer_message(model.request(tensors, send="json"), _in_another_field(tensors[0]))
        return _expect_refused_or_read(target, model, message, tensors)
    (spec,) = model.role.inputs
    shape = (2, 2) if model.role.compute == "table" else (3,)
    right = Tensor.of(spec.name, spec.datatype, list(map(bool, values)) if spec.datatype == "BOOL" else values, shape)
    message = make_infer_message(model.request([right]), chain_edits(_no_raw, set_typed(field, *values)))
    return _expect_refused_or_read(target, model, message, [right])


def _in_another_field(tensor: Tensor) -> Edit:
    """Return an edit that moves the contents of the first input into the field of another datatype.

    Raises:
        NotApplicable: that does not hold them.
    """
    if tensor.datatype not in _OWN:
        raise NotApplicableError(f"no other field holds {tensor.datatype}")
    field, dtype = _OWN[tensor.datatype]
    elements = tensor.array.reshape(-1)
    if not np.array_equal(elements.astype(dtype), elements):
        raise NotApplicableError(f"{field} does not hold the elements of {tensor.name}")
    return set_typed(field, *elements.tolist())


def _expect_refused_or_read(target: GrpcTarget, model: Model, message: Message, tensors: Sequence[Tensor]) -> str:
    reply = target.send(message, fresh=True)
    if is_refused(target, model, reply):
        return f"refused: {reply.outcome()}"
    expect_right(reply, model, tensors)
    return "read"


def _no_raw(request: Pb) -> None:
    del request.raw_input_contents[:]
