"""Request bodies that are too long for a command, kept as files, so that the command of a failure can send them."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

MAX_FILES = 50
MAX_TOTAL_BYTES = 64 * 1024 * 1024  # of all files together


@dataclass(slots=True)
class SavedBodies:
    """The bodies of one process, in a folder of their own among the user's temporary files.

    Nothing is written before the first body is kept. Who wants all of them asks for evidence.
    """

    _folder: Path | None = None
    _files: dict[str, Path] = field(default_factory=dict)
    _room: int = MAX_TOTAL_BYTES

    def keep(self, body: bytes) -> str | None:
        """Return the file that holds a body; None where there is no room for it."""
        name = hashlib.sha256(body).hexdigest()[:16]
        if name in self._files:
            return str(self._files[name])
        if len(self._files) >= MAX_FILES or len(body) > self._room:
            return None
        try:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="oip-conformance-"))
            path = self._folder / f"{name}.bin"
            path.write_bytes(body)
        except OSError:  # a full disk is no reason to judge otherwise
            return None
        self._files[name] = path
        self._room -= len(body)
        return str(path)
