"""Tracks crashes of the server: one row fails for a crash, and later rows get no verdict, with an explanation.

The suite assumes that a request crashed the server if its connection closes and later connections are refused. Usually
the row of this request has already failed its own requirement. Otherwise the row in which the suite notices the crash
fails. No row fails if the network loses packets, or if the server never answered at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from conformance.expect.unmet import UnmetError
from conformance.transport.exchange import Exchange, FailureKind, Reply
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.grpc_request import make_grpc_call
from conformance.wire.request import Message

ALIVE = "OIP-ALIVE"
ALIVE_LEGAL = "OIP-ALIVE-LEGAL"


@dataclass(slots=True)
class CrashTracker:
    """Tracks whether one target has crashed, and in which row.

    Attributes:
        is_one_of_several: whether other processes send requests as well, so that the cause of a crash is unknown.
        suspected_row: the failed row that crashed the server, or may have crashed it because the last request of the
            row got no answer; empty if there is none.
    """

    target: Target
    is_one_of_several: bool = False
    suspected_row: str = ""
    _is_settled: bool = False

    def find_violation(self, lost: TargetLostError) -> UnmetError | None:
        """Return the violation of the row in which the target was lost.

        Return None if the server did not crash, or if an earlier row crashed it.
        """
        if not lost.has_died or self.suspected_row:
            return None
        before = _find_earlier_error(lost)
        if before is not None:
            return self._attribute_to_any_process(before) if self.is_one_of_several else before
        own = _find_first_unanswered(self.target.exchanges)
        last = Reply(own) if own else Reply(self.target.last) if self.target.last else None
        is_own = own is not None and own.status is None and not self.is_one_of_several
        after = "" if own or last is None else f" after {last.exchange.message.method} {last.exchange.message.path}"
        named = None if is_own else self._choose_crash_requirement(last)
        return UnmetError(f"a server that keeps answering{after}", str(lost), last, requirement=named)

    def _choose_crash_requirement(self, last: Reply | None) -> str:
        """Return the requirement that a crash violates; it depends on whether the last request succeeded."""
        is_legal = last is not None and last.succeeded and not self.is_one_of_several
        return ALIVE_LEGAL if is_legal else ALIVE

    def explain_loss(self, lost: TargetLostError) -> str:
        """Return one line that says why the target is unreachable."""
        return f"{lost}, since {self.suspected_row}" if lost.has_died and self.suspected_row else str(lost)

    def attribute_to_crash(self, unmet: UnmetError) -> UnmetError:
        """Attribute an error to a crash if its request got no answer and the server is unreachable; return the error.

        An error is attributed only if other processes send requests as well, which may have crashed the server.
        """
        if not self.is_one_of_several or unmet.reply is None or unmet.reply.status is not None:
            return unmet
        return unmet if self._find_target_loss(unmet.reply) is None else self._attribute_to_any_process(unmet)

    def find_crash_of_blocking_request(self, unmet: UnmetError | None) -> TargetLostError | None:
        """Return why the target is unreachable if the server crashed on the request that blocks a row, else None.

        A server that stops slowly may still accept this request. Then the row is blocked before the crash is visible.
        """
        if unmet is None or unmet.reply is None or not unmet.reply.has_failed(FailureKind.CLOSED, FailureKind.BROKEN):
            return None
        return self._find_target_loss(unmet.reply)

    def _find_target_loss(self, reply: Reply) -> TargetLostError | None:
        """Return why the target is unreachable after a request without an answer; None if the target still answers."""
        is_call = reply.is_over_grpc
        try:
            with self.target.scope("whether the target is still there"):
                self.target.send(make_grpc_call("ServerLive") if is_call else Message("/v2", method="GET"), fresh=True)
        except TargetLostError as lost:
            return lost
        return None

    def record_row(self, row: str, *, has_failed: bool) -> None:
        """Record whether a judged row crashed the server, or may have crashed it."""
        if self._is_settled:
            return
        if has_failed and self.target.lost:
            self.suspected_row, self._is_settled = self.suspected_row or row, True
        elif self.target.exchanges:
            is_open = has_failed and self.target.exchanges[-1].status is None
            self.suspected_row = row if is_open else ""

    def _attribute_to_any_process(self, unmet: UnmetError) -> UnmetError:
        """Attribute an error without an answer to `OIP-ALIVE`, because any process may have crashed the server."""
        if unmet.reply is None or unmet.reply.status is None:
            unmet.requirement = ALIVE
        return unmet


def _find_first_unanswered(exchanges: Sequence[Exchange]) -> Exchange | None:
    """Return the first of the unanswered exchanges that end the list, or the last exchange if it was answered.

    The first one is the suspect: a server that is stopping may still accept later requests.
    """
    unanswered = list(takewhile(lambda one: one.status is None, reversed(exchanges)))
    return unanswered[-1] if unanswered else exchanges[-1] if exchanges else None


def _find_earlier_error(lost: TargetLostError) -> UnmetError | None:
    """Return the `UnmetError` that was being handled when the target was lost, or None.

    Of several such errors, the first one raised whose request had no answer is returned.
    """
    found, error = list[UnmetError](), lost.__context__
    while error is not None:
        found += [error] if isinstance(error, UnmetError) else []
        error = error.__context__
    unanswered = [one for one in found if one.reply is not None and one.reply.status is None]
    return unanswered[-1] if unanswered else found[0] if found else None
