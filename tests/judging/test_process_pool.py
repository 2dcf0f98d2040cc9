"""Rows judged in forked processes: the same results, recording and order; a target that suffers from it is noticed."""

from __future__ import annotations

import json
import lzma
import multiprocessing
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpcore
import pytest

from conformance.judging import process_pool
from conformance.judging.concurrent_judge import AbandonedError, AbandonReason, ConcurrentJudge
from conformance.judging.process_pool import ProcessPool
from conformance.judging.scheduling import choose_connections
from conformance.judging.selection import ROLES, list_area_rows
from conformance.judging.session import Session
from conformance.judging.shared_names import SharedNames
from conformance.spec.check import Case, format_key
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport import har, journal, settings
from conformance.transport.settings import RateLimit
from conformance.transport.target import Target
from tests.support import ending_server
from tests.support.servers import JsonOnly, run_bundled, serve

Rows = list[Case]


@pytest.fixture(autouse=True)
def forks_beside_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pool fork in a process of the tests, whose other threads hold none of its locks; however few the rows."""
    monkeypatch.setattr(process_pool, "can_fork", lambda: True)
    monkeypatch.setattr(process_pool, "MIN_BLOCK_S", 0.0)
    monkeypatch.setattr(process_pool, "MIN_PROCESS_S", 0.001)


def rows(*areas: str, each: int = 1) -> Rows:
    """Return every so-many-eth row of some areas."""
    found = [case for area in areas for case in list_area_rows(area, ROLES)[::each]]
    return [case for case in found if not (case.row.dangerous or case.check.explores)]


class JudgingResult:
    """What came of rows: results, the row that a process of several disturbed, and the merged recording."""

    def __init__(self, url: str, wanted: Rows, processes: int, folder: Path, **limits: Any) -> None:
        made = settings.make_settings(url, **limits)
        with Session(Target(made)) as session:
            session.discover()
            session.target.journal = journal.Journal(folder, "", made)
            pool = ProcessPool(session, processes)
            pool.expect_rows(wanted)
            self.results = [session.judge(case) if processes == 1 else pool.judge(case) for case in wanted]
            self.disturbed_row, self.fatal_row = pool.disturbed_row, session.find_fatal_row()
        journal.merge(folder, url, {case.key: place for place, case in enumerate(wanted)})
        entries = json.loads(lzma.decompress((folder / har.NAME).read_bytes()))["log"]["entries"]
        keys = {case.key for case in wanted}  # not what was asked beside them
        self.scopes = {one["_scope"] for one in entries}
        of_rows = [one for one in entries if one["_scope"] in keys]
        self.sent = [(one["_scope"], one["_call"], one["_place"], one["request"]) for one in of_rows]

    @property
    def outcomes(self) -> list[tuple[str, Outcome, str, str, int]]:
        return [
            (one.label, one.outcome, one.message, one.failure.requirement if one.failure else "", one.exchanges)
            for one in self.results
        ]


def judge_both(url: str, wanted: Rows, folder: Path) -> tuple[JudgingResult, JudgingResult]:
    """Judge rows one after another, then in four processes."""
    return JudgingResult(url, wanted, 1, folder / "one"), JudgingResult(url, wanted, 4, folder / "many")


def test_results_and_recording_are_those_of_one_row_after_another(reference: str, tmp_path: Path) -> None:
    one_by_one, pooled = judge_both(reference, rows("headers", "sizes", "state", "walk", each=20), tmp_path)
    assert pooled.outcomes == one_by_one.outcomes
    assert pooled.sent == one_by_one.sent
    assert pooled.scopes == one_by_one.scopes
    assert not pooled.disturbed_row


def test_a_good_probe_is_made_once_for_all_processes(reference: str) -> None:
    wanted = [case for case in rows("sizes") if case.role == "identity_int32"]
    probed: list[str] = []
    with Session(Target(settings.make_settings(reference))) as session:
        session.discover()
        pool = ProcessPool(session, 2)
        pool.expect_rows(wanted)
        assert pool.judge(wanted[0]).outcome is Outcome.PASS
        session.target.journal = lambda call: probed.append(call.scope)
        results = [session.judge(case) for case in wanted[1:3]]  # alone, after a block
    assert {one.outcome for one in results} == {Outcome.PASS}
    assert set(probed) == {case.key for case in wanted[1:3]}


def test_names_are_shared_with_forked_processes() -> None:
    names, context = SharedNames(), multiprocessing.get_context("fork")
    names.add("before")
    children = [context.Process(target=names.add, args=(f"model {number}\n",)) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert "before" in names
    assert all(f"model {number}\n" in names for number in range(3))
    assert "model" not in names


@pytest.mark.parametrize(("latency", "first"), [(0.001, "sizes"), (0.05, "walk")])
def test_long_rows_begin_a_block_of_a_distant_target(
    latency: float, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: Rows = []

    def take(_pool: ProcessPool, block: Rows, _processes: int) -> dict[int, CheckResult]:
        taken.extend(block)
        return {}

    monkeypatch.setattr(ProcessPool, "_judge_in_processes", take)
    wanted = rows("sizes", "walk", each=100)
    target = Target(settings.make_settings("http://127.0.0.1:1"))
    target.latency = latency
    pool = ProcessPool(Session(target), 2)
    pool.expect_rows(wanted)
    pool.has_passed(wanted[0])
    assert taken[0].check.area == first
    assert {case.key for case in taken} == {case.key for case in wanted}


@pytest.mark.parametrize(
    ("fault", "area", "is_disturbed"),
    [
        ("inputs-read-in-alphabetical-order", "ordering", False),
        ("inputs-read-big-endian", "datatypes", False),  # a row about BF16 is observed, and shows a difference
        ("negative-dimensions-end-the-server", "errors", False),
        ("inputs-before-a-refusal-used-again", "errors", True),  # in whichever row comes next
    ],
)
def test_what_is_wrong_alone_is_wrong_beside_others(fault: str, area: str, is_disturbed: bool, tmp_path: Path) -> None:
    with run_bundled("--fault", fault) as url:
        one_by_one, pooled = judge_both(url, rows(area, each=4), tmp_path)
    assert pooled.outcomes == one_by_one.outcomes
    assert Outcome.FAIL in {one.outcome for one in pooled.results}
    assert bool(pooled.disturbed_row) is is_disturbed


class _Overwhelmed(JsonOnly):
    """Passes requests on to the server at `behind`; has no room for one while it is at another."""

    behind = ""
    room = threading.Semaphore(1)

    def do_GET(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.room.acquire(blocking=False):
            self._answer(503, {"error": "no room"})
            return
        try:
            found = httpcore.request(self.command, self.behind + self.path, headers=self.headers.items(), content=body)
        finally:
            self.room.release()  # before the answer, behind which the next request may come at once
        headers = [(name.decode(), value.decode()) for name, value in found.headers]
        self._pass_on(found.status, headers, found.content)

    do_POST = do_GET  # noqa: N815

    def _pass_on(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_a_row_that_does_not_apply_is_not_run_again(
    reference: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(Session, "judge")
    wanted = [case for case in rows("json") if case[1].id == "FP16-shortest-sent-as-binary"]
    found = JudgingResult(reference, wanted, 2, tmp_path)
    assert [(one.outcome, one.exchanges > 0) for one in found.results] == [(Outcome.NOT_APPLICABLE, True)]


def test_a_target_that_suffers_is_asked_one_row_after_another(reference: str, tmp_path: Path) -> None:
    wanted = rows("sizes", each=5)
    handler = type("Handler", (_Overwhelmed,), {"behind": reference})
    with serve(handler) as url:
        found = JudgingResult(url, wanted, 6, tmp_path)
    assert found.disturbed_row
    assert {one.outcome for one in found.results} == {Outcome.PASS, Outcome.OBSERVED}


def test_rows_that_were_left_out_are_not_waited_for(reference: str) -> None:
    wanted = rows("sizes", each=10)
    with Session(Target(settings.make_settings(reference))) as session:
        session.discover()
        pool = ProcessPool(session, 2)
        pool.expect_rows(wanted)
        results = [pool.judge(wanted[3]), pool.judge(wanted[-1]), pool.judge(wanted[0])]
    assert [one.label for one in results] == [case.label for case in (wanted[3], wanted[-1], wanted[0])]


def interrupt_judging(act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every third row of a forked process act first."""
    judge, main, seen = ConcurrentJudge._judge, os.getpid(), list[str]()

    def act_first(self: ConcurrentJudge, case: Case) -> Any:
        seen.append(case.key)
        if os.getpid() != main and len(seen) % 3 == 0:
            act()
        return judge(self, case)

    monkeypatch.setattr(ConcurrentJudge, "_judge", act_first)


