"""Replaces the subcommands that start a run, `run` and `client run`, by pytest."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from conformance.commands.parser import Parser
from conformance.spec.options import add_run_options
from conformance.spec.user_error import UserError

USAGE_STATUS = 4  # of a usage error, like pytest's; 2 means interrupted


class SuiteUsageError(UserError):
    """The arguments of a run cannot be used; the message is one line."""

    status = USAGE_STATUS


def check_arguments(program: str, arguments: Sequence[str]) -> None:
    """Exit with a one-line error if one of the suite's options has an invalid value; pytest checks its own options.

    `program`: the name of the subcommand, for the error.
    """
    parser = Parser(program, add_help=False)
    parser.usage_status = USAGE_STATUS
    add_run_options(parser.add_argument)
    parser.parse_known_args(arguments)


def exec_pytest(program: str, arguments: Sequence[str]) -> None:
    """Replace this process by pytest, after `check_arguments`."""
    check_arguments(program, arguments)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *arguments])  # noqa: S606 (pytest)
