"""Elements of JSON data of another type than their datatype's: coerced or refused, as the server likes.

Where coercion has several right results all of them stand here; where it has too many, as for a text among booleans or
a number among strings, there is no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.checks.support.datatypes import identity
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import Unmet, blocked_where, holds
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# datatype, an element of its own type, the one that is not, and what may become of it.
ELEMENTS: tuple[tuple[str, str, Any, Any, tuple[Any, ...]], ...] = (
    ("fraction", "UINT32", 5, 1.5, (1, 2)),
    ("fraction", "INT64", -5, -2.5, (-2, -3)),
    ("true", "INT32", 5, True, (1,)),
    ("digits-in-a-string", "INT32", 5, "7", (7,)),
    ("digits-in-a-string", "UINT8", 5, "7", (7,)),
    ("one", "BOOL", False, 1, (True,)),
    ("zero", "BOOL", True, 0, (False,)),
    ("decimal-in-a-string", "FP32", 0.5, "1.5", (1.5,)),
    ("true", "FP64", 0.5, True, (1.0,)),
)


@check("json.element-of-another-type-is-coerced-or-refused", answers="OIP-COERCE")
@rows(
    *[
        Row(f"{kind}-among-{datatype}", (own, other, values), role=identity(datatype))
        for kind, datatype, own, other, values in ELEMENTS
    ]
)
def element_of_another_type_is_coerced_or_refused(
    target: Target, model: Model, own: Any, other: Any, values: tuple[Any, ...]
) -> str:
    """An element of JSON data of another type than its datatype's is coerced to that, or the request is refused."""
    plain = model.request([model.tensor([own, own, own])], send="json")
    reply = target.send(plain.edited(lambda document: document["inputs"][0].update(data=[own, other, own])), fresh=True)
    if is_refused(target, model, reply):
        return f"refused with {reply.status}"
    coerced = [model.expected([model.tensor([own, value, own])]) for value in values]

    def is_wrong_without() -> bool:
        right = model.expected([model.tensor([own, own, own])])
        return not holds(lambda: expect(target.send(plain.message(), fresh=True)).tensors(right))

    with blocked_where(is_wrong_without, "elements of its own type are wrong, too"):
        wrong = [unmet for expected in coerced if (unmet := _unmet(reply, expected))]
        if len(wrong) == len(coerced):
            raise wrong[0]
    return "coerced"


def _unmet(reply: Reply, expected: Sequence[Tensor]) -> Unmet | None:
    try:
        expect(reply, "OIP-COERCE").tensors(expected)
    except Unmet as unmet:
        return unmet
    return None
