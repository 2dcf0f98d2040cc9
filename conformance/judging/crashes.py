"""Tracks crashes of the server: one row fails for a crash, and later rows get no verdict, with an explanation.

The suite assumes that a request crashed the server if its connection closes and later connections are refused, or find
no server (`Target.ends_server`). If the server comes back, the suite sends the request alone: only a request that ends
the server again and again is the cause. A row that did not expect the crash otherwise fails for its own requirement. No
row fails if the network loses packets, if the server never answered at all, or if it answered every request before it
ended: it may have been stopped.

Whether a crash violates OIP-ALIVE-LEGAL or OIP-ALIVE depends on the row that sent the request: a row about refusals
sends requests that no client may send.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from conformance.expect.unmet import UnmetError
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.target import SERVER_ENDS, Target
from conformance.transport.target_client import make_simple_request
from conformance.transport.unreachable import TargetLostError

ALIVE = "OIP-ALIVE"
ALIVE_LEGAL = "OIP-ALIVE-LEGAL"
EXPECTED = "a server that keeps answering"
# Requests of one row without an answer that are sent again alone.
MAX_SUSPECTS = 3
# Statuses of a gateway in place of its server; 503 has other causes as well.
GATEWAY_ERRORS = (502, 504)


@dataclass(slots=True)
class CrashTracker:
    """Tracks whether one target has crashed, and in which row.

    Attributes:
        is_one_of_several: whether other processes send requests as well, so that the cause of a crash is unknown.
        suspected: the failed row that crashed the server, or may have crashed it because the last request of the row
            got no answer; None if there is none.
    """

    target: Target
    is_one_of_several: bool = False
    suspected: Case | None = None
    _is_settled: bool = False
    _in_flight: tuple[Case, ...] = ()
    _was_legal_before: bool = True

    def find_violation(self, case: Case, lost: TargetLostError) -> UnmetError | None:
        """Return the violation of the row in which the target was lost, which is always one of a MUST.

        Return None if the server did not crash, if it has answered every request, or if an earlier row crashed it. A
        crash caused by a hostile request says nothing about other requirements.
        """
        if not lost.has_died or self.suspected or case.requirement.is_of_robustness:
            return None
        unmet = self._find_cause(lost, is_legal=sends_legal_requests(case))
        if unmet is None:
            return None
        entry = ledger.get_requirement(unmet.requirement or case.requirements[0])
        if entry.level != ledger.Level.MUST:
            unmet.requirement = ALIVE if entry.concern is ledger.Concern.REFUSAL else ALIVE_LEGAL
        unmet.ends_server = True
        return unmet

    def _find_cause(self, lost: TargetLostError, *, is_legal: bool) -> UnmetError | None:
        before = _find_earlier_error(lost)
        if before is not None and before.reply is not None and before.reply.status is not None:
            return before
        own = before.reply.exchange if before and before.reply else _find_first_unanswered(self.target.exchanges)
        last = Reply(own) if own else Reply(self.target.last) if self.target.last else None
        if last is None or last.status is not None:
            return None
        named = self._choose_requirement(is_legal=is_legal if own else self._was_legal_before)
        beside = f", or for a request in flight of {', '.join(case.label for case in self._in_flight)}"
        return UnmetError(f"{EXPECTED}{beside if self._in_flight else ''}", str(lost), last, requirement=named)

    def _choose_requirement(self, *, is_legal: bool) -> str:
        """Return the requirement that a crash violates: whether the request without an answer was legal decides."""
        return ALIVE_LEGAL if is_legal and not self.is_one_of_several else ALIVE

    def explain_loss(self, lost: TargetLostError) -> str:
        """Return one line that says why the target is unreachable."""
        if not lost.has_died or self.suspected is None:
            return str(lost)
        case = self.suspected
        return f"{lost}, since {case.label}"

    def find_repeatable_crash(self, case: Case) -> UnmetError | None:
        """Return the violation if a request of the row that got no answer ends the server; None if there is none.

        Raises:
            TargetLostError: the server has ended, and does not come back.
        """
        try:
            return self._repeat_suspects(case.key, is_legal=sends_legal_requests(case))
        except TargetLostError as lost:
            if lost.has_died and self.suspected is None:
                raise
            return None

    def _repeat_suspects(self, name: str, *, is_legal: bool) -> UnmetError | None:
        for place, exchange in enumerate(self._list_suspects()):
            scope = f"{name}, alone {place}"
            if not self.target.may_repeat(scope):
                break
            with self.target.scope(scope):
                reply = Reply(exchange)
                if self.is_one_of_several or exchange.note:  # sent otherwise, so that it cannot be repeated
                    self.target.send(make_simple_request(is_call=reply.is_over_grpc), fresh=True)
                elif self.target.ends_server(exchange.message):
                    named = self._choose_requirement(is_legal=is_legal)
                    actual = f"{reply.outcome()}; {SERVER_ENDS}"
                    return UnmetError(EXPECTED, actual, reply, requirement=named, ends_server=True)
        return None

    def _list_suspects(self) -> list[Exchange]:
        """Return different requests of the scope that got no answer; those sent in one piece first."""
        unanswered = (
            one for one in self.target.exchanges if Reply(one).has_ended_unanswered or one.status in GATEWAY_ERRORS
        )
        found = sorted(unanswered, key=lambda one: one.note)
        different = [one for place, one in enumerate(found) if one.message not in [e.message for e in found[:place]]]
        return different[:MAX_SUSPECTS]

    def record_row(self, case: Case, *, has_failed: bool) -> None:
        """Record whether a judged row crashed the server, or may have crashed it."""
        if self._is_settled:
            return
        if has_failed and self.target.lost:
            self.suspected, self._is_settled = self.suspected or case, True
        elif self.target.exchanges:
            is_open = has_failed and self.target.exchanges[-1].status is None
            self.suspected = case if is_open else None
            self.begin_row(case)

    def begin_row(self, case: Case, in_flight: Sequence[Case] = ()) -> None:
        """Note that the last request before a crash is one of this row, or one in flight of other rows."""
        self._was_legal_before = all(map(sends_legal_requests, (case, *in_flight)))
        self._in_flight = tuple(in_flight)


def sends_legal_requests(case: Case) -> bool:
    """Return whether a client may send the requests of a row: none of its requirements is about refusals."""
    concerns = (ledger.get_requirement(name).concern for name in case.requirements)
    return ledger.Concern.REFUSAL not in concerns


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
