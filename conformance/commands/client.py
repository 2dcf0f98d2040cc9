"""`oip-conformance client`: tests clients, by watching their requests or by leading them through scenarios."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from conformance.commands import client_run, client_watch

# Subcommand -> its module, in the order of the help.
SUBCOMMANDS: Mapping[str, ModuleType] = {"watch": client_watch, "run": client_run}


def add_subcommand(commands: Any) -> None:
    """Add the command and its subcommands."""
    parser = commands.add_parser(
        "client",
        help="judge clients: watch their requests, or lead one through scenarios",
        description="Judge clients: watch their requests, or lead one through scenarios. See docs/clients.md.",
    )
    below = parser.add_subparsers(dest="client_command", metavar="COMMAND", required=True)
    for module in SUBCOMMANDS.values():
        module.add_subcommand(below)


def run(options: argparse.Namespace) -> str | tuple[str, int]:
    """Run the chosen subcommand; see the modules in `SUBCOMMANDS`."""
    done: str | tuple[str, int] = SUBCOMMANDS[options.client_command].run(options)
    return done


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Split arguments at `--` into options and the command to run; None instead of the command without `--`."""
    words = list(arguments)
    if words[:1] != ["client"] or "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]
