"""`oip-conformance run URL`: the same as `pytest --target-url=URL`, for users who do not know pytest."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from conformance.spec.user_error import UserError

USAGE = "usage: oip-conformance run URL [OPTION ...], with the options that `pytest --help` lists"
# Options that name the server, so that no URL is needed.
ADDRESS_OPTIONS = ("--target-config", "--target-grpc", "--target-replay")


def add(commands: Any) -> None:
    """Add the subcommand."""
    commands.add_parser("run", help="judge a server: `run URL` is the same as `pytest --target-url=URL`")


def run(_: argparse.Namespace) -> NoReturn:
    """Report that the URL is missing.

    Raises:
        UserError: always.
    """
    replace_process([])


def replace_process(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by pytest, to test the server of the first argument or of an option; pass on all options.

    Raises:
        UserError: the first argument is not a URL, and no option names a server.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(f"{USAGE}\n")
        raise SystemExit(0)
    options = list(arguments)
    if arguments and not arguments[0].startswith("-"):
        options[0] = f"--target-url={arguments[0]}"
    elif not any(argument.startswith(ADDRESS_OPTIONS) for argument in arguments):
        raise UserError(f"the first argument of run is the URL of a server; {USAGE}")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *options])  # noqa: S606 (pytest)
