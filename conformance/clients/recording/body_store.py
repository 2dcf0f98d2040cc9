"""How much of what passes is kept to be judged: each body up to a limit, and all of them together up to another."""

from __future__ import annotations

from typing import Final

MAX_BODY_BYTES: Final = 64 * 1024 * 1024  # bytes of one body
MAX_HEAD_BYTES: Final = 256 * 1024
MAX_TOTAL_BYTES: Final = 512 * 1024 * 1024  # bytes of all bodies that are on their way at a time


class Store:
    """The room that all connections of a recording share."""

    def __init__(self, most: int = MAX_TOTAL_BYTES, longest: int = MAX_BODY_BYTES) -> None:
        self.left = most
        self.longest = longest


class Body:
    """A body as far as it is kept; what does not fit is counted alone.

    Attributes:
        length: of all that came.
        is_whole: whether all of it is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pieces = bytearray()
        self.length = 0
        self.is_whole = True

    def add(self, data: bytes | bytearray) -> None:
        """Take the next bytes."""
        self.length += len(data)
        if self.is_whole and (self.length > self._store.longest or len(data) > self._store.left):
            self.is_whole = False
            self.release()
        if self.is_whole:
            self._store.left -= len(data)
            self._pieces += data

    def release(self) -> bytes:
        """Give the room back, and return what was kept: nothing where that was not all."""
        kept = bytes(self._pieces)
        self._store.left += len(kept)
        self._pieces = bytearray()
        return kept if self.is_whole else b""
