"""Judges rows in forked processes, so that the suite and the server work at the same time and latencies overlap.

    pool = ProcessPool(session, 5)
    pool.expect_rows(rows)
    results = [pool.judge(case) for case in rows]

The results are the same as those of a run without processes. Forked processes judge a block of rows: each takes the
next row from a shared counter. They inherit all that the main process knows about the target, but no connection, and
end with the block. Only rows that pass, or do not apply, count. All others are judged again alone, in their turn, and
so are the rows that must be alone: while one runs, there is no other process.

After a row that passes alone although it did not pass beside others, or fails because of earlier requests, and after a
sign that the server bears no load or has crashed, all further rows are judged one after another. The first rows of a
block that did not pass are judged alone before any other result of the block counts: if a request harms the next one,
in a block that may have been the request of another row.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from conformance.judging.concurrent_judge import STOPS, AbandonedError, AbandonReason, ConcurrentJudge
from conformance.judging.control_checks import STATE_REQUIREMENTS
from conformance.judging.scheduling import (
    MIN_LATENCY_S,
    can_fork,
    estimate_inferences,
    estimate_seconds,
    is_concurrency_safe,
)
from conformance.judging.session import Session
from conformance.judging.shared_names import SharedNames
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport.exchange import Call
from conformance.transport.journal import Journal, JournalError

# Rows of a block: few at first, so that a failure is seen early; then enough to avoid idle time at the ends of blocks.
FIRST_BLOCK_ROWS: Final = 128
MAX_BLOCK_ROWS: Final = 2048
BLOCK_GROWTH: Final = 8
# Rows that take less time are not worth the start of processes, and each process needs work for so many seconds.
MIN_BLOCK_S: Final = 0.5
MIN_PROCESS_S: Final = 0.15
# Rows of a check that waited in vain in a block; its further rows are judged alone, where hanging takes less time.
MIN_HUNG_ROWS: Final = 2
# Rows of a block that did not pass, and are judged alone before its other results count.
MAX_CONFIRMED: Final = 8
# The outcomes of a row that show that it would have passed beside others as well.
_PASSED = (Outcome.PASS, Outcome.OBSERVED)
_Found = CheckResult | AbandonedError


@dataclass(slots=True, repr=False)  # pytest shows `self` of an interrupted function, and thousands of rows take minutes
class ProcessPool:
    """Judges the rows of a run in order, many of them earlier in forked processes.

    Attributes:
        session: judges rows alone; the forked processes judge with copies of it.
        processes: the number of processes to fork.
        disturbed_row: the first row that passed alone, but not beside others; empty if there is none.
        show: receives each result as soon as it counts, for a progress line.
    """

    session: Session
    processes: int
    disturbed_row: str = ""
    show: Callable[[CheckResult], None] = lambda _: None
    _good_probes: SharedNames = field(default_factory=SharedNames)
    _pending: deque[Case] = field(default_factory=deque)
    _block_rows: int = FIRST_BLOCK_ROWS
    _left_in_block: int = 0
    _blocks: int = 0
    _found: dict[str, _Found] = field(default_factory=dict)
    _hung_checks: set[str] = field(default_factory=set)
    _has_stopped: bool = False

    def expect_rows(self, rows: Sequence[Case]) -> None:
        """Set the rows that will be judged, in order."""
        self._pending = deque(rows)

    def has_passed(self, case: Case) -> bool:
        """Return whether a row whose turn it is has a result from another process; start a block of rows if needed."""
        while self._pending and self._pending[0].key != case.key:  # rows that were left out
            self._pop_row()
        if self._pending and not (self._left_in_block or self._has_stopped):
            self._judge_block()
        return isinstance(self._found.get(case.key), CheckResult)

    def judge(self, case: Case) -> CheckResult:
        """Return the result of a row whose turn it is."""
        self.has_passed(case)
        found = self._found.pop(case.key, None)
        if self._pending:
            self._pop_row()
        if isinstance(found, CheckResult):
            return found
        alone = self.session.judge(case)
        if found is not None and found.reason in _DISTURBED:
            self._stop_if_disturbed(case, alone)
        return alone

    def _stop_if_disturbed(self, case: Case, alone: CheckResult) -> bool:
        """Judge all further rows alone if a row that did not pass beside others shows that rows affect each other.

        It does if it passes alone, and if it fails because of earlier requests: in the block these may have been those
        of any row, which has then passed in vain. Return whether this is so.
        """
        failure = alone.failure  # an observed row may have one as well
        is_passed = alone.outcome in _PASSED and failure is None
        if not is_passed and not (failure and failure.requirement in STATE_REQUIREMENTS):
            return False
        self.disturbed_row = self.disturbed_row or case.key
        self._stop()
        self._found.clear()  # what other rows showed beside others may depend on requests of other rows as well
        return True

    def _stop(self) -> None:
        """Judge all further rows one after another, and with probes of their own."""
        self._has_stopped, self.session.target.probes_elsewhere = True, ()

    def _pop_row(self) -> None:
        self._pending.popleft()
        self._left_in_block = max(0, self._left_in_block - 1)

    # --- a block ---

    def _judge_block(self) -> None:
        """Judge the rows of the next block in forked processes, except those that must be alone."""
        block = list(islice(self._pending, self._block_rows))
        self._left_in_block = len(block)
        self._block_rows = min(MAX_BLOCK_ROWS, BLOCK_GROWTH * self._block_rows)
        rows = [case for case in block if is_concurrency_safe(case) and case.check.id not in self._hung_checks]
        latency = self.session.target.latency or 0.0
        if latency >= MIN_LATENCY_S:  # long rows first, so that no process is busy with one after the others have ended
            rows.sort(key=lambda case: -estimate_inferences([case]))
        seconds = estimate_seconds(rows, latency, 1)
        if seconds < MIN_BLOCK_S:
            return
        self.session.close()  # no connection may be used by two processes, and no thread of this one may hold a lock
        if not can_fork():
            return
        self._blocks += 1
        found = self._judge_in_processes(rows, max(2, min(self.processes, len(rows), int(seconds / MIN_PROCESS_S))))
        self._found = {rows[place].key: result for place, result in found.items()}
        abandoned = [(rows[place], one) for place, one in sorted(found.items()) if isinstance(one, AbandonedError)]
        hung = Counter(case.check.id for case, one in abandoned if one.reason is AbandonReason.WAITED)
        self._hung_checks |= {name for name, count in hung.items() if count >= MIN_HUNG_ROWS}
        if any(one.reason in STOPS for _, one in abandoned):
            self._stop()
        self._find_fatal_row(abandoned)
        self._confirm([case for case, one in abandoned if one.reason in _DISTURBED])

    def _confirm(self, doubtful: Sequence[Case]) -> None:
        """Judge the first of the rows alone that did not pass beside others, until one passes."""
        alone: dict[str, _Found] = {}
        for case in doubtful[:MAX_CONFIRMED]:
            result = alone[case.key] = self.session.judge(case)
            if self._stop_if_disturbed(case, result):
                break
        self._found |= alone

    def _find_fatal_row(self, abandoned: Sequence[tuple[Case, AbandonedError]]) -> None:
        """If the server has ended for good, judge the first row first whose request may have ended it.

        If it has only ended a connection, no result of the block counts: a row may have passed whose request did so.
        """
        ended = [pair for pair in abandoned if pair[1].reason is AbandonReason.ENDED]
        if ended and self.session.target.is_back():
            self._found.clear()
        elif ended:
            suspects = [pair for pair in ended if pair[1].unanswered] or ended[:1]
            (case, error), *others = suspects
            in_flight = [other for other, _ in others]
            self._found[case.key] = self.session.judge_fatal_row(case, error.unanswered, in_flight)

    def _judge_in_processes(self, rows: Sequence[Case], processes: int) -> dict[int, _Found]:
        """Return what forked processes found, by the places of the rows; without rows that no process ended."""
        import jsonschema  # noqa: F401 - slow to import: once here, not by each process that a row of documents falls to

        context = multiprocessing.get_context("fork")
        self.session.target.settings.rate_limit.share(context)
        shared = _SharedState(context.Value("i", 0), context.RawValue("b", 0), self._good_probes)
        self.session.target.probes_elsewhere = self._good_probes
        started: list[BaseProcess] = []
        readers: list[Connection] = []
        try:
            with suppress(OSError), _hold_signals():  # no more processes
                for number in range(processes):
                    reader, writer = context.Pipe(duplex=False)
                    name = f"fork{self._blocks}-{number}"
                    judge = _ForkedJudge(self.session, rows, shared, writer, name, processes)
                    process: BaseProcess = context.Process(target=judge.run, daemon=True)
                    readers.append(reader)
                    process.start()
                    started.append(process)
                    writer.close()
            return _receive_results(readers[: len(started)], self.show)
        finally:
            for process in started:
                process.kill()
                process.join()
            for reader in readers:
                reader.close()


@contextmanager
def _hold_signals() -> Iterator[None]:
    """Hold signals back while processes are started, so that none is lost in a callback of a fork."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads: see `can_fork`
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_DISTURBED = (AbandonReason.NOT_PASSED, AbandonReason.BUSY)


