"""Long files of lines, packed with xz or plain, from whoever: read line by line, or refused with a sentence.

A few bytes unpack to as many as one likes, so that what is unpacked is bounded, and each line of it, and what a parser
would make of a line.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.terms.files import WRITTEN_BY_A_RUN, UnreadableError, read_bytes

MAGIC: Final = b"\xfd7zXZ\0"
MEMORY: Final = 64 * 1024 * 1024  # bytes that a file may ask for to be unpacked
LONGEST_LINE: Final = 64 * 1024 * 1024
# Of arrays and objects in a line: an empty one takes two bytes of a file, and sixty of memory.
MOST_BRACKETS: Final = 1_000_000


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, with their ends.

    Raises:
        UnreadableError: see `files.read_bytes`; or it cannot be unpacked, or has more in it than anybody reads.
    """
    octets = read_bytes(path, WRITTEN_BY_A_RUN)
    if octets.startswith(MAGIC):
        raw: io.BufferedIOBase = io.BufferedReader(_Unpacked(octets, WRITTEN_BY_A_RUN), 1 << 20)
    else:
        raw = io.BytesIO(octets)
    while line := raw.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise UnreadableError(f"has a line of more than {LONGEST_LINE} bytes")
        if line.count(b"[") + line.count(b"{") > MOST_BRACKETS:
            raise UnreadableError(f"has a line with more than {MOST_BRACKETS} arrays and objects")
        yield line


def whole(path: Path, most: int) -> bytes:
    """Return what a file holds, or what it unpacks to.

    Args:
        path: of the file.
        most: bytes that it may have, packed or not.

    Raises:
        UnreadableError: see `lines`.
    """
    octets = read_bytes(path, most)
    return _Unpacked(octets, most).read() if octets.startswith(MAGIC) else octets


class _Unpacked(io.RawIOBase):
    """What packed octets unpack to, as a stream; `most` is how many bytes that may be."""

    def __init__(self, octets: bytes, most: int) -> None:
        self._rest = octets
        self._most = self._room = most
        self._unpack = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # that of typeshed is wider
        found = b""
        while not found and not self._unpack.eof:
            found = self._next(len(buffer))
        if self._unpack.eof and self._unpack.unused_data:
            raise UnreadableError("goes on behind its end")
        if len(found) > self._room:
            raise UnreadableError(f"unpacks to more than {self._most} bytes")
        self._room -= len(found)
        buffer[: len(found)] = found
        return len(found)

    def _next(self, most: int) -> bytes:
        given = b""
        if self._unpack.needs_input:
            given, self._rest = self._rest, b""
            if not given:
                raise UnreadableError("is cut short")
        try:
            return self._unpack.decompress(given, most)
        except lzma.LZMAError as error:
            raise UnreadableError(f"cannot be unpacked: {error}") from error
