"""Lines of an adapter: each is read, or refused with one safe line."""

from __future__ import annotations

from conformance.clients import adapter_lines
from conformance.clients.line_process import AdapterError
from tests.fuzz.subjects import expect_read_or_refused

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
