"""Refusal means refusal: the request is declined, and the server goes on answering. Over HTTP and gRPC alike."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.peer import Peer
from conformance.transport.unreachable import TargetLostError
from conformance.wire.request import Message
from conformance.wire.tensor import Tensor


def expect_refusal(target: Peer, model: Model, message: Message, fault: str = "") -> Reply:
    """Expect that a message is refused for its fault and that the server answers a good request right afterwards.

    Both go out on connections of their own. What the refusal looks like is judged by the areas `errors` and `grpc`, on
    the same messages.
    """
    reply = target.send(message, fresh=True)
    expect(reply).refused(fault)
    expect_alive(target, model)
    return reply


def expect_refusal_or_right(
    target: Peer, model: Model, message: Message, tensors: Sequence[Tensor], fault: str, *, must: str, should: str
) -> None:
    """Expect that a message is refused for its fault, or else that the tensors which it carries were understood.

    Args:
        target: where it goes.
        model: to which.
        message: on a connection of its own.
        tensors: what it carries.
        fault: what is wrong with it.
        must: the requirement that is broken by wrong tensors, or by no answer at all.
        should: the one that advises to refuse it.
    """
    reply = target.send(message, fresh=True)
    if reply.succeeded:
        expect(reply, must).tensors(model.expected(tensors))
    expect(reply, should if reply.succeeded else must).refused(fault)
    expect_alive(target, model)


def expect_alive(target: Peer, model: Model, requirement: str = "OIP-ALIVE") -> None:
    """Expect that the model answers a good request, on a fresh connection, as it did before.

    Args:
        target: that is asked.
        model: the same.
        requirement: that is broken where it does not: about what came before, a refusal, or what clients may send.
    """
    try:
        for request in target.good_requests(model):
            reply = target.send(target.message(request), fresh=True)
            if reply.succeeded:
                return
    except TargetLostError as lost:
        evidence = Reply(target.exchanges[-1])
        raise UnmetError("a server that goes on answering", str(lost), evidence, requirement=requirement) from lost
    raise UnmetError("a good request answered afterwards", escape_text(reply.outcome()), reply, requirement=requirement)


def is_refused(target: Peer, model: Model, reply: Reply) -> bool:
    """Say whether a request that a server need not serve was refused; the server has to go on answering.

    Raises:
        Unmet: it does not, or the call has neither an answer nor a status.
    """
    if attribution.attribute_call_end(reply):
        expect(reply).refused()
    if reply.is_refusal:
        expect_alive(target, model)
    return reply.is_refusal
