"""`oip-conformance client`: clients under judgement, watched at what they do or led through scenarios."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from conformance.commands import client_run, client_watch

# Subcommand -> its module, in the order of the help.
SUBCOMMANDS: Mapping[str, ModuleType] = {"watch": client_watch, "run": client_run}


def add(commands: Any) -> None:
    """Declare the command and those below it."""
    parser = commands.add_parser("client", help="judge clients: watch what they send, or lead one through scenarios")
    below = parser.add_subparsers(dest="client_command", metavar="COMMAND", required=True)
    for module in SUBCOMMANDS.values():
        module.add(below)


def run(options: argparse.Namespace) -> str | tuple[str, int]:
    """Do what was asked for; see the modules of the subcommands."""
    done: str | tuple[str, int] = SUBCOMMANDS[options.client_command].run(options)
    return done


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Return our own arguments, and the command of somebody's client behind `--`; None where there is no `--`."""
    words = list(arguments)
    if words[:1] != ["client"] or "--" not in words:
        return words, None
    at = words.index("--")
    return words[:at], words[at + 1 :]
