"""What a stranger puts where a file should be."""

from __future__ import annotations

import os
from pathlib import Path


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device_link(path: Path) -> None:
    """Make a link to what has no end."""
    path.symlink_to("/dev/zero")


def make_folder(path: Path) -> None:
    path.mkdir()
