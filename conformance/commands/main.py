"""The `oip-conformance` command: what is not a run of the suite (that is pytest's part, which `run` starts).

Each subcommand is a module with `add`, which declares it, and `run`, which returns what to print, with an exit status
where that is not 0. A `UserError` is printed as one line and ends with status 2, as argparse has it for a usage error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from conformance import __version__
from conformance.commands import (
    certify,
    client,
    client_run,
    compare,
    doctor,
    explain,
    history,
    init,
    models_export,
    replay,
    report,
    requirements,
    roles_list,
    run,
    serve,
    sources,
    verify,
    walk,
)
from conformance.terms.user_error import UserError

PROGRAM = "oip-conformance"

EXAMPLES = """examples:
  oip-conformance run http://host:8000             a server judged; the same as pytest --target-url=http://host:8000
  oip-conformance doctor http://host:8000          what it is, what it offers, and what to run next
  oip-conformance explain                          every requirement with its level
  oip-conformance explain BIN-ORDER-O              one requirement: statement, sources, checks, faults
  oip-conformance explain golden.valid-case-is-answered    one check; likewise a fault of the reference server
  oip-conformance requirements -o docs/requirements    a page for each area, with an index and a glossary
  oip-conformance sources check DIR                every source looked up in copies of the documents
  oip-conformance roles                            every model role: what to deploy to have it judged
  oip-conformance walk                             what requests are crossed with what, and how completely
  oip-conformance init --target-url http://host:8000 -o target.toml    a role map of that server
  oip-conformance models export --format triton DIR    all roles as models of a real server
  oip-conformance replay evidence                  the failed checks of a run, judged again
  oip-conformance client run -- python adapter.py    a client led through scenarios; docs/clients.md
  oip-conformance client watch -- pytest tests/integration    what these tests send, judged; serves on port 8000
  oip-conformance compare a.json b.json -o all.html    what their servers meet, side by side
  oip-conformance history reports -o history.html  a product over time: what got fixed, what broke, when
  oip-conformance report run.json -o run.html      pages and badges of a JSON report
  oip-conformance serve --port 8000                the reference server; more with: serve --help
"""

# Subcommand -> its module, in the order of the help.
COMMANDS: Mapping[str, ModuleType] = {
    "run": run,
    "doctor": doctor,
    "explain": explain,
    "requirements": requirements,
    "sources": sources,
    "roles": roles_list,
    "walk": walk,
    "init": init,
    "replay": replay,
    "client": client,
    "certify": certify,
    "verify": verify,
    "models": models_export,
    "compare": compare,
    "history": history,
    "report": report,
    "serve": serve,
}
# Those that become another program, whose options are its own.
OF_OTHERS: Mapping[tuple[str, ...], ModuleType] = {("run",): run, ("serve",): serve, ("client", "run"): client_run}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; a usage error raises `SystemExit` with status 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        for words, module in OF_OTHERS.items():
            if tuple(arguments[: len(words)]) == words:
                module.replace_process(arguments[len(words) :])
        own, after = client.divided(arguments)
        options = _parser().parse_args(own, argparse.Namespace(after=after))
        command: Callable[[argparse.Namespace], str | tuple[str, int]] = COMMANDS[options.command].run
        done = command(options)
    except UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    text, status = done if isinstance(done, tuple) else (done, 0)
    _show(text)
    return status


def _show(text: str) -> None:
    """Print to a reader that may leave early, such as `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROGRAM,
        description="Companion of the suite: explains what it judges, exports models, starts the reference server.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS.values():
        module.add(commands)
    return parser
