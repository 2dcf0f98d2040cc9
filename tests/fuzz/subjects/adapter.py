"""Lines of an adapter: each is read, or refused with one safe line."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.clients import adapter_lines
from conformance.clients.line_process import AdapterError
from tests.fuzz.refusal import expect_read_or_refused

SEQ, COUNT = 1, 1


def lines(data: bytes) -> None:
    """A line is an answer or is refused; one that is understood and written again is understood as the same."""
    expect_read_or_refused(lambda: _introduction(data), AdapterError)
    expect_read_or_refused(lambda: _results(data), AdapterError)


def _introduction(line: bytes) -> None:
    said = adapter_lines.parse_introduction(line, SEQ)
    assert set(said.transports) <= {"http", "grpc"}


def _results(line: bytes) -> None:
    adapter_lines.parse_results(line, SEQ, COUNT, 0.0)


def answers() -> Iterator[bytes]:
    """Yield an answer of each kind."""
    yield b'{"seq":1,"client":{"name":"n","version":"1","language":"l","transports":["http","grpc"]}}'
    for said in (
        b'{"outputs":[{"name":"O","datatype":"INT8","shape":[2],"data":"AQI="}],"id":"7"}',
        b'{"outputs":[{"name":"O","datatype":"BYTES","shape":[1],"data":"AQAAAGE="}]}',
        b'{"outputs":[{"name":"O","classes":[{"value":"1.5","index":0,"label":"cat"}]}]}',
        b'{"error":{"message":"no","status":400}}',
        b'{"cannot":"no way"}',
    ):
        yield b'{"seq":1,"results":[' + said + b"]}"
