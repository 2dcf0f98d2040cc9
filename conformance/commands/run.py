"""`oip-conformance run URL`: the same as `pytest --target-url=URL`, for those who do not think of pytest."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from conformance.spec.user_error import UserError

USAGE = "usage: oip-conformance run URL [OPTION ...], with the options that `pytest --help` lists"


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
    """Become pytest, judging the URL that comes first; what follows is passed on to it.

    Raises:
        UserError: no URL comes first.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(f"{USAGE}\n")
        raise SystemExit(0)
    if not arguments or arguments[0].startswith("-"):
        raise UserError(f"the first argument of run is the URL of a server; {USAGE}")
    sys.stdout.flush()
    url, *options = arguments
    os.execv(sys.executable, [sys.executable, "-m", "pytest", f"--target-url={url}", *options])  # noqa: S606 (pytest)
