"""Adapters that tests start: the small one with a trouble, and programs of a few lines."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

SMALL = Path(__file__).with_name("small_adapter.py")
HELLO = '{"seq": 1, "client": {"name": "odd", "transports": ["http"]}}'


def make_small_command(trouble: str = "") -> tuple[str, ...]:
    """Return the command of the small adapter."""
    return (sys.executable, str(SMALL), *([trouble] if trouble else []))


def make_option(command: Sequence[str]) -> str:
    """Return the option of pytest that names an adapter."""
    return f"--client-adapter={shlex.join(command)}"


def make_answering_command(*lines: str, then: str = "") -> tuple[str, ...]:
    """Return the command of a program that answers each line with the next of these, and then does something else."""
    program = (
        f"import sys, os, time\nfor said in {list(lines)!r}:\n    sys.stdin.readline(); print(said, flush=True)\n{then}"
    )
    return (sys.executable, "-c", program)
