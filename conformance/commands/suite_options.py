"""The suite's options in the subcommands that start pytest: `run`, and `client run`."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.commands.parser import Parser
from conformance.plugin.options import OPTIONS
from conformance.spec.user_error import UserError

USAGE_STATUS = 4  # of a usage error, like pytest's; 2 means interrupted


class SuiteUsageError(UserError):
    """The arguments of a run cannot be used; the message is one line."""

    status = USAGE_STATUS


def add_suite_options(parser: Parser, without: tuple[str, ...] = ()) -> None:
    """Add the suite's options to a parser, except those that begin with one of the prefixes in `without`."""
    for name, details in OPTIONS.items():
        if not name.startswith(without):
            parser.add_argument(name, **details)


def expect_valid(program: str, arguments: Sequence[str]) -> None:
    """Exit with a one-line error if one of the suite's options has an invalid value; pytest checks its own options."""
    parser = Parser(program, add_help=False)
    parser.usage_status = USAGE_STATUS
    add_suite_options(parser)
    parser.parse_known_args(arguments)
