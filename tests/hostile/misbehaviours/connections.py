"""Connections that end: by a reset or a close, before an answer, inside it, behind it."""

from __future__ import annotations

import socket

from conformance.transport.exchange import FailureKind
from tests.hostile.misbehaviours.rows import comes_to, make_answer, make_head
from tests.hostile.proxy import Misbehaviour, Wire

BAD, BROKEN, CLOSED = FailureKind.MALFORMED, FailureKind.BROKEN, FailureKind.CLOSED
_CHUNKED = make_head(200, "Transfer-Encoding: chunked")
_ANY = (BAD, BROKEN, CLOSED)

# What was sent before the connection ends -> whether a status may have been read by then.
_PLACES = {
    "before-the-head": (b"", False),
    "in-the-status-line": (b"HTTP/1.1 20", False),
    "in-the-head": (b"HTTP/1.1 200 OK\r\nContent-Le", False),
    "behind-the-head": (make_head(200, length=10), True),
    "in-the-body": (make_head(200, length=10) + b"{", True),
    "in-the-size-of-a-chunk": (_CHUNKED + b"1", True),
    "in-a-chunk": (_CHUNKED + b"A\r\n{", True),
    "behind-a-chunk": (_CHUNKED + b"2\r\n{}\r\n", True),
    "in-the-trailers": (_CHUNKED + b"2\r\n{}\r\n0\r\nX: ", True),
}


def _closing(data: bytes) -> Misbehaviour:
    return lambda wire: wire.send(data)


def _resetting(data: bytes) -> Misbehaviour:
    def does(wire: Wire) -> None:
        wire.send(data)
        wire.reset()

    return does


for _place, (_data, _has_status) in _PLACES.items():
    for _end, _made in (("closes", _closing(_data)), ("resets", _resetting(_data))):
        _made.__name__ = f"{_end}-{_place}"
        # A reset may overtake what was sent before it.
        comes_to(*((200, None) if _has_status else (None,)), *_ANY)(_made)


@comes_to(200, None, BROKEN, CLOSED, may_be_whole=True)
def resets_behind_a_whole_answer(wire: Wire) -> None:
    """Answer, and reset the connection at once."""
    wire.send(make_answer())
    wire.reset()


@comes_to(200)
def closes_behind_a_whole_answer(wire: Wire) -> None:
    """Answer, and close the connection without saying so."""
    wire.send(make_answer())


@comes_to(200)
def closes_one_half(wire: Wire) -> None:
    """Answer, say that nothing more will come, and go on reading."""
    wire.send(make_answer())
    wire.connection.shutdown(socket.SHUT_WR)
    wire.await_end()


@comes_to(CLOSED, BROKEN)
def closes_one_half_without_an_answer(wire: Wire) -> None:
    """Say that nothing will come, and go on reading."""
    wire.connection.shutdown(socket.SHUT_WR)
    wire.await_end()
