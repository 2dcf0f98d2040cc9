"""The order of binary data: that of the JSON before it, whatever the model declares."""

from __future__ import annotations

from itertools import permutations

from conformance.check import Row, check, rows
from conformance.expect import expect
from conformance.roles import Model
from conformance.target.target import Target

OUTPUTS = ("OUT_INT64", "OUT_BOOL", "OUT_FP32", "OUT_BYTES")


@check("ordering.response-follows-its-json", answers="BIN-ORD-O", role="multi")
@rows(*[Row("-".join(name[4:] for name in order), (order,)) for order in permutations(OUTPUTS, 3)])
def response_follows_its_json(target: Target, multi: Model, order: tuple[str, ...]) -> None:
    """Tensor bytes follow the order in which the answer's own JSON lists the outputs."""
    reply = target.infer(multi.request(send="json", want="binary", outputs=order))
    expect(reply).tensors([tensor for tensor in multi.expected(multi.sample()) if tensor.name in order])
