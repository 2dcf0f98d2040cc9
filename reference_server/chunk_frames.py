"""What stands around the chunks of a body: sizes, extensions, trailers. The parser bounds none of them.

It says neither how large a chunk is nor where its line ends, only that one begins, goes on and ends. What it has passed
on of a chunk is the end of the bytes that it was given, so that the line with the size stands right in front.
Source: RFC 9112, 7.1 "Chunked Transfer Coding": limits on extensions and sizes are asked of whoever reads them.
"""

from __future__ import annotations

from contextlib import suppress

from reference_server import heads
from reference_server.heads import HeadRefusal
from reference_server.limits import Limits


class ChunkFrames:
    """The frames of one body."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._is_in_chunk = False
        self._has_new_line = False  # the size of this chunk is not known yet
        self._has_moved = True  # a chunk began, went on or ended in these bytes
        self._taken = 0  # bytes of the chunk that have come
        self._line = b""  # what came of a line before its end did, shortened
        self._outside = 0  # bytes since the last chunk moved

    def begin_chunk(self) -> None:
        """Note that the line with the size of a chunk has ended; that of the last one, of no bytes, as well."""
        self._is_in_chunk = self._has_new_line = self._has_moved = True
        self._taken = 0

    def take(self, size: int) -> None:
        """Note bytes of a chunk."""
        self._has_moved = True
        self._taken += size

    def end_chunk(self) -> None:
        """Note the end of a chunk."""
        self._is_in_chunk, self._has_moved = False, True

    def refusal(self, data: bytes) -> HeadRefusal | None:
        """Return why these bytes, which the parser has just read, are refused, or None."""
        self._outside = 0 if self._has_moved else self._outside + len(data)
        self._has_moved = False
        if self._is_in_chunk and self._has_new_line:
            self._has_new_line = False
            if self._size(self._line + data[: len(data) - self._taken]) > self._limits.body:
                return heads.CHUNK_TOO_LARGE
        self._line = b"" if self._is_in_chunk else (self._line + data)[-64:]
        return heads.TOO_MUCH_FRAME if self._outside > self._limits.head else None

    @staticmethod
    def _size(before: bytes) -> int:
        """Return the size on the line that these bytes end with; 0 where its digits are out of sight."""
        line = before.removesuffix(b"\r\n").rpartition(b"\n")[2]
        with suppress(ValueError):
            return int(line.partition(b";")[0], 16)
        return 0
