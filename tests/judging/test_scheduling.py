"""Rows judged ahead of their turn: the same results, recording and order; a target that suffers from it is noticed."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler

import httpcore
import pytest

from conformance.judging.scheduling import ConcurrentScheduler, choose_connections
from conformance.judging.selection import ROLES, list_area_rows
from conformance.judging.session import Session
from conformance.spec.check import Case, format_key
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport import settings
from conformance.transport.exchange import Call
from conformance.transport.target import Target
from tests.support.servers import run_bundled, serve

Rows = list[Case]


def rows(*areas: str, each: int = 1) -> Rows:
    """Return every so-many-eth row of some areas."""
    found = [case for area in areas for case in list_area_rows(area, ROLES)[::each]]
    return [case for case in found if not case.row.dangerous]


class JudgingResult:
    """What came of rows: results, and what was written down."""

    def __init__(self, url: str, wanted: Rows, connections: int) -> None:
        made = settings.make_settings(url)
        self.calls: list[Call] = []
        with Session(Target(made)) as alone:
            survey = alone.discover()
            alone.target.journal = self.calls.append
            others = [Session(Target(made), survey, is_one_of_several=True, is_ahead=True) for _ in range(connections)]
            ahead = ConcurrentScheduler(alone, others)
            ahead.expect_rows(wanted)
            self.results = [ahead.judge(case) for case in wanted]
            self.disturbed_row = ahead.disturbed_row
            ahead.close()

    @property
    def outcomes(self) -> list[tuple[str, Outcome, str]]:
        return [(format_key(one.id, one.row), one.outcome, one.message) for one in self.results]

    @property
    def sent(self) -> list[tuple[str, int, bytes]]:
        """What the rows sent, in the order in which it was written down; not what was asked beside them."""
        of_rows = {format_key(one.id, one.row) for one in self.results}
        return [(one.scope, one.index, m.body) for one in self.calls if one.scope in of_rows for m in one.messages]


def test_results_and_recording_are_those_of_one_row_after_another(reference: str) -> None:
    wanted = rows("headers", "sizes", "state", each=10)
    one_by_one, ahead = JudgingResult(reference, wanted, 0), JudgingResult(reference, wanted, 6)
    assert ahead.outcomes == one_by_one.outcomes
    assert ahead.sent == one_by_one.sent
    assert not ahead.disturbed_row


def test_what_is_wrong_alone_is_wrong_beside_others() -> None:
    wanted = rows("ordering", each=8)
    with run_bundled("--fault", "inputs-read-in-alphabetical-order") as url:
        one_by_one, ahead = JudgingResult(url, wanted, 0), JudgingResult(url, wanted, 6)
    assert ahead.outcomes == one_by_one.outcomes
    assert Outcome.FAIL in {one.outcome for one in ahead.results}
    assert not ahead.disturbed_row


class _Overwhelmed(BaseHTTPRequestHandler):
    """Passes requests on to the server at `behind`; has no room for one while it is at another."""

    protocol_version = "HTTP/1.1"
    behind = ""
    room = threading.Semaphore(1)

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.room.acquire(blocking=False):
            self._answer(503, [], b'{"error": "no room"}')
            return
        try:
            found = httpcore.request(self.command, self.behind + self.path, headers=self.headers.items(), content=body)
        finally:
            self.room.release()  # before the answer, behind which the next request may come at once
        headers = [(name.decode(), value.decode()) for name, value in found.headers]
        self._answer(found.status, headers, found.content)

    do_POST = do_GET  # noqa: N815

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def test_a_row_that_does_not_apply_is_not_run_again(reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(ConcurrentScheduler, "_judge_alone")
    wanted = [case for case in rows("json") if case[1].id == "FP16-shortest-sent-as-binary"]
    found = JudgingResult(reference, wanted, 2)
    assert [(one.outcome, one.exchanges > 0) for one in found.results] == [(Outcome.NOT_APPLICABLE, True)]


def test_a_target_that_suffers_is_asked_one_row_after_another(reference: str) -> None:
    wanted = rows("sizes", each=5)
    handler = type("Handler", (_Overwhelmed,), {"behind": reference})
    with serve(handler) as url:
        found = JudgingResult(url, wanted, 6)
    assert found.disturbed_row
    assert {one.outcome for one in found.results} == {Outcome.PASS, Outcome.OBSERVED}


def test_rows_that_were_left_out_are_not_waited_for(reference: str) -> None:
    wanted = rows("sizes", each=10)
    with Session(Target(settings.make_settings(reference))) as alone:
        survey = alone.discover()
        ahead = ConcurrentScheduler(alone, [Session(Target(settings.make_settings(reference)), survey)])
        ahead.expect_rows(wanted)
        results: list[CheckResult] = [ahead.judge(wanted[3]), ahead.judge(wanted[-1]), ahead.judge(wanted[0])]
        ahead.close()
    assert [format_key(one.id, one.row) for one in results] == [case.key for case in (wanted[3], wanted[-1], wanted[0])]


@pytest.mark.parametrize(
    ("latency", "connections"), [(None, 1), (0.001, 1), (0.0099, 1), (0.012, 4), (0.03, 10), (0.05, 16), (3.0, 16)]
)
def test_connections_by_latency(latency: float | None, connections: int) -> None:
    assert choose_connections(latency) == connections


@pytest.mark.parametrize(
    ("together_s", "count"), [(0.5, 16), (0.75, 16), (1.0, 12), (2.0, 6), (4.0, 3), (8.0, 1), (9.0, 1)]
)
def test_inferences_that_a_target_computes_at_once(
    together_s: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Target, "_measure", lambda _, messages: 0.5 if len(messages) == 1 else together_s)
    target = Target(settings.make_settings("http://127.0.0.1:1"), {"identity_int32": "identity_int32"})
    target.measure_latency()
    assert target.count_overlapping(16) == count
