"""Answers read as a client gets them: what their pieces are after HTTP's framing, by h11."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import h11

from conformance.clients.answers.script import HttpAnswer

DECODERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@dataclass(frozen=True)
class ReceivedAnswer:
    """An answer that has arrived whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def decoded(self) -> bytes:
        return DECODERS.get(self.headers.get("content-encoding", ""), bytes)(self.body)


def parse_answer(answer: HttpAnswer) -> ReceivedAnswer:
    """Return the answer; raises h11.RemoteProtocolError where it is not whole."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="POST", target="/", headers=[("Host", "x"), ("Content-Length", "0")]))
    parser.send(h11.EndOfMessage())
    for piece in answer.pieces:
        parser.receive_data(piece)
    parser.receive_data(b"")
    head = parser.next_event()
    assert isinstance(head, h11.Response)
    body = b""
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data), event
        body += bytes(event.data)
    return ReceivedAnswer(head.status_code, {name.decode(): value.decode() for name, value in head.headers}, body)
