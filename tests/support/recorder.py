"""A recording peer in this process, with a listener that keeps what it is told."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from conformance.clients.recording.forwarding import Upstream
from conformance.clients.recording.grpc_tap import GrpcTap
from conformance.clients.recording.http_tap import HttpTap
from conformance.clients.recording.proxy import Proxy, Route
from conformance.clients.recording.records import RecordedExchange


class ListenerLog:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.asked_for: list[RecordedExchange] = []
        self.answers: list[RecordedExchange] = []
        self.reasons: list[str] = []
        self.resets: list[RecordedExchange] = []

    def handle_request(self, recorded: RecordedExchange) -> None:
        self.asked_for.append(recorded)

    def handle_answer(self, recorded: RecordedExchange) -> None:
        self.answers.append(recorded)

    def handle_reset(self, recorded: RecordedExchange) -> None:
        self.resets.append(recorded)

    def report_unread(self, why: str) -> None:
        self.reasons.append(why)

    def wait_for_answers(self, count: int) -> None:
        """Wait until so many answers are recorded, which may be after the caller has them; for 10 s at most."""
        _wait_for(self.answers, count)

    def wait_for_resets(self, count: int) -> None:
        """Wait until so many resets are recorded; for 10 s at most."""
        _wait_for(self.resets, count)


def _wait_for(records: list[RecordedExchange], count: int) -> None:
    until = time.monotonic() + 10
    while len(records) < count and time.monotonic() < until:
        time.sleep(0.01)


@contextmanager
def run_recorder(url: str, notes: ListenerLog, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, int]]:
    """Record what goes to a server; yields the address. `url` begins with grpc where it is one of gRPC."""
    parts = urlsplit(url)
    upstream = Upstream(parts.hostname or "", parts.port or 0, tls=tls, url=url)
    proxy = Proxy([Route(0, upstream, GrpcTap if parts.scheme == "grpc" else HttpTap)])
    proxy.listen()
    proxy.serve(notes)
    try:
        yield "127.0.0.1", proxy.ports[0]
    finally:
        proxy.close()
    assert proxy.fault is None
