"""The requests that reproduce a failure: the failing request, and earlier or concurrent requests if they matter."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.transport.exchange import Exchange, Reply
from conformance.transport.send_options import PLAIN

# Steps in order; the exchanges of one step were in flight at once, with the failing request first.
Reproduction = list[list[Exchange]]
# The number of earlier requests of a check to repeat if any of them may have changed the server's state.
MAX_EARLIER_REQUESTS = 50


def build_reproduction(
    exchange: Exchange, sent: Sequence[Exchange], *, since: int | None = None, is_about_state: bool = False
) -> Reproduction:
    """Return the steps that lead to an exchange; a step is a list of requests sent at the same time.

    The last step begins with the exchange.

    Args:
        exchange: the exchange that shows the failure.
        sent: all exchanges of the row, in order.
        since: the number of the first exchange that the steps repeat; None if the check does not say which it is.
        is_about_state: whether an earlier request, on any connection, may have left state that causes the failure.
    """
    earlier = [one for one in sent if one.number < exchange.number and one.call != exchange.call]
    if since is not None:
        before = [one for one in earlier if one.number >= since]
    else:
        before = [one for one in earlier if exchange.connection and one.connection == exchange.connection]
    if is_about_state and not before:
        before = earlier[-MAX_EARLIER_REQUESTS:]
    of_its_call = [one for one in sent if one.call == exchange.call and one.number != exchange.number]
    in_turn = [one for one in of_its_call if _is_sequential(one, exchange)]
    before += [one for one in in_turn if one.number < exchange.number]
    return [*_group_into_steps(before), [exchange, *(one for one in of_its_call if one not in in_turn)]]


def _group_into_steps(before: Sequence[Exchange]) -> Reproduction:
    """Group exchanges into steps, in order; concurrent exchanges share a step."""
    steps: Reproduction = []
    for one in before:
        if steps and steps[-1][0].call == one.call and not _is_sequential(steps[-1][0], one):
            steps[-1].append(one)
        else:
            steps.append([one])
    return steps


def is_single_request(steps: Reproduction) -> bool:
    """Whether one request with default send options reproduces the failure."""
    return len(steps) == 1 and len(steps[0]) == 1 and steps[0][0].send_options == PLAIN


def _is_sequential(one: Exchange, other: Exchange) -> bool:
    """Whether two exchanges were sent one after the other on one HTTP/1 connection, without pipelining."""
    is_shared = one.connection == other.connection != 0 and not Reply(one).is_over_grpc
    return is_shared and not one.send_options.pipelined
