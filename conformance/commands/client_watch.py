"""`oip-conformance client watch`: judges every request that any client sends, and forwards it unchanged."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Declare the command."""
    commands.add_parser("watch", help="judge what clients send to a server, or to the bundled one")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Watch until the end, and return what to print and the exit status."""
    raise NotImplementedError
