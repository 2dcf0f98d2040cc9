"""`oip-conformance completion SHELL`: prints a script that lets a shell complete the command's arguments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from conformance import checks
from conformance.spec import extras, ledger
from conformance.spec.extensions import CHOICES

SHELLS = ("bash", "zsh", "fish")
DESCRIPTION = """\
Print a script with which a shell completes commands, options and their values, and the ids of requirements and checks.

  bash    oip-conformance completion bash > ~/.local/share/bash-completion/completions/oip-conformance
  zsh     oip-conformance completion zsh > DIR/_oip-conformance, in which DIR is a folder of $fpath
  fish    oip-conformance completion fish > ~/.config/fish/completions/oip-conformance.fish

Run it again after an update. It needs the extra completion."""
# The metavars of arguments that are paths.
FILES = frozenset({"EVIDENCE", "FILE", "FLEET", "KEY", "PATH", "REPORT"})
FOLDERS = frozenset({"DIR", "ROOT", "SITE"})


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))


def run(options: argparse.Namespace) -> str:
    """Return the script. Raises MissingExtraError: the extra for completion is not installed."""
    extras.expect_installed("completion", "completion")
    import shtab  # of the extra

    from conformance.commands.main import build_parser  # it imports the subcommands, and so this module

    parser = build_parser()
    for command, action in _list_arguments("", parser):
        action.choices = _list_values(command, action) or action.choices
        if action.metavar in FILES | FOLDERS:
            action.complete = shtab.FILE if action.metavar in FILES else shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=options.shell)).rstrip("\n")


def _list_arguments(command: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield every argument of a parser and of its subcommands, each with the name of its subcommand."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from _list_arguments(name, below)
        else:
            yield command, action


def _list_values(command: str, action: argparse.Action) -> list[str]:
    """Return the values that an argument can have; the help does not list these values, since there are many."""
    if (command, action.dest) == ("bug-report", "requirement"):
        return list(ledger.load())
    if (command, action.dest) == ("explain", "names"):
        every = [check.id for area in checks.PACKAGES for check in checks.list_area_checks(area)]
        return [*ledger.load(), *every]
    return list(CHOICES) if action.dest == "target_extension" else []
