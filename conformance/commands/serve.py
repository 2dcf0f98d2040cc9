"""`oip-conformance serve`: replaces this process by the reference server, which shares no imports with the suite."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


def add_subcommand(commands: Any) -> None:
    """Add the subcommand."""
    commands.add_parser("serve", help="start the bundled server")


def run(_: argparse.Namespace) -> NoReturn:
    """Replace this process by the reference server."""
    exec_program([])


def exec_program(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the reference server with these arguments."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "reference_server", *arguments])  # noqa: S606 (our own module)
