"""The `oip-conformance` command. Runs of the suite itself are done by pytest, which the subcommand `run` starts.

Each subcommand is a module with `add_subcommand`, which adds its parser, and `run`, which returns the text to print,
optionally with an exit status. A `UserError` is printed as one line, and its status is the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType

from conformance.commands.parser import Parser
from conformance.spec.user_error import UserError
from conformance.spec.version import __version__

PROGRAM = "oip-conformance"

EXAMPLES = """start here:
  oip-conformance doctor http://host:8000          ask a server what it offers, and which command judges it
  oip-conformance run http://host:8000             judge it; the same as pytest --target-url=http://host:8000
  oip-conformance explain BIN-ORDER-O              explain a requirement that it does not meet
  oip-conformance serve --port 8000                start the bundled server, to try all this

`oip-conformance COMMAND --help` explains a command.
"""

# Subcommand -> its module in this package, in the order of the help. Modules are imported lazily.
COMMANDS: Mapping[str, str] = {
    **{name: name for name in ("run", "doctor", "explain", "requirements", "sources")},
    "roles": "roles_list",
    **{name: name for name in ("walk", "init", "replay")},
    "bug-report": "bug_report",
    **{name: name for name in ("client", "certify", "verify", "registry")},
    "models": "models_export",
    **{name: name for name in ("baseline", "compare", "history", "fleet", "report", "serve", "completion")},
}
# Subcommands that replace this process by another program, unless they are asked for help.
PASSTHROUGH_COMMANDS: Mapping[tuple[str, ...], str] = {
    ("run",): "run",
    ("serve",): "serve",
    ("client", "run"): "client_run",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; a usage error raises `SystemExit`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        _expect_command(arguments[:1])
        returned = _pass_through(arguments) or _run_command(arguments)
    except UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return error.status
    text, status = returned if isinstance(returned, tuple) else (returned, 0)
    _print_text(text)
    return status


def _pass_through(arguments: Sequence[str]) -> tuple[str, int] | None:
    """Replace this process by another program; return what to print if several are run, None for other commands."""
    for words, name in PASSTHROUGH_COMMANDS.items():
        if tuple(arguments[: len(words)]) == words:
            returned: tuple[str, int] | None = _import_command(name).exec_program(arguments[len(words) :])
            return returned
    return None


def _run_command(arguments: Sequence[str]) -> str | tuple[str, int]:
    own, after = (
        _import_command("client").split_command(arguments) if arguments[:1] == ["client"] else (arguments, None)
    )
    options = _parse_arguments(own, after)
    command: Callable[[argparse.Namespace], str | tuple[str, int]] = _import_command(COMMANDS[options.command]).run
    return command(options)


def _expect_command(first: Sequence[str]) -> None:
    """Require that the first argument, if any, is a subcommand or an option.

    Raises UserError: the first argument is neither.
    """
    for word in first:
        if "://" in word:
            raise UserError(f"put a command before the URL, such as `{PROGRAM} run URL`; see `{PROGRAM} --help`")
        if word not in COMMANDS and not word.startswith("-"):
            near = get_close_matches(word, COMMANDS, 1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise UserError(f"there is no command {word!r}{hint}; see `{PROGRAM} --help`")


def _print_text(text: str) -> None:
    """Print to standard output, ignoring a reader that closes early, such as `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _import_command(name: str) -> ModuleType:
    return import_module(f"conformance.commands.{name}")


def _parse_arguments(arguments: Sequence[str], after: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; unknown arguments are a usage error of the subcommand."""
    parser = build_parser(arguments[:1] if arguments and arguments[0] in COMMANDS else list(COMMANDS))
    options, unknown = parser.parse_known_args(arguments, argparse.Namespace(after=after))
    options.parser.reject_unknown_arguments(unknown)
    return options


def build_parser(names: Sequence[str] = tuple(COMMANDS)) -> Parser:
    """Return a parser with these subcommands."""
    parser = Parser(
        PROGRAM,
        description="Judge model servers and clients by the Open Inference Protocol, and work with the results.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names:
        _import_command(COMMANDS[name]).add_subcommand(commands)
    return parser
