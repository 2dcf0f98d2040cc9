"""Waits are short for a server that hangs, and long beside other requests; no server fails for being slow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.judging.run_start import start_run
from conformance.judging.selection import ROLES, list_area_rows
from conformance.judging.session import Session
from conformance.spec.check import Case
from conformance.spec.outcome import INCOMPLETE, Outcome, ReasonKind
from conformance.spec.result import CheckResult
from conformance.transport import answer_wait, journal, recording
from conformance.transport.answer_wait import AnswerTimes, AnswerWait
from conformance.transport.exchange import FailureKind
from conformance.transport.journal import Journal
from conformance.transport.replay import ReplayTarget
from conformance.transport.settings import Settings, make_settings
from conformance.transport.target import Target
from tests.support.servers import run_with_grpc

TIMEOUT_S = 1.0
HANGS_S = 10 * TIMEOUT_S  # longer than any wait beside requests that hang, on a busy machine as well
LONG_PART = 0.3  # of the timeout: a short wait in which everything else is answered on a busy machine as well
RIGHT = {Outcome.PASS, Outcome.OBSERVED, Outcome.NOT_APPLICABLE}
MODELS = ("--model=identity_int32", "--model=identity_bytes", "--model=rank2", "--model=multi")

Rows = list[Case]


@contextmanager
def run_slow(kind: str, seconds: float, timeout: float = TIMEOUT_S) -> Iterator[Settings]:
    """Start a server that is slow in one kind of inference; yields the settings for both transports."""
    with run_with_grpc(*MODELS, program=("-m", "tests.support.slow_server", kind, str(seconds))) as (url, grpc):
        yield make_settings(url, timeout=timeout, grpc=grpc)


def list_sized_rows(area: str) -> Rows:
    """Return a few rows with tensors of other sizes."""
    rows = [case for case in list_area_rows(area, ROLES) if not case.row.dangerous]
    sized = [one for one in rows if any(word in one[1].id for word in ("none", "empty", "3x", "65536", "INT32"))]
    return sized[:: max(1, len(sized) // 6)]


def judge(target: Target, rows: Rows) -> list[CheckResult]:
    with Session(target) as session:
        session.discover()
        return [session.judge(case) for case in rows]


def list_empty_rows(area: str) -> Rows:
    return [
        case for case in list_area_rows(area, ROLES) if any(word in case.row.id for word in ("-empty", "none", "0x"))
    ]


@pytest.mark.parametrize(("area", "cause"), [("ordering", "OIP-ALIVE-LEGAL"), ("grpc", "OIP-ALIVE-LEGAL/grpc")])
def test_server_that_hangs_on_one_kind_of_request_fails_for_this_alone(
    area: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_wait, "SLOWEST_ANSWERS", 0)  # else a busy machine would never get to short waits
    rows = list_empty_rows(area)
    with run_slow("empty", HANGS_S, timeout=2 * TIMEOUT_S) as settings:  # for other rows, on a busy machine
        target = Target(settings)
        target.journal = Journal(tmp_path, "", settings)
        results = judge(target, rows)
    failed = {one.failure.requirement for one in results if one.failure and one.outcome is Outcome.FAIL}
    short = [one for one in results if one.has_reason(ReasonKind.SHORT_WAIT)]
    assert failed == {cause}, str([(one.label, one.message) for one in results if one.outcome is Outcome.FAIL])
    assert {one.outcome for one in results} <= {Outcome.FAIL, Outcome.ADVISORY, Outcome.BLOCKED, *RIGHT}
    assert {one.reason.subject for one in short if one.reason} <= failed  # a requirement never rests on a short wait
    assert target.waited_s
    assert settings.wait.times.whole_waits < sum(one.outcome not in RIGHT for one in results)
    journal.merge(tmp_path, settings.url, {}, settings.grpc_address.url)
    replayed = judge(ReplayTarget(settings, recording.load(recording.find_recording(tmp_path)).calls), rows)
    assert [(one.label, one.outcome, one.message) for one in replayed] == [
        (one.label, one.outcome, one.message) for one in results
    ]


def test_walk_tests_a_value_that_hangs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk takes no step with a value that is known to hang, since each would cost a wait."""
    monkeypatch.setattr(answer_wait, "SLOWEST_ANSWERS", 0)
    rows = [
        case
        for case in list_area_rows("walk", ROLES)
        if case.check.id == "walk.every-exchange-is-right"
        and case.row.id in ("json-identity_int32-rest", "json-multi-rest")
    ]
    with run_slow("gzip", 25 * TIMEOUT_S, timeout=10 * TIMEOUT_S) as settings:
        settings.wait.times.whole_waits = answer_wait.MAX_WHOLE_WAITS  # as if other requests had hung before
        target = Target(settings)
        waits: list[str] = []
        target.journal = lambda call: waits.extend(
            call.scope for one in call.exchanges if one.failure and one.failure.kind == FailureKind.TIMEOUT
        )
        results = judge(target, rows)
    assert {one.outcome for one in results} <= RIGHT, [(one.label, one.outcome, one.message) for one in results]
    assert waits
    assert all(scope.startswith("alone ") for scope in waits), waits


