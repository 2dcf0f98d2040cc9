"""Detects how a server encodes raw contents over gRPC: their byte order, and the length prefixes of BYTES elements.

The protocol defines neither. The suite advises the encoding of binary tensor data over HTTP. A server that uses another
byte order in requests and answers violates no sentence, but the suite cannot compare its values.

Source: Open Inference Protocol, gRPC, "Inference" and "Tensor Data".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.expect.difference import are_distinct
from conformance.expect.expectation import expect
from conformance.expect.unmet import is_met
from conformance.roles.model import Model
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.outputs import Output
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

PROBE_VALUES = (0x01020304, -2, 1)
PROBE_STRINGS = (b"one", b"", b"three")


def is_big_endian(target: GrpcTarget, model: Model) -> bool:
    """Whether a server reads and writes raw contents in big-endian byte order.

    `model`: a model that converts an INT32 tensor to FP32. An identity model would hide the byte order.
    """
    sent = model.tensor(PROBE_VALUES)
    turned = replace(sent, array=sent.array.byteswap())
    return _is_byte_swapped(_send_probe(target, model, "json"), *model.expected([sent])) and _is_byte_swapped(
        _send_probe(target, model, "binary"), *model.expected([turned])
    )


def _send_probe(target: GrpcTarget, model: Model, send: Form) -> Output | None:
    """Send the probe values as raw contents (`binary`) or typed contents (`json`), and return the output."""
    reply = target.infer(model.request([model.tensor(PROBE_VALUES)], send=send))
    return reply.answer.output(model.role.outputs[0].name)


def _is_byte_swapped(output: Output | None, right: Tensor) -> bool:
    """Whether an output contains these floats, with reversed bytes in raw contents."""
    if output is None or output.array is None or output.datatype != right.datatype:
        return False
    array = output.array.byteswap() if output.binary else output.array
    return not are_distinct(right, Tensor(right.name, right.datatype, array.shape, array))


def has_length_prefixes(target: GrpcTarget, model: Model, texts: Sequence[bytes] = PROBE_STRINGS) -> bool:
    """Whether an identity model returns raw BYTES elements, sent with length prefixes, in the same encoding."""
    tensors = [model.tensor(texts)]
    reply = target.infer(model.request(tensors, send="binary"))
    return is_met(lambda: expect(reply).tensors(model.expected(tensors), through_json=False))
