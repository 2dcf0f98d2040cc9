"""`oip-conformance run URL`: the same as `pytest --target-url=URL`, for users who do not know pytest."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from conformance.plugin.options import OPTIONS
from conformance.spec.user_error import UserError

USAGE = "oip-conformance run URL [OPTION ...]"
EPILOG = """pytest's own options work as well, among them:
  -k EXPRESSION    only rows whose check, requirement or area matches
  -x               stop at the first failure
  -n N             use N processes (pip install pytest-xdist)
  --lf             only the rows that failed last time
  --junitxml=FILE  a JUnit report
`pytest --help` lists all of them."""
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
    """Replace this process by pytest with all options, to test the server that the arguments name.

    Raises:
        UserError: the first argument is not a URL, and no option names a server.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        _build_parser().print_help()
        raise SystemExit(0)
    options = list(arguments)
    if arguments and not arguments[0].startswith("-"):
        options[0] = f"--target-url={arguments[0]}"
    elif not any(argument.startswith(ADDRESS_OPTIONS) for argument in arguments):
        raise UserError(f"the first argument of run is the URL of a server; usage: {USAGE}")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *options])  # noqa: S606 (pytest)


def _build_parser() -> argparse.ArgumentParser:
    """Return a parser that prints the options of the suite for servers; pytest itself parses them."""
    parser = argparse.ArgumentParser(
        usage=USAGE,
        description="Judge a server: the same as `pytest --target-url=URL`.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", metavar="URL", help="the server, in front of /v2; 'reference' is the bundled one")
    for name, details in OPTIONS.items():
        if not name.startswith("--client-") and name != "--target-url":
            parser.add_argument(name, **details)
    return parser
