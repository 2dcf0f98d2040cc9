"""Runs rows ahead of their turn on several connections, so that the latencies of rows overlap.

    scheduler = ConcurrentScheduler(session, others)
    scheduler.expect_rows(rows)
    results = [scheduler.judge(case) for case in rows]

The results are the same as those of a sequential run. Several sessions, which share only the discovery result, run rows
early, a block of rows at a time: the longest first, and the rows that must run alone when all others of the block have
ended. The exchanges of a row are recorded when its turn comes. Rows that do not pass are run again alone, and only the
second result counts, so that no server fails because of concurrent load. If the second result differs from the first,
the scheduler runs all further rows sequentially.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread

from conformance.judging.control_checks import STATE_REQUIREMENTS
from conformance.judging.session import Session
from conformance.spec import ledger
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.transport.broken_request import is_retryable
from conformance.transport.exchange import Call, Reply

# Number of rows of a block: enough to avoid idle time, few enough to keep in memory.
BLOCK_ROWS = 400
# Inferences of a row: of checks with many, and of the other checks. Measured with `quick`, with probes and company.
INFERENCES: Mapping[str, float] = {
    "walk.every-exchange-is-right": 45.0,
    "walk.each-value-is-right-alone": 4.5,
    "grpc.every-call-is-right": 45.0,
    "grpc.each-value-is-right-alone": 4.5,
}
USUAL_INFERENCES = 1.6
# Approximate CPU time of the suite per exchange. More than (latency / this time) connections would wait for the suite.
OWN_EXCHANGE_S = 0.003
MIN_LATENCY_S = 0.01  # a target that answers faster is judged on one connection
MAX_CONNECTIONS = 16

_Judgement = tuple[CheckResult, list[Call]]


@dataclass(slots=True)
class _PendingRow:
    """A row that the run has not reached yet; `judgement` is None until another session starts the row."""

    case: Case
    judgement: Future[_Judgement] | None = None


@dataclass(slots=True)
class ConcurrentScheduler:
    """Judges the rows of a run in order, and runs rows ahead of their turn in other sessions.

    Attributes:
        main_session: runs rows alone; the journal of its target records the exchanges that count.
        other_sessions: sessions with the same target and discovery result, which record nothing.
        disturbed_row: the first row whose outcome differed when the row ran again alone; empty if there is none.
    """

    main_session: Session
    other_sessions: Sequence[Session]
    disturbed_row: str = ""
    _pending: deque[_PendingRow] = field(default_factory=deque)
    _tasks: SimpleQueue[_PendingRow | None] = field(default_factory=SimpleQueue)
    _threads: list[Thread] = field(default_factory=list)

    def expect_rows(self, rows: Sequence[Case]) -> None:
        """Set the rows that will be judged, in order."""
        self._pending = deque(map(_PendingRow, rows))

    def judge(self, case: Case) -> CheckResult:
        """Return the result of a check on one row."""
        pending = self._pop_pending_row(case)
        if pending is None or self.disturbed_row or not self.other_sessions or not is_concurrency_safe(case):
            self._wait_for_other_sessions()
            return self.main_session.judge(case)
        self._queue_rows(pending)
        assert pending.judgement is not None  # noqa: S101 - it was just queued
        result, calls = pending.judgement.result()
        if not _is_unaffected(result, calls):
            return self._judge_alone(case, result)
        for call in calls:
            self.main_session.target.record(call)
        return result

    @property
    def waited_s(self) -> float:
        """The seconds that the concurrent sessions waited for answers that never arrived completely."""
        return sum(session.target.waited_s for session in self.other_sessions)

    def close(self) -> None:
        """Close the other sessions without waiting for their unfinished rows."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for _ in self._threads:
            self._tasks.put(None)
        self._threads.clear()
        for session in self.other_sessions:
            session.close()

    # --- sequential ---

    def _pop_pending_row(self, case: Case) -> _PendingRow | None:
        """Remove and return the pending entry of a row; also remove the entries before it, whose rows were skipped."""
        while self._pending:
            pending = self._pending.popleft()
            if pending.case.key == case.key:
                return pending
        return None

    def _judge_alone(self, case: Case, concurrent_result: CheckResult) -> CheckResult:
        """Run a row again alone and return the new result; note whether it differs from the concurrent result."""
        self._wait_for_other_sessions()
        alone = self.main_session.judge(case)
        is_short = alone.has_reason(ReasonKind.SHORT_WAIT) or concurrent_result.has_reason(ReasonKind.SHORT_WAIT)
        if alone.outcome is not concurrent_result.outcome and not is_short:
            self.disturbed_row = case.key
        return alone

    def _wait_for_other_sessions(self) -> None:
        """Wait for unfinished rows and close the other connections, because some servers accept only one or a few."""
        unfinished = [pending.judgement for pending in self._pending if pending.judgement]
        if unfinished:
            wait(unfinished)
        if self._threads:
            for session in self.other_sessions:
                session.close()

    # --- concurrent ---

    def _queue_rows(self, first: _PendingRow) -> None:
        """Queue the block that begins with a row, without the rows that must run alone; do nothing if it is queued."""
        if first.judgement is not None:
            return
        self._start_threads()
        block = [first, *islice(self._pending, BLOCK_ROWS - 1)]
        safe = [one for one in block if is_concurrency_safe(one.case)]
        for pending in sorted(safe, key=lambda one: -estimate_inferences([one.case])):
            pending.judgement = Future()
            self._tasks.put(pending)

    def _start_threads(self) -> None:
        if not self._threads:
            self._threads += [
                Thread(target=self._run_worker, args=(session,), daemon=True) for session in self.other_sessions
            ]
            for thread in self._threads:
                thread.start()

    def _run_worker(self, session: Session) -> None:
        """Judge queued rows until the queue is closed."""
        while (pending := self._tasks.get()) is not None and pending.judgement is not None:
            calls: list[Call] = []
            session.target.journal = calls.append
            try:
                pending.judgement.set_result((session.judge(pending.case), calls))
            except BaseException as error:  # re-raised in the thread that waits for the row
                pending.judgement.set_exception(error)


