"""Detects how a server encodes raw contents over gRPC: their byte order, and the length prefixes of BYTES elements.

The protocol defines neither. The suite advises the encoding of binary tensor data over HTTP. A server that uses another
byte order in requests and answers violates no sentence, but the suite cannot compare its values.

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
    """Whether a server reads and writes raw contents in big-endian byte order.

    Args:
        target: the server.
        model: a model that converts an INT32 tensor to FP32. An identity model would hide the byte order.
    """
    sent = np.array(PROBE_VALUES, "<i4")
    return _is_byte_swapped(_send_probe(target, model, "json"), sent) and _is_byte_swapped(
        _send_probe(target, model, "binary"), sent.byteswap()
    )


def _send_probe(target: GrpcTarget, model: Model, send: Form) -> Output | None:
    """Send the probe values as raw contents (`binary`) or typed contents (`json`), and return the output."""
    reply = target.infer(model.request([model.tensor(PROBE_VALUES)], send=send))
    return reply.answer.output(model.role.outputs[0].name)


def _is_byte_swapped(output: Output | None, integers: NDArray[np.int32]) -> bool:
    """Whether an output contains the integers as FP32, with reversed bytes in raw contents."""
    right = integers.astype("<f4")
    if output is None or output.array is None or output.array.dtype != right.dtype:
        return False
    return output.array.tobytes() == (right.byteswap() if output.binary else right).tobytes()


def has_length_prefixes(target: GrpcTarget, model: Model, texts: Sequence[bytes] = PROBE_STRINGS) -> bool:
    """Whether an identity model returns raw BYTES elements, sent with length prefixes, in the same encoding."""
    tensors = [model.tensor(texts)]
    reply = target.infer(model.request(tensors, send="binary"))
    return is_met(lambda: expect(reply).tensors(model.expected(tensors), through_json=False))
