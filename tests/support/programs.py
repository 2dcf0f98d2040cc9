"""Starts programs that end with the test, so that one which goes wrong ends with a failure and not never."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
