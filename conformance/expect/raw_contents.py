"""How a server reads and writes raw contents over gRPC, where the protocol leaves it open: byte order, BYTES framing.

The protocol names neither. What binary tensor data are over HTTP is advised; a server that keeps to another order in
both directions breaks no sentence, and its values cannot be compared.

Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformance.expect.expectation import expect
from conformance.expect.unmet import is_met
from conformance.roles.model import Model
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.outputs import Output
from conformance.wire.request import Form

PROBE_VALUES = (0x01020304, -2, 1)
PROBE_STRINGS = (b"one", b"", b"three")


def is_big_endian(target: GrpcTarget, model: Model) -> bool:
    """Whether raw contents have the most significant byte first, in requests and in answers.

    Args:
        target: the server.
        model: turns one INT32 tensor into FP32. One that changes nothing would hide the order.
    """
    sent = np.array(PROBE_VALUES, "<i4")
    return _is_turned(_returned(target, model, "json"), sent) and _is_turned(
        _returned(target, model, "binary"), sent.byteswap()
    )


def _returned(target: GrpcTarget, model: Model, send: Form) -> Output | None:
    """Return the output for the values that go out in a form."""
    reply = target.infer(model.request([model.tensor(PROBE_VALUES)], send=send))
    return reply.answer.output(model.role.outputs[0].name)


def _is_turned(output: Output | None, read: NDArray[np.int32]) -> bool:
    """Whether an output is what becomes of the integers that the server read; in raw contents we read it turned."""
    right = read.astype("<f4")
    if output is None or output.array is None or output.array.dtype != right.dtype:
        return False
    return output.array.tobytes() == (right.byteswap() if output.binary else right).tobytes()


def is_framed(target: GrpcTarget, model: Model, texts: Sequence[bytes] = PROBE_STRINGS) -> bool:
    """Whether raw BYTES elements go by a length of four bytes in front; the model returns them as they come."""
    tensors = [model.tensor(texts)]
    reply = target.infer(model.request(tensors, send="binary"))
    return is_met(lambda: expect(reply).tensors(model.expected(tensors), through_json=False))
