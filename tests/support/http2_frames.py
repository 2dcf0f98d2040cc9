"""The server's side of one HTTP/2 connection, frame by frame and made by hand: for what no library would send."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field

import hpack

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM = ACK = 1
END_HEADERS = 4
PREFACE_OCTETS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PREFACE = len(PREFACE_OCTETS)
ANSWER_HEADERS = ((":status", "200"), ("content-type", "application/grpc"))
OK_TRAILERS = (("grpc-status", "0"),)

Pairs = tuple[tuple[str, str], ...]


def frame(kind: int, payload: bytes = b"", *, stream: int = 0, flags: int = 0, length: int | None = None) -> bytes:
    """Return a frame; `length` is what it says of itself, if that is to be a lie."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def block(*pairs: tuple[str, str]) -> bytes:
    """Return a block of headers."""
    return bytes(hpack.Encoder().encode(pairs, huffman=False))


def headers(stream: int, *pairs: tuple[str, str], end: bool = False) -> bytes:
    """Return a frame of headers."""
    return frame(HEADERS, block(*pairs), stream=stream, flags=END_HEADERS | (END_STREAM if end else 0))


def data(stream: int, octets: bytes, *, end: bool = False) -> bytes:
    """Return a frame of data."""
    return frame(DATA, octets, stream=stream, flags=END_STREAM if end else 0)


def add_prefix(message: bytes, *, length: int | None = None, compressed: bool = False) -> bytes:
    """Return a message behind its prefix."""
    size = len(message) if length is None else length
    return bytes([compressed]) + size.to_bytes(4, "big") + message


def answer(stream: int, message: bytes = b"a", *, said: Pairs = OK_TRAILERS, before: Pairs = ANSWER_HEADERS) -> bytes:
    """Return a whole answer."""
    return headers(stream, *before) + data(stream, add_prefix(message)) + headers(stream, *said, end=True)


@dataclass
class Peer:
    """One connection that was accepted."""

    connection: socket.socket
    unread: bytearray = field(default_factory=bytearray)
    has_greeted: bool = False
    has_begun: bool = False

    def greet(self, *settings: tuple[int, int]) -> None:
        """Send the settings, which come first."""
        self.has_greeted = True
        self.send(
            frame(SETTINGS, b"".join(key.to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in settings))
        )

    def call(self, flag: int = END_STREAM) -> int:
        """Wait for a whole call, or for its headers alone with END_HEADERS; return the number of its stream."""
        if not self.has_begun:
            self._take(PREFACE)
            self.has_begun = True
        if not self.has_greeted:
            self.greet()
        while True:
            head = self._take(9)
            self._take(int.from_bytes(head[:3], "big"))
            if head[3] in (DATA, HEADERS) and head[4] & flag:
                return int.from_bytes(head[5:], "big")

    def _take(self, size: int) -> bytes:
        while len(self.unread) < size:
            octets = self.connection.recv(65536)
            if not octets:
                raise ConnectionError
            self.unread += octets
        taken = bytes(self.unread[:size])
        del self.unread[:size]
        return taken

    def send(self, *frames: bytes) -> None:
        """Send frames."""
        self.connection.sendall(b"".join(frames))

    def flood(self, octets: bytes, *, pause: float = 0) -> None:
        """Send the same again and again, until the other side has had enough."""
        with suppress(OSError):
            while True:
                self.connection.sendall(octets)
                time.sleep(pause)

    def wait(self) -> None:
        """Take what comes and say nothing, until the other side has gone."""
        with suppress(OSError):
            while self.connection.recv(65536):
                pass