def _receive_results(readers: Sequence[Connection], show: Callable[[CheckResult], None]) -> dict[int, _Found]:
    """Return the results of rows by their places, when all processes have ended.

    Raises:
        JournalError: a process cannot record a call.
    """
    found: dict[int, _Found] = {}
    left = list(readers)
    while left:
        for reader in wait(left):
            assert isinstance(reader, Connection)  # noqa: S101 - for the type checker
            try:
                place, result = reader.recv()
            except (EOFError, OSError):  # the process has ended, perhaps by a crash
                left.remove(reader)
                continue
            if isinstance(result, JournalError):
                raise result
            found[place] = result
            if isinstance(result, CheckResult):
                show(result)
    return found


@dataclass(frozen=True, slots=True)
class _SharedState:
    """What the processes of a block share: the place of the next row, whether to stop, and good probes."""

    next_place: Any
    must_stop: Any
    good_probes: SharedNames

    def take_place(self) -> int:
        """Return the place of the next row, for this process alone."""
        with self.next_place.get_lock():
            place: int = self.next_place.value
            self.next_place.value = place + 1
        return place


@dataclass(frozen=True, slots=True, repr=False)
class _ForkedJudge:
    """The work of one forked process."""

    session: Session
    rows: Sequence[Case]
    shared: _SharedState
    results: Connection
    name: str
    processes: int

    def run(self) -> None:
        """Judge rows until none is left; runs in the forked process."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        gc.disable()  # this process is short, and shares its memory with the main process
        target = self.session.target
        target.settings.restart.command = ""  # only the main process starts the target again
        target.settings.wait.times.in_flight += self.processes - 1
        journal = target.journal.open_for(self.name) if isinstance(target.journal, Journal) else None
        judge, hung_checks = self.session.create_concurrent_judge(), set[str]()
        with suppress(OSError):  # the main process has ended
            while (place := self.shared.take_place()) < len(self.rows) and not self.shared.must_stop.value:
                case = self.rows[place]
                if case.check.id in hung_checks:
                    continue
                try:
                    found: _Found | JournalError = self._judge_row(judge, case, journal)
                except JournalError as error:
                    found = error
                if isinstance(found, AbandonedError):
                    hung_checks |= {case.check.id} if found.reason is AbandonReason.WAITED else set()
                    self.shared.must_stop.value |= found.reason in STOPS
                self.results.send((place, found))
        self.session.close()

    def _judge_row(self, judge: ConcurrentJudge, case: Case, journal: Journal | None) -> _Found:
        """Return the result of a row, and record its calls; those of an abandoned row are recorded when it is alone.

        Other rows may rely on a good probe in any case, so its calls are recorded before it is shared.
        """
        calls: defaultdict[str, list[Call]] = defaultdict(list)

        def record(scopes: Sequence[str]) -> None:
            for call in chain(*map(calls.pop, scopes)):
                if journal is not None:
                    journal(call)

        def share(name: str) -> None:
            record([name])
            self.shared.good_probes.add(name)

        target = self.session.target
        target.journal, target.share_probe = lambda call: calls[call.scope].append(call), share
        try:
            with target.forget_probes():
                found = judge(case)
        except AbandonedError as error:
            return error
        record(list(calls))
        return found
