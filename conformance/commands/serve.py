"""`oip-conformance serve`: the reference server in this process; judge and judged share not even an import."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


def add(commands: Any) -> None:
    """Declare the command."""
    commands.add_parser("serve", help="start the reference server with the arguments that follow")


def run(_: argparse.Namespace) -> NoReturn:
    """Become the reference server."""
    replace_process([])


def replace_process(arguments: Sequence[str]) -> NoReturn:
    """Become the reference server, started with these arguments."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "reference_server", *arguments])  # noqa: S606 (our own module)
