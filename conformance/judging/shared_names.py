"""A set of names that forked processes share: each sees at once what another has added."""

from __future__ import annotations

import json
from mmap import mmap
from multiprocessing import get_context
from typing import Final

MAX_BYTES: Final = 1 << 20  # of all names; further names are not shared


class SharedNames:
    """A set of names, which the processes share that are forked after its creation."""

    def __init__(self) -> None:
        self._memory = mmap(-1, MAX_BYTES)  # a line of JSON for each name, then zeros
        self._lock = get_context("fork").Lock()
        self._names: set[str] = set()
        self._read = 0

    def add(self, name: str) -> None:
        """Add a name."""
        line = json.dumps(name).encode() + b"\n"
        with self._lock:
            end = self._memory.find(b"\0")
            if end + len(line) < MAX_BYTES:
                self._memory[end : end + len(line)] = line

    def __contains__(self, name: object) -> bool:
        """Return whether any process has added a name."""
        end = self._memory.rfind(b"\n", self._read, self._memory.find(b"\0", self._read)) + 1
        if end:
            self._names |= set(map(json.loads, self._memory[self._read : end].splitlines()))
            self._read = end
        return name in self._names
