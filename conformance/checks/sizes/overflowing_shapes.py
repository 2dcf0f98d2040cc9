"""Shapes whose product is 0, or small, to whoever keeps 32 or 64 bits of it, and sizes to go with it.

Shapes like these have ended servers, so that their rows run only where that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.sizes.wrong_size_requests import claim_size
from conformance.expect.refusals import expect_refusal
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target


@check("sizes.shape-past-all-bodies-is-refused", answers="BIN-SIZE-WRONG")
@rows(
    *[
        Row(f"{name}-of-{size}-bytes", (shape, size), role=role, dangerous=True)
        for name, shape, role, size in (
            ("2-32-by-2-32", [2**32, 2**32], "rank2", 0),
            ("2-32-by-2-32", [2**32, 2**32], "rank2", 4),
            ("2-63-by-2", [2**63, 2], "rank2", 0),
            ("2-62-of-four-bytes", [2**62], "identity_int32", 0),
            ("2-62-and-3-of-four-bytes", [2**62 + 3], "identity_int32", 12),
            ("2-30-of-four-bytes", [2**30], "identity_int32", 0),
            ("2-16-by-2-16", [2**16, 2**16], "rank2", 0),
            ("2-21-cubed-by-two", [2**21, 2**22, 2**21], "rank3", 0),
            ("strings-2-32-by-2-32", [2**32, 2**32], "rank2_bytes", 0),
            ("strings-2-62", [2**62], "identity_bytes", 0),
        )
    ],
)
def shape_past_all_bodies_is_refused(target: Target, model: Model, shape: Sequence[int], size: int) -> None:
    """A shape of more elements than any body holds is refused, whatever its product is in 32 or 64 bits."""
    message = claim_size(size, bytes(range(1, size + 1)), shape)(model)
    expect_refusal(target, model, message, f"a shape of {list(shape)} beside {size} bytes")
