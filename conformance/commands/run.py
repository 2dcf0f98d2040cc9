"""`oip-conformance run URL`: the same as `pytest --target-url=URL`, for users who do not know pytest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from conformance.commands import run_through
from conformance.commands.parser import Parser
from conformance.commands.pytest_process import USAGE_STATUS, SuiteUsageError, exec_pytest
from conformance.spec.options import SERVER_ADDRESSES, add_run_options
from conformance.transport.reference import REFERENCE

USAGE = "oip-conformance run URL [OPTION ...]"
EPILOG = """pytest's own options work as well, among them:
  -k EXPRESSION    only rows whose check, requirement or area matches
  -x               stop at the first failure
  -n N             use N processes (pip install pytest-xdist)
  --lf             only the rows that failed last time
  --junitxml=FILE  a JUnit report
`pytest --help` lists all of them."""


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options, which its help lists; pytest parses the options again."""
    parser: Parser = commands.add_parser(
        "run",
        help="judge a server",
        usage=USAGE,
        description="Judge a server: the same as `pytest --target-url=URL`.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.usage_status = USAGE_STATUS
    parser.add_argument(
        "url", metavar="URL", help=f"the base URL of the server, without /v2; {REFERENCE!r} is the bundled one"
    )
    run_through.add_through_options(parser.add_argument)
    add_run_options(parser.add_argument, without=("--client-", "--target-url"))


def run(_: argparse.Namespace) -> None:
    """Report that the server's URL is missing; `exec_program` handles arguments with a URL."""
    exec_program([])


def exec_program(arguments: Sequence[str]) -> tuple[str, int] | None:
    """Replace this process by pytest, to test the server that the arguments name; return if the arguments ask for help.

    With `--through`, run pytest in both ways, and return the text to print and the exit status.

    Raises SuiteUsageError: the first argument is not a URL, and no option names a server.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        return None
    options = list(arguments)
    if arguments and not arguments[0].startswith("-"):
        options[0] = f"--target-url={arguments[0]}"
    elif not any(argument.startswith(SERVER_ADDRESSES) for argument in arguments):
        raise SuiteUsageError(f"run needs the URL of a server: {USAGE}")
    if run_through.is_asked_for(options):
        return run_through.run_both(options)
    exec_pytest("oip-conformance run", options)
    return None
