"""Starts programs that end with the test, so that one which goes wrong ends with a failure and not never."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MAX_PROGRAM_S = 15.0  # seconds


@contextmanager
def start_program(command: Sequence[str], **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a program that says its lines, and end it with the block, however that ends.

    Args:
        command: the program and its arguments.
        how: what else `subprocess.Popen` takes; what the program says goes into a pipe unless that says otherwise.

    Raises:
        TimeoutExpired: it does not end within PATIENCE of SIGTERM; it is killed then.
    """
    with subprocess.Popen(command, **{"stdout": subprocess.PIPE, "text": True, **how}) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(MAX_PROGRAM_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line that a program says, without its end."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def find_children(process: int) -> set[int]:
    """Return the processes that a process has started, by whichever of its threads, and those that these have."""
    own: set[int] = set()
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            own.update(map(int, path.read_text().split()))
    return own.union(*map(find_children, own))


def is_running(process: int) -> bool:
    """Say whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
