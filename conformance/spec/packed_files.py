"""Reads long text files from untrusted sources line by line, plain or xz-compressed, or rejects them.

A few bytes can decompress to any size. So the decompressed size, the length of each line, and the number of objects in
each line are limited.
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from conformance.spec.files import MAX_RUN_FILE_BYTES, UnreadableError, read_bytes

XZ_MAGIC: Final = b"\xfd7zXZ\0"
MAX_MEMORY_BYTES: Final = 64 * 1024 * 1024  # bytes of memory that decompression may use
MAX_LINE_BYTES: Final = 64 * 1024 * 1024
# Arrays and objects in a line: an empty one takes two bytes of a file, and sixty of memory.
MAX_BRACKETS: Final = 1_000_000


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, including line endings.

    Raises:
        UnreadableError: see `files.read_bytes`; or it cannot be decompressed, or exceeds the limits.
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
    """Return the content of a file, decompressed if necessary.

    Args:
        path: of the file.
        most: maximum size in bytes, both compressed and decompressed.

    Raises:
        UnreadableError: see `read_lines`.
    """
    octets = read_bytes(path, most)
    return _UnpackingStream(octets, most).read() if octets.startswith(XZ_MAGIC) else octets


class _UnpackingStream(io.RawIOBase):
    """A stream that decompresses bytes; `most` is the maximum of decompressed bytes."""

    def __init__(self, octets: bytes, most: int) -> None:
        self._rest = octets
        self._most = self._room = most
        self._unpack = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed declares a wider type
        found = b""
        while not found and not self._unpack.eof:
            found = self._unpack_next(len(buffer))
        if self._unpack.eof and self._unpack.unused_data:
            raise UnreadableError("has data after its end")
        if len(found) > self._room:
            raise UnreadableError(f"decompresses to more than {self._most} bytes")
        self._room -= len(found)
        buffer[: len(found)] = found
        return len(found)

    def _unpack_next(self, most: int) -> bytes:
        given = b""
        if self._unpack.needs_input:
            given, self._rest = self._rest, b""
            if not given:
                raise UnreadableError("is cut short")
        try:
            return self._unpack.decompress(given, most)
        except lzma.LZMAError as error:
            raise UnreadableError(f"cannot be unpacked: {error}") from error
