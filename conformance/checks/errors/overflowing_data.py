"""JSON data under shapes whose product is 0, or small, to whoever keeps 64 bits of it; they have ended servers."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.errors.impossible_requests import edit_first_input
from conformance.expect.refusals import expect_refusal
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.transport.target import Target


@check("errors.data-that-fill-no-such-shape-are-refused", answers="OIP-REFUSAL")
@rows(
    *[
        Row(name, (shape, data), role=role, dangerous=True)
        for name, shape, data, role in (
            ("2-32-by-2-32-of-none", [2**32, 2**32], [], "rank2"),
            ("2-32-by-2-32-of-one", [2**32, 2**32], [1], "rank2"),
            ("2-63-by-2-of-none", [2**63, 2], [], "rank2"),
            ("2-32-and-1-of-one", [2**32 + 1], [7], "identity_int32"),
            ("2-64-of-none", [2**64], [], "identity_int32"),
            ("strings-2-64-and-1-of-one", [2**64 + 1], ["a"], "identity_bytes"),
        )
    ]
)
def data_that_fill_no_such_shape_are_refused(
    target: Target, model: Model, shape: Sequence[int], data: Sequence[object]
) -> None:
    """JSON data of no or one element under a shape of more than any body holds are refused."""
    message = edit_first_input(shape=list(shape), data=list(data))(model)
    expect_refusal(target, model, message, f"{len(data)} elements for the shape {list(shape)}")
