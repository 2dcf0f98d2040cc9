"""Rows are repeated while a server is busy, but not for other errors, nor without end."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.expect.unmet import UnmetError
from conformance.judging.busy_retries import MAX_BUSY_ROWS, BusyError, BusyRetries
from conformance.judging.selection import ROLES, list_area_rows
from conformance.judging.server_limits import MIN_LARGE_BYTES
from conformance.judging.session import Session
from conformance.spec.check import Case
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult
from conformance.transport import journal, recording
from conformance.transport.broken_request import BUSY_STATUSES
from conformance.transport.exchange import Exchange, Reply
from conformance.transport.journal import Journal
from conformance.transport.replay import ReplayTarget
from conformance.transport.settings import make_settings
from conformance.transport.target import BUSY_PAUSES_S, MAX_WAITS_IN_VAIN, RELOAD_PAUSE_S, Target
from conformance.wire.grpc_request import GRPC_METHOD
from conformance.wire.request import Message
from reference_server.errors import InferenceError
from reference_server.faults import Fault, fault, switch_on
from tests.support.scripted_server import read_request, serve_scripts
from tests.support.sightings import Server, run_server

Rows = Sequence[Case]
ROWS: Rows = list_area_rows("ordering", ROLES)[::3]
AFTER_A_REFUSAL = "errors.good-request-after-a-refusal-is-answered-right"
PERIOD = 17  # requests; more than a row sends
RIGHT = {Outcome.PASS, Outcome.OBSERVED, Outcome.NOT_APPLICABLE}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as started:
        yield started


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of the pauses, which the tests do not wait for."""
    found: list[float] = []
    monkeypatch.setattr(Target, "pause", lambda _self, seconds: found.append(seconds))
    return found


def judge(server: Server, wrong: Fault, target: Target, rows: Rows = ROWS) -> list[CheckResult]:
    with Session(target) as session:
        session.discover()
        with switch_on(wrong):
            server.replace()
            results = [session.judge(case) for case in rows]
    server.replace()
    return results


_requests: list[int] = []


def make_busy(period: int, status: int) -> Fault:
    """Return a server that refuses the last of every `period` inference requests."""
    _requests.clear()

    @fault("app.Service.infer", breaks="OIP-ANSWER")
    async def busy(original: Any, service: Any, http: Any) -> Any:
        _requests.append(1)
        if len(_requests) % period == 0:
            await http.body()
            raise InferenceError("busy", status=status)
        return await original(service, http)

    return busy


@pytest.mark.parametrize("status", BUSY_STATUSES)
def test_server_that_is_busy_now_and_then_is_right(
    status: int, server: Server, pauses: list[float], tmp_path: Path
) -> None:
    target = Target(make_settings(server.url))
    target.journal = Journal(tmp_path, "", target.settings)
    live = judge(server, make_busy(PERIOD, status), target)
    assert {one.outcome for one in live} <= RIGHT, [(one.label, one.message) for one in live]
    assert set(pauses) <= set(BUSY_PAUSES_S)
    assert BUSY_PAUSES_S[0] in pauses
    journal.merge(tmp_path, server.url, {})
    recorded = recording.load(recording.find_recording(tmp_path))
    assert any(scope.endswith(", busy 1") for scope, _ in recorded.calls)
    replayed = judge(server, make_busy(PERIOD, status), ReplayTarget(target.settings, recorded.calls))
    assert [(one.outcome, one.exchanges) for one in replayed] == [(one.outcome, one.exchanges) for one in live]


