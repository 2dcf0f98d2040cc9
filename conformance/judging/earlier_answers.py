"""Whether a wrong tensor is that of an answer before: what a server keeps from one request and gives to the next."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Exchange, Reply
from conformance.wire.response import Output
from conformance.wire.tensor import find_first_difference

MAX_EARLIER_ANSWERS = 8  # answers that are looked at


def find_earlier_answer(unmet: UnmetError, exchanges: Sequence[Exchange]) -> str:
    """Return whose tensor came instead of the expected one, as the end of a message; empty where nobody's.

    Args:
        unmet: with the tensor that was expected, or none.
        exchanges: of the row, in order; those before the one that is wrong are looked at.
    """
    if unmet.tensor is None or unmet.reply is None:
        return ""
    name, wrong = unmet.tensor.name, unmet.reply.answer.output(unmet.tensor.name)
    number = unmet.reply.exchange.number
    before = [exchange for exchange in exchanges if exchange.number < number and exchange.status]
    for exchange in reversed(before[-MAX_EARLIER_ANSWERS:]):
        if wrong is not None and _is_same(wrong, Reply(exchange).answer.output(name)):
            behind = number - exchange.number
            return f"; it is the tensor of the answer {'before' if behind == 1 else f'{behind} requests before'}"
    return ""


def _is_same(one: Output, other: Output | None) -> bool:
    if other is None or one.array is None or other.array is None or not one.array.size:
        return False
    if (one.datatype, one.shape) != (other.datatype, other.shape):
        return False
    return find_first_difference(one.array, other.array, one.datatype) is None
