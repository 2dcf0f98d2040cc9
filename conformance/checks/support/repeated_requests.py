"""A wrong answer that is right when the same request comes once more shows what another request has left behind."""

from __future__ import annotations

from collections.abc import Callable

from conformance.expect.unmet import UnmetError, is_met
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer

ISOLATION = "OIP-ISOLATION"


def attribute_to_isolation(target: Peer, unmet: UnmetError, right: Callable[[Reply], object]) -> None:
    """Name OIP-ISOLATION where a good answer over HTTP is wrong, and the answer to the same request once more is right.

    Args:
        target: is asked again, on a connection of its own.
        unmet: what the first answer does not meet; its requirement is changed.
        right: raises `UnmetError` where an answer is wrong.
    """
    reply = unmet.reply
    if reply is None or not reply.succeeded or reply.is_over_grpc:
        return
    if is_met(lambda: right(target.send(reply.exchange.message, fresh=True))):
        unmet.requirement = ISOLATION
