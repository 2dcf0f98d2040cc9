"""What has to be sent again to see a failure: its request alone, or what came before it and beside it, too."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.transport.exchange import Exchange, Reply
from conformance.transport.manner import PLAIN

# Steps in their order; what stands together in one was in flight at once, the request of the failure first.
Course = list[list[Exchange]]
# So many earlier requests of a check are sent again where any of them may have left something behind.
MOST = 50


def course(exchange: Exchange, sent: Sequence[Exchange], *, is_of_state: bool) -> Course:
    """Return the steps that lead to an exchange, its own the last.

    Args:
        exchange: that shows the failure.
        sent: all exchanges of the check, in order.
        is_of_state: whether the failure is about what an earlier request left behind, on any connection.
    """
    earlier = [one for one in sent if one.number < exchange.number and one.call != exchange.call]
    before = [one for one in earlier if exchange.connection and one.connection == exchange.connection]
    if is_of_state and not before:
        before = earlier[-MOST:]
    alike = [one for one in sent if one.call == exchange.call and one.number != exchange.number]
    in_turn = [one for one in alike if _is_in_turn(one, exchange)]
    before += [one for one in in_turn if one.number < exchange.number]
    return [*([one] for one in before), [exchange, *(one for one in alike if one not in in_turn)]]


def is_plain(steps: Course) -> bool:
    """Whether one request, sent in any way, shows the failure."""
    return len(steps) == 1 and len(steps[0]) == 1 and steps[0][0].manner == PLAIN


def _is_in_turn(one: Exchange, other: Exchange) -> bool:
    """Whether two exchanges of one call went over one connection of HTTP/1, where nothing is in flight at once."""
    return one.connection == other.connection != 0 and not Reply(one).is_over_grpc