def test_walk_shrinks_a_step_that_hangs_with_short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure rests on whole waits all the same: for the first step, and for what is left of it."""
    monkeypatch.setattr(answer_wait, "SLOWEST_ANSWERS", 0)
    rows = [case for case in list_area_rows("walk", ROLES) if case.row.id == "binary-multi-brief"]
    with run_slow("empty", HANGS_S) as settings:
        settings.wait.times.whole_waits = answer_wait.MAX_WHOLE_WAITS  # as if other requests had hung before
        target = Target(settings)
        short_waits: list[bool] = []
        target.journal = lambda call: short_waits.extend(
            one.is_short_wait for one in call.exchanges if one.failure and one.failure.kind == FailureKind.TIMEOUT
        )
        results = judge(target, rows)
    first_and_last = 2
    assert [one.outcome for one in results] == [Outcome.FAIL]
    assert short_waits.count(False) == settings.wait.times.whole_waits - answer_wait.MAX_WHOLE_WAITS == first_and_last
    assert short_waits.count(True)
    assert not short_waits[-1]


def list_gzip_rows() -> Rows:
    """Return rows of one check whose requests, and one of whose control requests, accept answers in gzip."""
    names = ("axios", "requests", "weights")
    rows = list_area_rows("headers", ROLES)
    return [case for case in rows if case.check.id == "headers.usual-headers-alter-nothing" and case.row.id in names]


def test_row_that_the_same_control_request_blocks_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_wait, "SLOWEST_ANSWERS", 0)
    monkeypatch.setattr(answer_wait, "MIN_PART", LONG_PART)
    with run_slow("gzip", HANGS_S, timeout=2 * TIMEOUT_S) as settings:
        settings.wait.times.whole_waits = answer_wait.MAX_WHOLE_WAITS  # as if other requests had hung before
        results = judge(Target(settings), list_gzip_rows())
    assert [one.outcome for one in results] == [Outcome.BLOCKED] * 3
    assert [one.has_reason(ReasonKind.SHORT_WAIT) for one in results] == [False, True, True]
    own_and_control = 2
    assert settings.wait.times.whole_waits == answer_wait.MAX_WHOLE_WAITS + own_and_control


def test_answers_in_most_of_the_timeout_are_right_after_other_requests_hung(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_wait, "SLOWEST_ANSWERS", 0)
    with run_slow("gzip", 0.8 * 2 * TIMEOUT_S, timeout=2 * TIMEOUT_S) as settings:
        settings.wait.times.whole_waits = answer_wait.MAX_WHOLE_WAITS
        results = judge(Target(settings), list_gzip_rows())
    assert [one.outcome for one in results] == [Outcome.PASS] * 3, [(one.label, one.message) for one in results]


@pytest.mark.parametrize(
    ("kind", "seconds"), [("all", 0.1), ("large", 0.3), ("first", 0.9)], ids=["always", "large-tensors", "warming-up"]
)
@pytest.mark.parametrize("area", ["bytes", "grpc"])
def test_slow_server_is_right(area: str, kind: str, seconds: float) -> None:
    with run_slow(kind, seconds) as settings:
        results = judge(Target(settings), list_sized_rows(area))
    assert {one.outcome for one in results} <= RIGHT, [(one.label, one.message) for one in results]
    assert any(one.exchanges for one in results)
    assert settings.wait.find_short_wait(TIMEOUT_S) is None


@pytest.mark.parametrize("area", ["bytes", "grpc"])
def test_server_slower_than_a_short_wait_is_right(area: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_wait, "SLOWEST_ANSWERS", 0)
    monkeypatch.setattr(answer_wait, "MIN_PART", 0.005)
    with run_slow("all", 0.1, timeout=10 * TIMEOUT_S) as settings:
        settings.wait.times.whole_waits = answer_wait.MAX_WHOLE_WAITS  # as if other requests had hung before
        target = Target(settings)
        results = judge(target, list_sized_rows(area))
    assert {one.outcome for one in results} <= RIGHT, [(one.label, one.message) for one in results]
    assert target.waited_s  # short waits ended, and rows were repeated


IN_FLIGHT = {"identity_int32-json", "gzip", "json-beside-many", "calls-beside-many"}


@pytest.mark.parametrize("area", ["state", "walk", "grpc"])
def test_worker_that_takes_one_inference_after_the_other_is_right(area: str) -> None:
    """All requests in flight together take far longer than the timeout."""
    rows = [
        case
        for case in list_area_rows(area, ROLES)
        if case.row.id in IN_FLIGHT and ("in-flight" in case.check.id or "beside" in case.row.id)
    ]
    with run_slow("worker", 0.15) as settings:
        results = judge(Target(settings), rows)
    assert {one.outcome for one in results} <= RIGHT, [(one.label, one.message) for one in results]
    assert settings.wait.times.slowest_s > TIMEOUT_S


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_server_slower_than_the_timeout_is_incomplete(transport: str) -> None:
    with run_slow("worker", HANGS_S) as settings:
        only = settings if transport == "http" else make_settings("", timeout=TIMEOUT_S, grpc=settings.grpc_address.url)
        with Session(Target(only)) as session:
            _, conclusion = start_run(session, ["binary_tensor_data"], ROLES, {})
    assert conclusion is not None
    assert conclusion.verdict.verdict == INCOMPLETE
    assert "try --target-timeout=10" in conclusion.verdict.why[0]


def test_row_without_an_answer_of_a_slow_server_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait proves nothing if plain answers take a large part of the timeout as well."""
    monkeypatch.setattr(answer_wait, "PROVING_ANSWERS", 1000)
    rows = list_empty_rows("ordering")[:3]
    with run_slow("empty", HANGS_S) as settings:
        target = Target(settings)
        target.journal = Journal(tmp_path, "", settings)
        results = judge(target, rows)
    slow = [one for one in results if one.has_reason(ReasonKind.SLOW)]
    assert slow
    assert {one.outcome for one in results} <= {Outcome.BLOCKED, *RIGHT}, [(one.label, one.message) for one in results]
    assert all("--target-timeout=" in one.message for one in slow)
    journal.merge(tmp_path, settings.url, {}, settings.grpc_address.url)
    replayed = judge(ReplayTarget(settings, recording.load(recording.find_recording(tmp_path)).calls), rows)
    assert [(one.label, one.message) for one in replayed] == [(one.label, one.message) for one in results]


