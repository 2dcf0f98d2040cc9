"""The `oip-conformance` command. Runs of the suite itself are done by pytest, which the subcommand `run` starts.

Each subcommand is a module with `add`, which adds its parser, and `run`, which returns the text to print, optionally
with an exit status. A `UserError` is printed as one line, and its status is the exit status.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from conformance import __version__
from conformance.spec.user_error import UserError

PROGRAM = "oip-conformance"

EXAMPLES = """examples:
  oip-conformance run http://host:8000             a server judged; the same as pytest --target-url=http://host:8000
  oip-conformance doctor http://host:8000          what it is, what it offers, and what to run next
  oip-conformance explain                          every requirement with its level and concern
  oip-conformance explain BIN-ORDER-O              one requirement: statement, sources, checks, faults
  oip-conformance explain golden.valid-case-is-answered    one check; likewise a fault of the reference server
  oip-conformance requirements -o docs/requirements    a page for each area, with an index and a glossary
  oip-conformance sources check DIR                every source looked up in copies of the documents
  oip-conformance roles                            every model role: what to deploy to have it judged
  oip-conformance walk                             what requests are crossed with what, and how completely
  oip-conformance init --target-url http://host:8000 -o target.toml    a role map of that server
  oip-conformance models export --format triton DIR    all roles as models of a real server; python: of one's own
  oip-conformance replay evidence                  the failed rows of a run, judged again
  oip-conformance bug-report evidence -o bugs      a bug report in Markdown for each unmet MUST, for its maintainers
  oip-conformance client run -- python adapter.py    a client led through scenarios; docs/clients.md
  oip-conformance client watch -- pytest tests/integration    what these tests send, judged; serves on port 8000
  oip-conformance compare a.json b.json -o all.html    what their servers meet, side by side
  oip-conformance history reports -o history.html  a product over time: what got fixed, what broke, when
  oip-conformance baseline baseline.toml           whether a baseline is valid, with reasons; also a hook of pre-commit
  oip-conformance fleet fleet.toml -o fleet        many servers judged in one go; docs/fleet.md
  oip-conformance report run.json -o run.html      pages and badges of a JSON report
  oip-conformance registry build . -o site         the site of a repository of certifications; see docs/registry
  oip-conformance serve --port 8000                the reference server; more with: serve --help
"""

# Subcommand -> its module in this package, in the order of the help. Modules are imported lazily.
COMMANDS: Mapping[str, str] = {
    **{name: name for name in ("run", "doctor", "explain", "requirements", "sources")},
    "roles": "roles_list",
    **{name: name for name in ("walk", "init", "replay")},
    "bug-report": "bug_report",
    **{name: name for name in ("client", "certify", "verify", "registry")},
    "models": "models_export",
    **{name: name for name in ("baseline", "compare", "history", "fleet", "report", "serve")},
}
# Subcommands that replace this process by another program, which parses the options.
PASSTHROUGH_COMMANDS: Mapping[tuple[str, ...], str] = {
    ("run",): "run",
    ("serve",): "serve",
    ("client", "run"): "client_run",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors exit with the status of the subcommand.

    Attributes:
        usage_status: the exit status of usage errors; not 2 if 2 means something else for the subcommand.
    """

    usage_status = 2

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit."""
        self.print_usage(sys.stderr)
        self.exit(self.usage_status, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; a usage error raises `SystemExit` with status 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        for words, name in PASSTHROUGH_COMMANDS.items():
            if tuple(arguments[: len(words)]) == words:
                _import_command(name).replace_process(arguments[len(words) :])
        own, after = (
            _import_command("client").split_command(arguments) if arguments[:1] == ["client"] else (arguments, None)
        )
        options = _parse_arguments(own, after)
        command: Callable[[argparse.Namespace], str | tuple[str, int]] = _import_command(COMMANDS[options.command]).run
        returned = command(options)
    except UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return error.status
    text, status = returned if isinstance(returned, tuple) else (returned, 0)
    _print_text(text)
    return status


def _print_text(text: str) -> None:
    """Print to standard output, ignoring a reader that closes early, such as `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _import_command(name: str) -> ModuleType:
    return import_module(f"conformance.commands.{name}")


def _parse_arguments(arguments: Sequence[str], after: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; unknown ones are a usage error of the subcommand."""
    parser = _build_parser(arguments[:1] if arguments and arguments[0] in COMMANDS else list(COMMANDS))
    options, unknown = parser.parse_known_args(arguments, argparse.Namespace(after=after))
    if unknown:
        parser.usage_status = getattr(_import_command(COMMANDS[options.command]), "USAGE", parser.usage_status)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _build_parser(names: Sequence[str]) -> Parser:
    """Return a parser with these subcommands."""
    parser = Parser(
        PROGRAM,
        description="Companion of the suite: explains what it judges, exports models, starts the reference server.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names:
        _import_command(COMMANDS[name]).add(commands)
    return parser
