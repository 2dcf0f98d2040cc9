"""The `oip-conformance` command: what is not a run of the suite (that is pytest's part, which `run` starts).

Each subcommand is a module with `add`, which declares it, and `run`, which returns what to print, with an exit status
where that is not 0. A `UserError` is printed as one line and ends with its status.
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


class Parser(argparse.ArgumentParser):
    """As argparse has it, but for the exit status of a usage error.

    Attributes:
        usage_status: that one; another than argparse's where 2 means something else.
    """

    usage_status = 2

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, and end."""
        self.print_usage(sys.stderr)
        self.exit(self.usage_status, f"{self.prog}: error: {message}\n")


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

# Subcommand -> its module in this package, in the order of the help. A module is imported for its own command alone.
COMMANDS: Mapping[str, str] = {
    **{name: name for name in ("run", "doctor", "explain", "requirements", "sources")},
    "roles": "roles_list",
    **{name: name for name in ("walk", "init", "replay", "client", "certify", "verify", "registry")},
    "models": "models_export",
    **{name: name for name in ("baseline", "compare", "history", "fleet", "report", "serve")},
}
# Those that become another program, whose options are its own.
PASSTHROUGH_COMMANDS: Mapping[tuple[str, ...], str] = {
    ("run",): "run",
    ("serve",): "serve",
    ("client", "run"): "client_run",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; a usage error raises `SystemExit` with status 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        for words, name in PASSTHROUGH_COMMANDS.items():
            if tuple(arguments[: len(words)]) == words:
                _module(name).replace_process(arguments[len(words) :])
        own, after = _module("client").split_command(arguments) if arguments[:1] == ["client"] else (arguments, None)
        options = _parsed(own, after)
        command: Callable[[argparse.Namespace], str | tuple[str, int]] = _module(COMMANDS[options.command]).run
        done = command(options)
    except UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return error.status
    text, status = done if isinstance(done, tuple) else (done, 0)
    _show(text)
    return status


def _show(text: str) -> None:
    """Print to a reader that may leave early, such as `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(name: str) -> ModuleType:
    return import_module(f"conformance.commands.{name}")


def _parsed(arguments: Sequence[str], after: Sequence[str] | None) -> argparse.Namespace:
    """Return the options; words that nobody knows are a usage error of the subcommand."""
    parser = _parser(arguments[:1] if arguments and arguments[0] in COMMANDS else list(COMMANDS))
    options, unknown = parser.parse_known_args(arguments, argparse.Namespace(after=after))
    if unknown:
        parser.usage_status = getattr(_module(COMMANDS[options.command]), "USAGE", parser.usage_status)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _parser(names: Sequence[str]) -> Parser:
    """Return a parser of these commands."""
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
        _module(COMMANDS[name]).add(commands)
    return parser
