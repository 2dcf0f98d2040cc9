"""What a recording keeps of an exchange beside its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.transport import journal, recording
from conformance.transport.exchange import Call, Exchange, FailureKind, GoAhead, TransportFailure
from conformance.transport.har import NAME
from conformance.transport.settings import Settings
from conformance.wire.request import Message

MESSAGE = Message("/v2", (("Expect", "100-continue"),), b"body")


def record(folder: Path, exchange: Exchange) -> Call:
    """Return a call that has been recorded and read again."""
    journal.Journal(folder, "", Settings("http://h"))(Call("scope", 0, (MESSAGE,), (exchange,)))
    journal.merge(folder, "http://h", {"scope": 0})
    (call,) = recording.load(folder / NAME).calls.values()
    return call


@pytest.mark.parametrize("go_ahead", [None, *GoAhead])
@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_version_and_go_ahead_are_kept(tmp_path: Path, version: str, go_ahead: GoAhead | None) -> None:
    call = record(tmp_path, Exchange(0, MESSAGE, "http://h/v2", 200, version=version, go_ahead=go_ahead))
    assert (call.exchanges[0].version, call.exchanges[0].go_ahead) == (version, go_ahead)
    assert call.messages[0].body == MESSAGE.body


@pytest.mark.parametrize("letter", ["\x85", "\u2028", "\ud800", "\r\n", '"'])
def test_har_with_any_character_can_be_read(tmp_path: Path, letter: str) -> None:
    headers = (("X", f"a{letter}b"),)
    call = record(tmp_path, Exchange(0, MESSAGE, "http://h/v2", 200, headers, b"", details=f"c{letter}d"))
    assert call.exchanges[0].headers == headers


def test_short_wait_is_kept(tmp_path: Path) -> None:
    failure = TransportFailure(FailureKind.TIMEOUT, "no answer within 1 s")
    call = record(tmp_path, Exchange(0, MESSAGE, "http://h/v2", failure=failure, is_short_wait=True))
    assert call.exchanges[0].is_short_wait