def is_concurrency_safe(case: Case) -> bool:
    """Return whether a row may run concurrently.

    Rows about one connection may run concurrently, because each session has its own connections. The following rows
    must run alone: rows about discovery or about state that earlier requests leave, rows with requests from Hypothesis,
    hostile rows, and rows that have crashed servers.
    """
    requirement = case.requirements[0]
    is_about_state = requirement in STATE_REQUIREMENTS
    is_of_robustness = ledger.get_requirement(requirement.removesuffix("/grpc")).is_of_robustness
    return not (
        is_about_state or is_of_robustness or case.row.dangerous or case.check.judges_discovery or case.check.explores
    )


def estimate_inferences(rows: Iterable[Case]) -> float:
    """Return about how many inferences rows send one after the other."""
    return sum(INFERENCES.get(check.id, USUAL_INFERENCES) for check, _ in rows)


def estimate_seconds(rows: Sequence[Case], latency: float, connections: int) -> float:
    """Return about how many seconds rows take on a target with this latency."""
    alone = [case for case in rows if not is_concurrency_safe(case)]
    overlapping = estimate_inferences(rows) - estimate_inferences(alone)
    return latency * (estimate_inferences(alone) + overlapping / connections) + len(rows) * OWN_EXCHANGE_S


def choose_connections(latency: float | None) -> int:
    """Return the number of connections to use for a target.

    Args:
        latency: the time to the fastest answer of the target in seconds; None if the target never answered.
    """
    return 1 if latency is None or latency < MIN_LATENCY_S else min(MAX_CONNECTIONS, int(latency / OWN_EXCHANGE_S))


def _is_unaffected(result: CheckResult, calls: Sequence[Call]) -> bool:
    """Return whether a result counts without running the row again alone: it passed, or no load explains it.

    A row may pass although a connection ended without an answer. Whether the server has ended as well is seen alone,
    unless the request was sent in a way that cannot be repeated (`CrashTracker.find_repeatable_crash`). A row that does
    not apply is run again if the server may have been too busy to answer, or to take so large a request.
    """
    exchanges = [one for call in calls for one in call.exchanges]
    if result.outcome is Outcome.NOT_APPLICABLE:
        return not (result.has_reason(ReasonKind.TOO_LARGE) or any(is_retryable(Reply(one)) for one in exchanges))
    is_answered = not any(Reply(one).has_ended_unanswered for one in exchanges if not one.note)
    return result.failure is None and result.outcome in (Outcome.PASS, Outcome.OBSERVED) and is_answered
