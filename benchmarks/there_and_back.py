"""`python -m benchmarks.there_and_back URL SIZE`: a binary FP32 tensor of SIZE bytes sent, answered and compared.

Prints the most memory that this took, in MB.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from benchmarks.children import most_memory
from conformance.expect.expectation import expect
from conformance.transport import settings
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor


def main(url: str, size: int) -> None:
    """Send, read, decode, compare."""
    wide = replace(settings.make_settings(url, timeout=300), max_answer=size + (1 << 20))
    target = Target(wide, {"identity_fp32": "identity_fp32"})
    model = target.model("identity_fp32")
    assert model is not None
    values = np.arange(size // 4, dtype=np.float32)
    tensor = Tensor("INPUT", "FP32", values.shape, values)
    reply = target.infer(model.request([tensor], want="binary"))
    expect(reply).tensors([Tensor("OUTPUT", "FP32", values.shape, values)])
    target.close()
    print(most_memory())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
