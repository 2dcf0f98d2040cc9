"""Cuts the data of a gRPC stream into messages: each has a byte that says whether it is compressed, and its length.

Source: gRPC over HTTP2, "Length-Prefixed-Message".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from conformance.clients.recording.body_store import Body, Store

PREFIX: Final = 5
_WINDOWS: Final = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class MessageSplitter:
    """Takes the data of one direction of a stream."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._prefix = bytearray()
        self._body: Body | None = None
        self._left = 0

    def feed(self, data: bytes) -> Iterator[tuple[bool, Body]]:
        """Take a piece; yield each message that ends in it, and whether it is compressed."""
        while data or (self._body is not None and not self._left):
            if self._body is None:
                data = self._begin(data)
                continue
            piece, data = data[: self._left], data[self._left :]
            self._body.add(piece)
            self._left -= len(piece)
            if not self._left:
                done, self._body = self._body, None
                yield bool(self._prefix[0]), done
                self._prefix.clear()

    def _begin(self, data: bytes) -> bytes:
        missing = PREFIX - len(self._prefix)
        self._prefix += data[:missing]
        if len(self._prefix) == PREFIX:
            self._left = int.from_bytes(self._prefix[1:], "big")
            self._body = Body(self._store)
        return data[missing:]

    def close(self) -> None:
        """Give back the room of a message that will never end."""
        if self._body is not None:
            self._body.release()
            self._body = None


def decompress_message(data: bytes, coding: str, longest: int) -> bytes | None:
    """Return a message in its plain form; None for a coding that is not known, or what is longer than that."""
    if coding not in _WINDOWS:
        return None
    decoder = zlib.decompressobj(_WINDOWS[coding])
    try:
        plain = decoder.decompress(data, longest)
    except zlib.error:
        return None
    return plain if decoder.eof else None
