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

    Raises UnreadableError: see `files.read_bytes`; or the file cannot be decompressed, or exceeds the limits.
    """
    octets = read_bytes(path, MAX_RUN_FILE_BYTES)
    if octets.startswith(XZ_MAGIC):
        raw: io.BufferedIOBase = io.BufferedReader(_DecompressingStream(octets, MAX_RUN_FILE_BYTES), 1 << 20)
    else:
        raw = io.BytesIO(octets)
    while line := raw.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise UnreadableError(f"has a line of more than {MAX_LINE_BYTES} bytes")
        if line.count(b"[") + line.count(b"{") > MAX_BRACKETS:
            raise UnreadableError(f"has a line with more than {MAX_BRACKETS} arrays and objects")
        yield line


def read_file_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the content of a file, decompressed if necessary.

    `max_bytes`: the maximum size, both compressed and decompressed.

    Raises UnreadableError: see `read_lines`.
    """
    octets = read_bytes(path, max_bytes)
    return _DecompressingStream(octets, max_bytes).read() if octets.startswith(XZ_MAGIC) else octets


class _DecompressingStream(io.RawIOBase):
    """A stream that decompresses `octets`, and raises `UnreadableError` after `max_bytes` decompressed bytes."""

    def __init__(self, octets: bytes, max_bytes: int) -> None:
        self._unread = octets
        self._max_bytes = self._remaining_bytes = max_bytes
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed declares a wider type
        found = b""
        while not found and not self._decompressor.eof:
            found = self._decompress_next(len(buffer))
        if self._decompressor.eof and self._decompressor.unused_data:
            raise UnreadableError("has data after the end of its compressed data")
        if len(found) > self._remaining_bytes:
            raise UnreadableError(f"decompresses to more than {self._max_bytes} bytes")
        self._remaining_bytes -= len(found)
        buffer[: len(found)] = found
        return len(found)

    def _decompress_next(self, max_bytes: int) -> bytes:
        given = b""
        if self._decompressor.needs_input:
            given, self._unread = self._unread, b""
            if not given:
                raise UnreadableError("is cut short")
        try:
            return self._decompressor.decompress(given, max_bytes)
        except lzma.LZMAError as error:
            raise UnreadableError(f"cannot be decompressed: {error}") from error
