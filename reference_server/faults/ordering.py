"""Tensors and their bytes in another order than the JSON says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reference_server.faults import fault
from reference_server.response import Octets


@fault("response.join", breaks=("BIN-ORD-O", "BIN-MIX-O", "BIN-EQ-O", "BIN-ENC-PACK-O", "CLS-COUNT", "OIP-ANSWER"))
def binary_outputs_in_reverse(original: Any, head: bytes, binary: Iterable[Octets]) -> bytes:
    """Binary data follow the JSON in the reverse of its order."""
    body: bytes = original(head, list(binary)[::-1])
    return body
