"""A server that ends: which row is failed for it, once, and what is said of those that cannot be judged any more.

A request whose connection closes and after which connections are refused has ended the server, as far as anybody can
know. Usually that row has failed already, by its own requirement. Where it has not, the row fails in which the
server is found gone. Where a network loses packets, or nothing was ever answered, nobody is failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.grpc_request import make_grpc_call
from conformance.wire.request import Message

ALIVE = "OIP-ALIVE"
ALIVE_LEGAL = "OIP-ALIVE-LEGAL"


@dataclass(slots=True)
class CrashTracker:
    """What is known of the end of one target.

    Attributes:
        is_one_of_several: other processes send requests, too, so that nobody knows whose ended the server.
        since: the row that ended it, or may have: its last request was not answered, and it failed.
    """

    target: Target
    is_one_of_several: bool = False
    since: str = ""
    _is_told: bool = False

    def blamed(self, lost: TargetLostError) -> UnmetError | None:
        """Return what is unmet in the row in which the target was lost; None where that says nothing of the row."""
        if not lost.has_died or self.since:
            return None
        before = _before(lost)
        if before is not None:
            return self._by_anyone(before) if self.is_one_of_several else before
        own = self.target.exchanges[-1:]
        last = Reply(own[0]) if own else Reply(self.target.last) if self.target.last else None
        is_own = bool(own) and own[0].status is None and not self.is_one_of_several
        after = "" if own or last is None else f" after {last.exchange.message.method} {last.exchange.message.path}"
        named = None if is_own else self._alive_after(last)
        return UnmetError(f"a server that goes on answering{after}", str(lost), last, requirement=named)

    def _alive_after(self, last: Reply | None) -> str:
        """Return the requirement of a server that is gone: what was answered without an error was no refusal."""
        is_legal = last is not None and last.succeeded and not self.is_one_of_several
        return ALIVE_LEGAL if is_legal else ALIVE

    def told(self, lost: TargetLostError) -> str:
        """Return why the target is gone, on one line."""
        return f"{lost}, since {self.since}" if lost.has_died and self.since else str(lost)

    def limit_to_crash(self, unmet: UnmetError) -> UnmetError:
        """Return what is unmet; where the server is gone, and others sent requests as well, no more than that it is."""
        if not self.is_one_of_several or unmet.reply is None or unmet.reply.status is not None:
            return unmet
        is_call = unmet.reply.is_over_grpc
        try:
            with self.target.scope("whether the target is still there"):
                self.target.send(make_grpc_call("ServerLive") if is_call else Message("/v2", method="GET"), fresh=True)
        except TargetLostError:
            return self._by_anyone(unmet)
        return unmet

    def note(self, row: str, *, has_failed: bool) -> None:
        """Note what a row that was judged says of the end."""
        if self._is_told:
            return
        if has_failed and self.target.lost:
            self.since, self._is_told = self.since or row, True
        elif self.target.exchanges:
            is_open = has_failed and self.target.exchanges[-1].status is None
            self.since = row if is_open else ""

    def _by_anyone(self, unmet: UnmetError) -> UnmetError:
        if unmet.reply is None or unmet.reply.status is None:
            unmet.requirement = ALIVE
        return unmet


def _before(lost: TargetLostError) -> UnmetError | None:
    """Return what was unmet already when a further request, which was to say more of it, found no server."""
    error: BaseException | None = lost
    while error is not None and not isinstance(error, UnmetError):
        error = error.__context__
    return error
