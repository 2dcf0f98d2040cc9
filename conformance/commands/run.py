"""`oip-conformance run URL`: the same as `pytest --target-url=URL`, for those who do not think of pytest."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from conformance.spec.user_error import UserError

USAGE = "usage: oip-conformance run URL [OPTION ...], with the options that `pytest --help` lists"
# Options that say which server it is, so that no URL has to.
ADDRESS_OPTIONS = ("--target-config", "--target-grpc", "--target-replay")


def add(commands: Any) -> None:
    """Declare the command."""
    commands.add_parser("run", help="judge a server: `run URL` is the same as `pytest --target-url=URL`")


def run(_: argparse.Namespace) -> NoReturn:
    """Say that there is no URL.

    Raises:
        UserError: always.
    """
    replace_process([])


def replace_process(arguments: Sequence[str]) -> NoReturn:
    """Become pytest, judging the URL that comes first, or the server that an option names; pass all options on to it.

    Raises:
        UserError: no URL comes first, and no option names a server.
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
