"""`oip-conformance client run -- COMMAND`: the same as `pytest --client-adapter=COMMAND`, without quoting."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from conformance.commands.parser import Parser
from conformance.commands.suite_options import USAGE_STATUS, SuiteUsageError, add_suite_options, expect_valid

USAGE = "oip-conformance client run [OPTION ...] -- COMMAND [ARGUMENT ...]"


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
    add_suite_options(parser, without=("--target-", "--client-adapter"))


def run(_: argparse.Namespace) -> None:
    """Report that the adapter's command is missing; `exec_program` handles arguments with a command."""
    exec_program([])


def exec_program(arguments: Sequence[str]) -> None:
    """Replace this process by pytest, to test the client whose adapter is started by the command after `--`.

    Args:
        arguments: pytest options, `--`, and the command. If the options ask for help, this function returns.

    Raises:
        SuiteUsageError: there is no command.
    """
    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    options, command = words[:at], words[at + 1 :]
    if {"-h", "--help"} & set(options):
        return
    if not command:
        raise SuiteUsageError(f"client run needs the command of an adapter after --: {USAGE}")
    expect_valid("oip-conformance client run", options)
    sys.stdout.flush()
    adapter = f"--client-adapter={shlex.join(command)}"
    os.execv(sys.executable, [sys.executable, "-m", "pytest", adapter, *options])  # noqa: S606 (pytest)
