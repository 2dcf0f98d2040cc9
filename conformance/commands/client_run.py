"""`oip-conformance client run -- COMMAND`: the same as `pytest --client-adapter=COMMAND`, without quoting."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from conformance.spec.user_error import UserError

USAGE = (
    "usage: oip-conformance client run [OPTION ...] -- COMMAND [ARGUMENT ...], where the command starts an adapter and "
    "the options are those that `pytest --help` lists"
)


def add(commands: Any) -> None:
    """Add the subcommand."""
    commands.add_parser(
        "run", help="lead a client through scenarios: `run -- COMMAND` is the same as `pytest --client-adapter=COMMAND`"
    )


def run(_: argparse.Namespace) -> NoReturn:
    """Report that the command of an adapter is missing.

    Raises:
        UserError: always.
    """
    replace_process([])


def replace_process(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by pytest, to test the client whose adapter the command behind `--` starts.

    Args:
        arguments: pytest options, `--`, and the command.

    Raises:
        UserError: there is no command.
    """
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    options, command = words[:at], words[at + 1 :]
    if {"-h", "--help"} & set(options):
        sys.stdout.write(f"{USAGE}\n")
        raise SystemExit(0)
    if not command:
        raise UserError(f"client run needs the command of an adapter; {USAGE}")
    sys.stdout.flush()
    adapter = f"--client-adapter={shlex.join(command)}"
    os.execv(sys.executable, [sys.executable, "-m", "pytest", adapter, *options])  # noqa: S606 (pytest)
