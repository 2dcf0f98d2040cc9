"""The `oip-conformance` command: what is not a run of the suite (that is pytest's part).

Strategy: one function per subcommand that returns text; `main` prints it. Exit status 0, or 2 for a usage error, as
argparse has it. `serve` replaces this process by the reference server, because judge and judged share no code: not
even an import.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from conformance import __version__, init_command, ledger, replay_command, requirements_page, roles
from conformance.certification import certify_command, verify_command
from conformance.certification.manifest import CertificationError
from conformance.export import ExportError
from conformance.export import command as export_command
from conformance.init_command import InitError
from conformance.replay_command import ReplayError
from conformance.report import compare_command, report_command
from conformance.report.reading import ReportError

PROGRAM = "oip-conformance"

EXAMPLES = """examples:
  oip-conformance explain                          every requirement with its level
  oip-conformance explain BIN-ORD-O                one requirement: statement, sources, checks
  oip-conformance requirements > docs/requirements.md
  oip-conformance roles                            every model role: what to deploy to have it judged
  oip-conformance init --target-url http://host:8000 -o target.toml    a role map of that server
  oip-conformance models export --format triton DIR    all roles as models of a real server
  oip-conformance replay evidence                  the failed checks of a run, judged again
  oip-conformance compare a.json b.json -o all.html    what their servers meet, side by side
  oip-conformance report run.json -o run.html      pages and badges of a JSON report
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
        done = COMMANDS[options.command](options)
        text, status = done if isinstance(done, tuple) else (done, 0)
        _show(text)
    except (
        ledger.UnknownRequirementError,
        CertificationError,
        InitError,
        ExportError,
        ReplayError,
        ReportError,
    ) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    return status


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
        description="Companion of the suite: explains requirements, exports models, starts the reference server.",
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
    init_command.add(commands)
    replay_command.add(commands)
    certify_command.add(commands)
    verify_command.add(commands)
    export_command.add(commands)
    compare_command.add(commands)
    report_command.add(commands)
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


COMMANDS: Mapping[str, Callable[[argparse.Namespace], str | tuple[str, int]]] = {
    "explain": lambda options: _explain(options.id),
    "requirements": lambda _: _requirements(),
    "roles": lambda _: _roles(),
    "init": init_command.run,
    "replay": replay_command.run,
    "certify": certify_command.run,
    "verify": verify_command.run,
    "models": export_command.run,
    "compare": compare_command.run,
    "report": report_command.run,
}
