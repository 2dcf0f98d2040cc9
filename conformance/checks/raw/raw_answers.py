"""What the checks of raw binary requests share: sending one, and judging its answer by that to a binary request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.checks.support.binary_sides import is_right_alone
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model
from conformance.roles.sample_values import make_sample_tensor
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor


def send_raw(target: Target, model: Model, tensor: Tensor) -> Reply:
    """Send a numeric tensor as a raw request."""
    return target.infer(model.raw(bytes(tensor.to_bytes())))


def expect_agreement(
    target: Target, model: Model, reply: Reply, *candidates: Tensor, requirement: str | None = None
) -> None:
    """Expect the answer that belongs to one of the tensors as input, or the one that a binary request gets.

    The right bytes at the end of the body will do, whatever the JSON in front says of them: that is for other checks.
    """
    unmet: list[UnmetError] = []
    for tensor in candidates:
        right = model.find_outputs([tensor])
        if reply.succeeded and reply.body.endswith(b"".join(bytes(output.to_bytes()) for output in right)):
            return
        try:
            expect(reply, requirement).tensors(right)
        except UnmetError as found:
            unmet.append(found)
        else:
            return
    if reply.succeeded and any(_answers_alike(target, model, reply, tensor) for tensor in candidates):
        return
    strings = [tensor for tensor in candidates if tensor.datatype == "BYTES"]
    if reply.succeeded and not all(is_right_alone(target, tensor, "written") for tensor in strings):
        raise BlockedError("BYTES alone are written wrong, too", unmet[0])
    raise BlockedError(NOTHING_TAKEN, unmet[0]) if not takes_any(target) else unmet[0]


NOTHING_TAKEN = "not even three bytes are taken as a raw request"


def takes_any(target: Target) -> bool:
    """Say whether the simplest of raw requests is answered; that it is, is a matter of RAW-HEADER-ZERO alone."""
    model = target.model("identity_uint8")
    return model is None or target.infer(model.raw(b"\x01\x02\x03")).succeeded


def _answers_alike(target: Target, model: Model, reply: Reply, tensor: Tensor) -> bool:
    full = target.infer(model.request([tensor], want="binary"))
    return full.succeeded and _gist(full) == _gist(reply)


def _gist(reply: Reply) -> Any:
    """Return what two answers with equal outputs have in common, whatever is wrong with both."""
    outputs = [(output.name, output.datatype, output.shape, output.binary) for output in reply.answer.outputs]
    return outputs, reply.body[reply.answer.json_end :]


def make_sample(model: Model, shape: Sequence[int] | None = None) -> Tensor:
    """Return a sample tensor, of the given shape or of the input's own; a batch of one for a batching model."""
    (tensor,) = model.items()
    return tensor if shape is None else make_sample_tensor(tensor.name, tensor.datatype, shape, model.salt)
