"""What is done with each request while it is watched: judged, shown where it is the first of its kind, written down."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from conformance.clients.recording.archive import ArchiveWriter
from conformance.clients.recording.records import RecordedExchange
from conformance.clients.traffic import FirstViolation, Traffic
from conformance.clients.watch_checks import get_check_id
from conformance.judging import client_evidence
from conformance.spec import ledger
from conformance.spec.outcome import Outcome
from conformance.spec.text import escape_text

MAX_REASONS = 100


class WatchListener:
    """Listens to a recording; see `recorded.Listener`.

    Attributes:
        unread_reasons: why something was not read -> how often.
        last: when the last request or answer came, by the monotonic clock.
        waiting: how many requests have no answer yet.
        stopped: why the watch was cut short; empty where it was not.

    Args:
        traffic: judges.
        show: takes a line for the terminal.
        evidence: a folder for what is not met, or None; `writer`: of the recording.
    """

    def __init__(
        self,
        traffic: Traffic,
        show: Callable[[str], None],
        evidence: Path | None = None,
        writer: ArchiveWriter | None = None,
    ) -> None:
        self.traffic = traffic
        self.unread_reasons: Counter[str] = Counter()
        self.last = time.monotonic()
        self.waiting = 0
        self.stopped = ""
        self._show = show
        self._evidence = evidence
        self._writer = writer

    def asked(self, recorded: RecordedExchange) -> None:
        """Judge a request; show what it misses first."""
        self.last = time.monotonic()
        self.waiting += 1
        for first in self.traffic.asked(recorded):
            self._show(_line(first))

    def answered(self, recorded: RecordedExchange) -> None:
        """Write a request and its answer down."""
        self.last = time.monotonic()
        self.waiting -= 1
        described = self.traffic.answered(recorded)
        if self._writer is not None:
            self._writer.write(recorded, self.traffic.name_of(recorded))
        for first in described:
            if self._evidence is not None and first.failure is not None:
                check = get_check_id(first.miss.requirement)
                client_evidence.write_request(self._evidence, check, first.client, recorded, first.failure)

    def unread(self, why: str) -> None:
        """Count what was not read; show it where that is new."""
        line = escape_text(why)
        if line not in self.unread_reasons and len(self.unread_reasons) < MAX_REASONS:
            self._show(f"not read: {line}")
            self.unread_reasons[line] = 0
        if line in self.unread_reasons:
            self.unread_reasons[line] += 1


def _line(first: FirstViolation) -> str:
    miss, request = first.miss, f"request {first.recorded.number} of {first.client}"
    named = f"{miss.requirement} ({ledger.get_requirement(miss.requirement).level})"
    said = f"{request} does not meet {named}" if first.outcome is Outcome.FAIL else f"advice on {request}, by {named}"
    return f"{said}: expected {escape_text(miss.expected, 200)}, got {escape_text(miss.actual, 200)}"
