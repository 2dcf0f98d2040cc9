"""What a stranger puts where a file should be."""

from __future__ import annotations

import os
from pathlib import Path


def pipe(path: Path) -> None:
    """Make a pipe that nobody writes to."""
    os.mkfifo(path)


def device(path: Path) -> None:
    """Make a link to what has no end."""
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    """Make a folder."""
    path.mkdir()
