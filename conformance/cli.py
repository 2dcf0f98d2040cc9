"""The `oip-conformance` command: what is not a run of the suite (that is pytest's part).

Strategy: one function per subcommand that returns text; `main` prints it. Exit status 0, or 2 for a usage error, as
argparse has it. `serve` replaces this process by the reference server, because judge and judged share no code: not
even an import.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from conformance import __version__, ledger, requirements_page, roles

PROGRAM = "oip-conformance"

EXAMPLES = """examples:
  oip-conformance explain                          every requirement with its level
  oip-conformance explain BIN-ORD-O                one requirement: statement, sources, checks
  oip-conformance requirements > docs/requirements.md
  oip-conformance roles                            every model role: what to deploy to have it judged
  oip-conformance serve --port 8000                the reference server; more with: serve --help

To judge a server: pytest --target-url=http://host:8000
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; a usage error raises `SystemExit` with status 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        serve(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        _show(_explain(options.id) if options.command == "explain" else PAGES[options.command]())
    except ledger.UnknownRequirementError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    return 0


def _show(text: str) -> None:
    """Print to a reader that may leave early, such as `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def serve(arguments: Sequence[str]) -> NoReturn:
    """Become the reference server, started with these arguments."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "reference_server", *arguments])  # noqa: S606 (our own module)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROGRAM,
        description="Companion of the conformance suite: explains requirements and starts the reference server.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    explain = commands.add_parser("explain", help="print one requirement, or list all of them")
    explain.add_argument("id", nargs="?", metavar="ID", help="for instance BIN-ORD-O; without it, all ids with levels")
    commands.add_parser("requirements", help="print docs/requirements.md")
    commands.add_parser("roles", help="print every model role with its signature")
    commands.add_parser("serve", help="start the reference server with the arguments that follow")
    return parser


def _checks() -> Mapping[str, Sequence[str]]:
    """Return the ids of the checks by requirement; imported here, since it loads the whole suite."""
    from conformance.checks import answers_by_requirement

    return answers_by_requirement()


def _explain(requirement_id: str | None) -> str:
    if requirement_id is None:
        return "\n".join(f"{entry.id:<20}{entry.level:<9}{entry.area}" for entry in ledger.load().values())
    entry = ledger.requirement(requirement_id.upper())
    return ledger.explain(entry.id, _checks())


def _requirements() -> str:
    return requirements_page.render(ledger.load(), _checks()).removesuffix("\n")


def _roles() -> str:
    return "\n".join(line for role in roles.load().values() for line in _role(role))


def _role(role: roles.Role) -> list[str]:
    traits = [role.compute, *(["batching"] if role.batching else []), *(["labels"] if role.labels else [])]
    return [
        f"{role.name} ({', '.join(traits)}): {role.purpose}",
        f"    in   {_signature(role.inputs)}",
        f"    out  {_signature(role.outputs)}",
    ]


def _signature(specs: Sequence[roles.TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {spec.datatype} {list(spec.shape)}" for spec in specs)


PAGES = {"requirements": _requirements, "roles": _roles}