def test_rows_of_a_process_that_ends_are_judged_alone(
    reference: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    interrupt_judging(lambda: os._exit(1), monkeypatch)
    found = JudgingResult(reference, rows("sizes", each=8), 2, tmp_path)
    assert {one.outcome for one in found.results} == {Outcome.PASS}
    assert not found.disturbed_row


def test_the_row_that_ends_the_server_for_good_is_named(tmp_path: Path) -> None:
    wanted = rows("sizes", "datatypes", each=6)
    with run_bundled("UINT16", program=("-m", ending_server.__name__)) as url:
        found = JudgingResult(url, wanted, 2, tmp_path)
    failed = [one for one in found.results if one.outcome is Outcome.FAIL]
    assert [one.failure.requirement for one in failed if one.failure] == ["OIP-ALIVE-LEGAL"]
    assert [found.fatal_row] == [format_key(one.id, one.row) for one in failed]


def test_a_crash_during_several_requests_names_the_rows_of_all() -> None:
    first, second = rows("ordering")[:2]
    with run_bundled() as url, Session(Target(settings.make_settings(url))) as session:
        session.discover()
        last = session.target.last
    assert last
    ended = [AbandonedError(AbandonReason.ENDED, replace(last, status=None)) for _ in range(2)]
    pool = ProcessPool(session, 2)
    pool._find_fatal_row(list(zip((first, second), ended, strict=True)))
    failed = pool._found[first.key]
    assert isinstance(failed, CheckResult)
    assert failed.failure
    assert failed.failure.requirement == "OIP-ALIVE-LEGAL"
    assert second.label in failed.failure.expected


def test_processes_share_the_rate_limit() -> None:
    limit, context = RateLimit(1000.0), multiprocessing.get_context("fork")
    limit.share(context)
    child = context.Process(target=limit.wait, args=(500,))
    child.start()
    child.join()
    waits: list[float] = []
    limit.sleep = waits.append
    limit.wait()
    assert waits[0] > 0.1


def test_a_process_notes_for_all_that_there_were_too_many_requests() -> None:
    limit, context = RateLimit(), multiprocessing.get_context("fork")
    limit.share(context)
    child = context.Process(target=limit.note_excess)
    child.start()
    child.join()
    assert limit.is_too_high


@pytest.mark.parametrize(
    ("latency", "cores", "connections"),
    [(None, 2, 1), (0.001, 1, 1), (0.001, 2, 5), (0.001, 64, 8), (0.012, 1, 4), (0.012, 2, 5), (0.05, 2, 16)],
)
def test_connections_by_latency_and_cores(latency: float | None, cores: int, connections: int) -> None:
    assert choose_connections(latency, cores) == connections


class _OneConnection(JsonOnly):
    """Answers everything; a second open connection gets 503."""

    room = threading.Semaphore(1)

    def handle(self) -> None:
        self.is_alone = self.room.acquire(blocking=False)
        super().handle()
        if self.is_alone:
            self.room.release()

    def do_POST(self) -> None:  # noqa: N802
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._send(200 if self.is_alone else 503, b"")


def test_a_fast_target_that_serves_few_connections_is_spared(reference: str) -> None:
    counts = []
    with serve(_OneConnection) as limited:
        for url in (reference, limited):
            target = Target(settings.make_settings(url), {"identity_int32": "identity_int32"})
            target.measure_latency()
            counts.append(target.count_overlapping(4))
    assert counts == [4, 1]


@pytest.mark.parametrize(
    ("together_s", "count"), [(0.5, 16), (0.75, 16), (1.0, 12), (2.0, 6), (4.0, 3), (8.0, 1), (9.0, 1)]
)
def test_inferences_that_a_target_computes_at_once(
    together_s: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Target, "_measure", lambda _, messages: (0.5 if len(messages) == 1 else together_s, True))
    target = Target(settings.make_settings("http://127.0.0.1:1"), {"identity_int32": "identity_int32"})
    target.measure_latency()
    assert target.count_overlapping(16) == count