def test_discovery_waits_as_long_as_a_busy_server_asks_but_a_few_times_only(pauses: list[float]) -> None:
    def limit_rate(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")

    with serve_scripts(limit_rate) as url:
        target = Target(make_settings(url))
        with Session(target), target.scope("models", outside_rows=True):
            for _ in range(MAX_WAITS_IN_VAIN + 1):
                target.get("/v2/models/identity_int32")
    assert pauses == [*[1.0] * MAX_WAITS_IN_VAIN, BUSY_PAUSES_S[0]]
    assert target.settings.rate_limit.is_too_high


def test_rows_outlast_a_reload(server: Server, pauses: list[float]) -> None:
    @fault("app.Service.infer", breaks="OIP-ANSWER")
    async def reload(original: Any, service: Any, http: Any) -> Any:
        if sum(pauses) < RELOAD_PAUSE_S:
            await http.body()
            raise InferenceError("the model is being reloaded", status=503)
        return await original(service, http)

    results = judge(server, reload, Target(make_settings(server.url)))
    assert {one.outcome for one in results} <= RIGHT
    assert pauses == [*BUSY_PAUSES_S, RELOAD_PAUSE_S]


def test_server_that_fails_now_and_then_fails(server: Server, pauses: list[float]) -> None:
    results = judge(server, make_busy(PERIOD, 500), Target(make_settings(server.url)))
    assert Outcome.FAIL in {one.outcome for one in results}
    assert not pauses


@pytest.mark.usefixtures("pauses")
def test_server_that_refuses_binary_data_as_if_busy_is_not_right(server: Server) -> None:
    @fault("app.Service.infer", breaks="OIP-ANSWER")
    async def binary_is_refused(original: Any, service: Any, http: Any) -> Any:
        if "inference-header-content-length" in http.headers:
            await http.body()
            raise InferenceError("busy", status=503)
        return await original(service, http)

    calls: list[str] = []
    target = Target(make_settings(server.url))
    target.journal = lambda call: calls.append(call.scope)
    results = judge(server, binary_is_refused, target)
    assert sum(one.outcome not in RIGHT for one in results) > MAX_BUSY_ROWS
    assert len({scope for scope in calls if ", busy " in scope}) == MAX_BUSY_ROWS * len(BUSY_PAUSES_S) + 1


def test_server_that_stays_busy_after_a_refusal_fails(server: Server, pauses: list[float]) -> None:
    is_full: list[bool] = []

    @fault("app.Service.infer", breaks="OIP-ALIVE")
    async def full_after_a_refusal(original: Any, service: Any, http: Any) -> Any:
        if is_full:
            await http.body()
            raise InferenceError("busy", status=503)
        try:
            return await original(service, http)
        except InferenceError:
            is_full.append(True)
            raise

    rows = [case for case in list_area_rows("errors", ROLES) if case.check.id == AFTER_A_REFUSAL]
    (first, *_) = judge(server, full_after_a_refusal, Target(make_settings(server.url)), rows[:1])
    assert pauses
    assert (first.outcome, first.failure and first.failure.requirement) == (Outcome.FAIL, "OIP-ALIVE")


def make_error(status: int, *, retry_after: str = "", code: str = "", size: int = 2) -> UnmetError:
    method = GRPC_METHOD if code else "POST"
    headers = (("Retry-After", retry_after),) if retry_after else ()
    sent = Message("/v2/models/m/infer", body=b"{}".ljust(size), method=method)
    return UnmetError("an answer", "busy", Reply(Exchange(0, sent, "http://h", status, headers, code=code)))


@pytest.mark.parametrize(
    ("retry_after", "pause_s"),
    [("", 0.05), ("0", 0.05), ("1", 1.0), ("60", 2.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.05)],
)
def test_pause_is_that_of_retry_after_within_limits(retry_after: str, pause_s: float) -> None:
    retries = BusyRetries(Target(make_settings("http://127.0.0.1:9")))
    with pytest.raises(BusyError) as raised:
        retries.raise_if_busy(make_error(503, retry_after=retry_after))
    assert raised.value.pause_s == pause_s


@pytest.mark.parametrize(
    ("error", "is_repeated"),
    [
        (make_error(429, code="RESOURCE_EXHAUSTED"), True),
        (make_error(429, code="RESOURCE_EXHAUSTED", size=MIN_LARGE_BYTES), False),
        (make_error(503, code="UNAVAILABLE"), True),
        (make_error(500), False),
        (make_error(413), False),
    ],
    ids=["small-call", "large-call", "unavailable", "error", "too-large"],
)
def test_only_refusals_of_a_busy_server_are_repeated(error: UnmetError, is_repeated: bool) -> None:
    retries = BusyRetries(Target(make_settings("http://127.0.0.1:9")))
    if is_repeated:
        with pytest.raises(BusyError):
            retries.raise_if_busy(error)
    else:
        assert retries.raise_if_busy(error) is error
