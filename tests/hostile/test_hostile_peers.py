"""What comes of one exchange with a peer that does anything but answer: the right kind of failure, soon, and no more.

Whole runs, and the verdicts they come to: `test_hostile_runs.py`.
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.transport.exchange import Exchange, FailureKind, Reply
from conformance.transport.http_client import HttpClient, PersistentConnection
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.wire.request import Message
from tests.hostile.bounds import ResourceUse, measure_resources
from tests.hostile.misbehaviours import ROWS, Row
from tests.hostile.misbehaviours.rows import make_answer
from tests.hostile.proxy import HostileProxy, Wire, run_hostile_proxy
from tests.support.scripted_server import Script, make_answers, read_request, serve_scripts
from tests.support.tables import on_each

POST = Message("/v2/models/m/infer", (("Content-Type", "application/json"),), b'{"inputs":[]}')
PATIENCE = 1.5
PAUSE = 0.02
MOST = 3_000_000  # bytes of an answer


@pytest.fixture(scope="module")
def peer() -> Iterator[HostileProxy]:
    with run_hostile_proxy(None, lambda _: None) as found:
        yield found


@on_each(ROWS, lambda row: row.name)
def test_misbehaviour_has_expected_status_and_failure(row: Row, *, peer: HostileProxy) -> None:
    peer.misbehaves = row.does
    peer.rewind()
    started = time.monotonic()
    with closing(HttpClient(Settings(peer.url, timeout=PATIENCE, max_answer=MOST))) as client:
        exchange = client.send(POST)
    took = time.monotonic() - started
    assert exchange.status in row.status, exchange
    came = exchange.failure and exchange.failure.kind
    assert came in (row.kinds or (None,)) or (came is None and row.may_be_whole)
    assert len(exchange.body) < MOST + 1_000_000
    assert took < 10 * PATIENCE
    assert Reply(exchange).answer is not None  # can be taken apart, whatever it is
    assert peer.turned == 1


# --- what follows on a kept connection --------------------------------------------------------------------------------


def one_after_the_other(script: Script, times: int = 3) -> list[Exchange]:
    """Send messages over one client, of which the first connection is a hostile one."""
    honest = make_answers(*[make_answer(body=b"honest")] * times)
    with serve_scripts(script, honest) as url:
        client = HttpClient(Settings(url, timeout=PATIENCE))
        try:
            return [client.send(POST) for _ in range(times)]
        finally:
            client.close()


@pytest.mark.parametrize("more", [make_answer(body=b"stale"), make_answer(body=b"stale")[:20], b"\r\n", b"x"])
def test_bytes_after_answer_are_discarded(more: bytes) -> None:
    found = one_after_the_other(make_answers(make_answer(body=b"first") + more, make_answer(body=b"second")))
    assert [exchange.body for exchange in found] == [b"first", b"honest", b"honest"]
    assert all(exchange.failure is None for exchange in found)


def test_bytes_after_answer_are_discarded_on_one_connection() -> None:
    hostile_one = make_answers(make_answer(body=b"first") + make_answer(body=b"stale"), make_answer(body=b"second"))
    with serve_scripts(hostile_one, make_answers(*[make_answer(body=b"honest")] * 2)) as url:
        line = PersistentConnection(Settings(url, timeout=PATIENCE))
        found = [line.exchange(POST) for _ in range(3)]
        line.close()
    assert [exchange.body for exchange in found] == [b"first", b"honest", b"honest"]


@pytest.mark.parametrize("garbage", [b"garbage\r\n\r\n", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-Le"])
def test_request_with_invalid_answer_is_not_repeated(garbage: bytes) -> None:
    first, second, third = one_after_the_other(make_answers(make_answer(body=b"first"), garbage))
    assert (first.body, third.body) == (b"first", b"honest")
    assert second.status is None
    assert second.failure is not None


def closed_after_an_answer(connection: socket.socket) -> None:
    make_answers(make_answer(body=b"first"))(connection)


def closed_at_the_next_request(connection: socket.socket) -> None:
    closed_after_an_answer(connection)
    read_request(connection)


@pytest.mark.parametrize("script", [closed_after_an_answer, closed_at_the_next_request])
def test_a_connection_that_was_closed_meanwhile_is_no_failure(script: Script) -> None:
    found = one_after_the_other(script)
    assert [exchange.body for exchange in found] == [b"first", b"honest", b"honest"]


def test_redirects_cookies_and_challenges_are_ignored() -> None:
    tempting = make_answer(
        302,
        "Set-Cookie: a=b; Path=/",
        "Location: /elsewhere",
        'Alt-Svc: h2="127.0.0.1:9"',
        'WWW-Authenticate: Basic realm="x"',
    )
    with run_hostile_proxy(None, lambda wire: wire.send(tempting)) as peer:
        client = HttpClient(Settings(peer.url, timeout=PATIENCE))
        for _ in range(3):
            assert client.send(POST).status == 302
        client.close()
    assert len(peer.requests) == 3
    for request in peer.requests:
        assert request.startswith(b"POST /v2/models/m/infer ")
        assert b"cookie" not in request.lower()
        assert b"authorization" not in request.lower()


def test_a_server_that_reads_slowly_ends_the_exchange() -> None:
    patience = 0.5

    def slow(connection: socket.socket) -> None:
        with suppress(OSError):  # so much that no part of it has to wait for long, and too little for all of it
            for _ in range(int(8 * patience / PAUSE)):
                connection.recv(100_000)
                time.sleep(PAUSE)

    started = time.monotonic()
    with serve_scripts(slow) as url:
        client = HttpClient(Settings(url, timeout=patience))
        exchange = client.send(replace(POST, body=bytes(40_000_000)))
        took = time.monotonic() - started
        client.close()
    assert exchange.failure is not None
    assert exchange.failure.kind is FailureKind.TIMEOUT
    assert took < 10 * patience


def test_answers_that_are_in_flight_share_the_room() -> None:
    def large(wire: Wire) -> None:
        wire.send(make_answer(body=bytes(600_000)))

    with run_hostile_proxy(None, large) as peer:
        target = Target(Settings(peer.url, timeout=2.0, max_answer=2_000_000))
        alone = target.send(POST)
        together = target.send_together([POST] * 4)
        target.close()
    assert alone.succeeded
    assert all(reply.has_failed(FailureKind.ENDLESS) for reply in together)


# --- what is left of a thousand ---------------------------------------------------------------------------------------

COSTLY = ("a-body-that-stalls", "a-head-that-stalls", "silence", "a-byte-at-a-time")  # they wait


def test_a_thousand_hostile_exchanges_leave_nothing(
    peer: HostileProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    quick = [row for row in ROWS if row.name not in COSTLY]
    settings = Settings(peer.url, timeout=2.0, max_answer=100_000)
    client, line = HttpClient(settings), PersistentConnection(settings)
    peer.misbehaves = quick[0].does
    client.send(POST)
    before = measure_resources()
    for number in range(1000):
        peer.misbehaves = quick[number % len(quick)].does
        (line.exchange if number % 5 == 0 else client.send)(POST)
    client.close()
    line.close()
    until = time.monotonic() + 20
    while not has_no_more(before) and time.monotonic() < until:
        time.sleep(0.05)  # the threads of the peer itself end a little later
    assert has_no_more(before), (before, measure_resources())


def has_no_more(before: ResourceUse) -> bool:
    """Whether this process has no more of anything than it had."""
    now = measure_resources()
    return (
        now.threads <= before.threads
        and now.descriptors <= before.descriptors
        and now.processes <= before.processes
        and now.files <= before.files
    )
