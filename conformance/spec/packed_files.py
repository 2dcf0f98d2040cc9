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

from conformance.spec.files import MAX_RUN_FILE_BYTES, UnreadableError, read_bytes

XZ_MAGIC: Final = b"\xfd7zXZ\0"
MAX_MEMORY_BYTES: Final = 64 * 1024 * 1024  # bytes that a file may ask for to be unpacked
MAX_LINE_BYTES: Final = 64 * 1024 * 1024
# Of arrays and objects in a line: an empty one takes two bytes of a file, and sixty of memory.
MAX_BRACKETS: Final = 1_000_000


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, with their ends.

    Raises:
        UnreadableError: see `files.read_bytes`; or it cannot be unpacked, or has more in it than anybody reads.
    """
    octets = read_bytes(path, MAX_RUN_FILE_BYTES)
    if octets.startswith(XZ_MAGIC):
        raw: io.BufferedIOBase = io.BufferedReader(_UnpackingStream(octets, MAX_RUN_FILE_BYTES), 1 << 20)
    else:
        raw = io.BytesIO(octets)
    while line := raw.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise UnreadableError(f"has a line of more than {MAX_LINE_BYTES} bytes")
        if line.count(b"[") + line.count(b"{") > MAX_BRACKETS:
            raise UnreadableError(f"has a line with more than {MAX_BRACKETS} arrays and objects")
        yield line


def read_whole(path: Path, most: int) -> bytes:
    """Return what a file holds, or what it unpacks to.

    Args:
        path: of the file.
        most: bytes that it may have, packed or not.

    Raises:
        UnreadableError: see `read_lines`.
    """
    octets = read_bytes(path, most)
    return _UnpackingStream(octets, most).read() if octets.startswith(XZ_MAGIC) else octets


class _UnpackingStream(io.RawIOBase):
    """What packed octets unpack to, as a stream; `most` is how many bytes that may be."""

    def __init__(self, octets: bytes, most: int) -> None:
        self._rest = octets
        self._most = self._room = most
        self._unpack = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY_BYTES)

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
