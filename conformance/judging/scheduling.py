"""Runs rows ahead of their turn on several connections, so that a run waits once for latency and not for each row.

    scheduler = ConcurrentScheduler(session, others, rows)
    results = [scheduler.judge(check, row) for check, row in rows]

The results are those of one row after another. Several sessions that share nothing but what discovery found run rows
ahead; the recording gets their exchanges when their turn comes. Rows that do not pass are run again alone, and that
result counts: no server fails for what many connections at once did to it. If the result alone differs, the
scheduler runs one row after another from there on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread

from conformance.judging.session import Session
from conformance.spec import ledger
from conformance.spec.check import Check, Row, format_key
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport.exchange import Call

# Rows under way or done before their turn, for each connection: enough that none waits, few enough to keep in memory.
ROWS_PER_CONNECTION = 2
# What a row takes of our own time for one exchange, roughly: more connections than fit into the latency wait for us.
OWN_EXCHANGE_S = 0.003
MIN_LATENCY_S = 0.01  # seconds; a target that answers faster is asked on one connection
MAX_CONNECTIONS = 16

_Judgement = tuple[CheckResult, list[Call]]


@dataclass(slots=True)
class _PendingRow:
    """A row whose turn comes; `done` is None as long as nobody judges it ahead."""

    check: Check
    row: Row
    done: Future[_Judgement] | None = None


@dataclass(slots=True)
class ConcurrentScheduler:
    """Judges the rows of a run in order, and as many ahead of their turn as there are other sessions.

    Attributes:
        alone: the session of the run; its target's journal keeps what counts.
        others: sessions with the same target and survey, which write nothing down.
        suffered: the first row that came to something else beside others than alone; empty where none did.
    """

    alone: Session
    others: Sequence[Session]
    suffered: str = ""
    _coming: deque[_PendingRow] = field(default_factory=deque)
    _tasks: SimpleQueue[_PendingRow | None] = field(default_factory=SimpleQueue)
    _threads: list[Thread] = field(default_factory=list)

    def expect(self, rows: Sequence[tuple[Check, Row]]) -> None:
        """Learn which rows will be judged, in order."""
        self._coming = deque(_PendingRow(check, row) for check, row in rows)

    def judge(self, check: Check, row: Row) -> CheckResult:
        """Return the result of a check on one row."""
        coming = self._next(check, row)
        if coming is None or self.suffered or not self.others or not is_concurrency_safe(check, row):
            self._come_to_rest()
            return self.alone.judge(check, row)
        self._send_ahead(coming)
        assert coming.done is not None  # noqa: S101 - it was just sent
        result, calls = coming.done.result()
        if not _is_simply_met(result):
            return self._judged_again(check, row, result)
        for call in calls:
            self.alone.target.record(call)
        return result

    def close(self) -> None:
        """Let go of the other sessions; what they have under way is not waited for."""
        for _ in self._threads:
            self._tasks.put(None)
        self._threads.clear()
        for session in self.others:
            session.close()

    # --- one after another ---

    def _next(self, check: Check, row: Row) -> _PendingRow | None:
        """Return the row among those that come, and forget those before it: something has left them out."""
        wanted = format_key(check.id, row.id)
        while self._coming:
            coming = self._coming.popleft()
            if format_key(coming.check.id, coming.row.id) == wanted:
                return coming
        return None

    def _judged_again(self, check: Check, row: Row, beside_others: CheckResult) -> CheckResult:
        self._come_to_rest()
        alone = self.alone.judge(check, row)
        if alone.outcome is not beside_others.outcome:
            self.suffered = format_key(check.id, row.id)
        return alone

    def _come_to_rest(self) -> None:
        """Wait until nothing is under way, and close the other connections: some servers have few, or one."""
        under_way = [coming.done for coming in self._coming if coming.done]
        if under_way:
            wait(under_way)
        if self._threads:
            for session in self.others:
                session.close()

    # --- beside each other ---

    def _send_ahead(self, first: _PendingRow) -> None:
        """Give out the row and those that follow it, up to the next that has to be judged alone."""
        self._begin()
        wanted = ROWS_PER_CONNECTION * len(self.others)
        for place, coming in enumerate([first, *self._coming]):
            if place >= wanted or not is_concurrency_safe(coming.check, coming.row):
                break
            if coming.done is None:
                coming.done = Future()
                self._tasks.put(coming)

    def _begin(self) -> None:
        if not self._threads:
            self._threads += [Thread(target=self._work, args=(session,), daemon=True) for session in self.others]
            for thread in self._threads:
                thread.start()

    def _work(self, session: Session) -> None:
        """Judge what is given out, until there is nothing more."""
        while (coming := self._tasks.get()) is not None and coming.done is not None:
            calls: list[Call] = []
            session.target.journal = calls.append
            try:
                coming.done.set_result((session.judge(coming.check, coming.row), calls))
            except BaseException as error:  # it belongs to whoever waits for the row
                coming.done.set_exception(error)


def is_concurrency_safe(check: Check, row: Row) -> bool:
    """Say whether a row can be judged beside others: not what is about state, hostile, or known to end servers."""
    entry = ledger.get_requirement(check.requirements(row)[0].removesuffix("/grpc"))
    is_alone = entry.area == "state" or entry.is_of_robustness or row.dangerous or check.of_survey or check.explores
    return not is_alone


def choose_connections(latency: float | None) -> int:
    """Return on how many connections to ask a target.

    Args:
        latency: seconds to the quickest of its answers; None where none came.
    """
    return 1 if latency is None or latency < MIN_LATENCY_S else min(MAX_CONNECTIONS, int(latency / OWN_EXCHANGE_S))


def _is_simply_met(result: CheckResult) -> bool:
    """Say whether nothing that others have done to it can have shaped a result."""
    if result.outcome is Outcome.NOT_APPLICABLE:
        return not result.exchanges
    return result.failure is None and result.outcome in (Outcome.PASS, Outcome.OBSERVED)
