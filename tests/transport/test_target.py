"""How long a target that cannot be reached is waited for, and how targets of few connections are served."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

import pytest

from conformance.transport.exchange import Exchange
from conformance.transport.send_options import PLAIN
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError, UnreachableError
from conformance.wire.request import Message

LIVE = Message("/v2/health/live", method="GET")


class FailingTarget(Target):
    """A target that cannot be reached for this reason until it is back."""

    def __init__(self, reason: str, back_after: int, *, is_untrusted: bool = False) -> None:
        super().__init__(Settings("https://h", timeout=60))
        self.reason, self.back_after, self.tries, self.is_untrusted = reason, back_after, 0, is_untrusted

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        del fresh
        self.tries += 1
        if self.tries > self.back_after:
            return Exchange(0, message, "https://h", status=200)
        raise UnreachableError(f"cannot connect to https://h: {self.reason}", is_untrusted=self.is_untrusted)


def test_a_server_that_starts_anew_is_waited_for() -> None:
    target = FailingTarget("Connection refused", back_after=2)
    assert target.send(LIVE).status == 200
    assert (target.tries, target.lost) == (3, None)


def test_a_certificate_that_is_not_trusted_is_not_waited_for() -> None:
    target = FailingTarget("whatever it says", back_after=2, is_untrusted=True)
    with pytest.raises(TargetLostError, match="; --target-ca FILE names the certificates to trust"):
        target.send(LIVE)
    with pytest.raises(TargetLostError):
        target.send(LIVE)
    assert target.tries == 1


HANGING = Message("/hanging", method="GET")
TIMEOUT_S = 2.0


@contextmanager
def serve(kind: type[HTTPServer], requests: list[str]) -> Iterator[Target]:
    """Serve connections one after the other or in parallel, and note the paths of requests; yields the target."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            requests.append(self.path)
            if self.path == HANGING.path:
                self.rfile.read(1)  # until the client goes
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with kind(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        target = Target(Settings(f"http://127.0.0.1:{server.server_port}", timeout=TIMEOUT_S))
        try:
            yield target
        finally:
            target.close()
            server.shutdown()
            thread.join()


def test_a_server_of_one_connection_at_a_time_is_not_kept_waiting() -> None:
    with serve(HTTPServer, []) as target:
        replies = [target.send(LIVE, fresh=fresh) for fresh in (False, True, False, True)]
        replies += target.send_together([LIVE] * 3)
        replies.append(target.send(LIVE))
        replies.append(target.send_with(PLAIN, LIVE))
        assert [reply.status for reply in replies] == [200] * 9
        assert len(target.exchanges) == len(replies)  # the attempt before the first repetition is no evidence
        assert max(one.elapsed for one in target.exchanges) < TIMEOUT_S


def test_a_request_without_answer_is_not_repeated_where_connections_are_served_in_parallel() -> None:
    requests: list[str] = []
    with serve(ThreadingHTTPServer, requests) as target:
        target.send(LIVE)
        assert target.send(HANGING, fresh=True).status is None
    assert requests.count(HANGING.path) == 1