@pytest.mark.parametrize(
    ("fastest", "in_flight", "suggested"),
    [(None, 1, "60"), (0.01, 1, ""), (2.4, 1, ""), (3.0, 1, "60"), (16.0, 1, "70"), (0.1, 32, ""), (0.5, 32, "60")],
)
def test_wait_proves_nothing_about_a_slow_server(fastest: float | None, in_flight: int, suggested: str) -> None:
    times = AnswerTimes(fastest_s={} if fastest is None else {"other": 20.0, "own": fastest}, in_flight=in_flight)
    assert times.find_hint("own", 10.0, 10.0).rpartition("=")[2] == suggested


def test_wait_beside_others_is_as_long_as_all_of_them_take() -> None:
    wait = AnswerWait(AnswerTimes(slowest_alone_s=0.5))
    with wait.times.count_in_flight(32):
        assert wait.choose_wait(10.0) == 33 * 0.5
    assert wait.choose_wait(10.0) == 10.0


def test_waits_do_not_grow_with_each_request_that_hangs() -> None:
    wait = AnswerWait(AnswerTimes(slowest_alone_s=0.1), short_s=0.3)
    for _ in range(100):
        wait.times.note_abandoned(1, 0.3)
    assert wait.choose_wait(10.0) == 0.3
    wait.times.note_abandoned(32, 1.0)  # together: one worker has got no further than ten of them
    assert wait.choose_wait(10.0) == pytest.approx((22 + 1) * 0.1)
    assert wait.times.pending == 132  # none of which proves that the server hangs


@pytest.mark.parametrize(
    ("slowest", "whole", "short", "expected"),
    [(0.02, 1, 0, None), (0.02, 2, 0, 1.0), (0.3, 2, 0, 3.0), (2.0, 5, 0, None), (0.02, 2, 16, 0.3), (0.4, 2, 99, 1.2)],
    ids=["one-wait", "least", "ten-times-the-slowest", "slow-server", "many", "many-times-the-slowest"],
)
def test_wait_is_ten_times_the_slowest_answer(slowest: float, whole: int, short: int, expected: float | None) -> None:
    times = AnswerTimes(slowest_s=slowest, whole_waits=whole, short_waits=short)
    assert AnswerWait(times).find_short_wait(10.0) == expected
