"""`oip-conformance client run -- COMMAND`: the same as `pytest --client-adapter=COMMAND`, without quoting."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any

from conformance.commands.parser import Parser
from conformance.commands.pytest_process import USAGE_STATUS, SuiteUsageError, exec_pytest
from conformance.spec.options import add_run_options

USAGE = "oip-conformance client run [OPTION ...] -- COMMAND [ARGUMENT ...]"
# Options, by their beginnings, that do not concern a client.
_SERVER_OPTIONS = (
    *("--target-", "--conformance-seed", "--conformance-dangerous"),
    *("--conformance-concurrency", "--conformance-robustness"),
)


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options, which its help lists; pytest parses the options again."""
    parser: Parser = commands.add_parser(
        "run",
        help="lead a client through scenarios",
        usage=USAGE,
        description="Lead a client through scenarios: the same as `pytest --client-adapter=COMMAND`. COMMAND starts "
        "an adapter, a small program that makes inferences with the client; docs/clients.md explains it.",
        epilog="pytest's own options work as well; `pytest --help` lists them.",
    )
    parser.usage_status = USAGE_STATUS
    add_run_options(parser.add_argument, without=("--client-adapter", *_SERVER_OPTIONS))


def run(_: argparse.Namespace) -> None:
    """Report that the adapter's command is missing; `exec_program` handles arguments with a command."""
    exec_program([])


def exec_program(arguments: Sequence[str]) -> None:
    """Replace this process by pytest, to test the client whose adapter is started by the command after `--`.

    `arguments`: pytest options, `--`, and the command. If the options ask for help, this function returns.

    Raises SuiteUsageError: there is no command.
    """
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    options, command = words[:at], words[at + 1 :]
    if {"-h", "--help"} & set(options):
        return
    if not command:
        raise SuiteUsageError(f"client run needs the command of an adapter after --: {USAGE}")
    exec_pytest("oip-conformance client run", [f"--client-adapter={shlex.join(command)}", *options])
