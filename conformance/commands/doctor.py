"""`oip-conformance doctor URL`: what a server is, what it offers, and what to run next, in ten lines."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

from conformance.commands.connection_options import add_connection, add_timeout
from conformance.judging.nothing_to_judge import ALL, some
from conformance.judging.selection import ROLES, Subjects
from conformance.judging.session import Session
from conformance.judging.surveying import survey
from conformance.roles import roles
from conformance.survey import discovery
from conformance.survey.survey import Survey
from conformance.terms.extensions import OVER_HTTP, PROTOCOL
from conformance.terms.text import safe
from conformance.terms.user_error import UserError
from conformance.transport import settings
from conformance.transport.credentials import hide
from conformance.transport.header_values import from_command_line
from conformance.transport.settings import SettingsError, without_user
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLost

HEALTH = {"live": "/v2/health/live", "ready": "/v2/health/ready"}
NO_LIST = "the server lists none, at GET /v2/models or POST /v2/repository/index"
NOTHING_TO_JUDGE = 6  # the exit status of a run that would be incomplete


class DoctorError(UserError):
    """The server cannot be asked; the message is one line."""


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "doctor",
        help="say what a server is, what it offers, and what to run next",
        description="Ask a server a few questions, judge nothing, and say in ten lines what it is, which extensions it "
        "offers, which models it has, and which command judges it. Exit status 0: something can be judged; 6: nothing.",
    )
    parser.add_argument("url", metavar="URL", help="the server, in front of /v2")
    add_connection(parser)
    add_timeout(parser)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return what to print, and the exit status.

    Raises:
        DoctorError: the URL cannot be used, or nobody answers.
    """
    try:
        made = settings.make(
            options.url,
            from_command_line(options.target_header),
            ca_file=options.target_ca,
            insecure=options.target_insecure,
            timeout=options.target_timeout,
        )
        with Session(Target(made)) as session, session.target.losing_patience():
            lines, status = _examined(session, options)
    except (SettingsError, TargetLost) as error:
        raise DoctorError(str(error)) from error
    return hide("\n".join(lines), made.secrets), status


def _examined(session: Session, options: argparse.Namespace) -> tuple[list[str], int]:
    target = session.target
    health = ", ".join(f"{'' if target.get(path).succeeded else 'not '}{word}" for word, path in HEALTH.items())
    names = discovery.listed(target)
    subjects, nothing = survey(session)
    if names and not session.survey.roles:
        subjects, nothing = survey(session, Subjects((ALL,), with_roles=False))
    found = session.survey
    lines = [
        f"{'server':20}{_server(found)}; {health}",
        f"{'lists':20}{safe(', '.join(found.listed), 200) or 'no extensions'}",
        *_extensions(found),
        f"{'models':20}{safe(f'{len(names)} listed: {some(names)}', 300) if names else NO_LIST}",
        f"{'roles':20}{len(found.roles)} of {len(roles.load())} filled",
        *([f"{'nothing to judge':20}{safe(nothing.text(), 600)}"] if nothing else []),
        f"{'next':20}{_next(options, found, subjects, is_stuck=nothing is not None)}",
    ]
    return lines, NOTHING_TO_JUDGE if nothing else 0


def _server(found: Survey) -> str:
    named = " ".join(safe(part, 60) for part in (found.name, found.version) if part)
    return named or f"no server metadata ({safe(found.silence, 100) or 'no name'})"


def _extensions(found: Survey) -> Iterator[str]:
    """Yield a line for each extension: how we know of it, or why it is not offered."""
    for name in OVER_HTTP:
        yield f"{name:20}{found.offered.get(name) or found.absence(name)}"


def _next(options: argparse.Namespace, found: Survey, subjects: Subjects, *, is_stuck: bool) -> str:
    """Return the command to run next."""
    headers = [f"{header.partition(':')[0]}: ..." for header in options.target_header]
    more = [part for header in headers for part in ("--target-header", header)]
    more += ["--target-ca", options.target_ca] if options.target_ca else []
    more += ["--target-insecure"] if options.target_insecure else []
    command = ["oip-conformance", "run", without_user(options.url), *more]
    if not (found.roles or found.models):
        return f"{shlex.join([*command, '--target-model'])} NAME, or deploy roles: oip-conformance models export --help"
    if found.models and all(model["trouble"] for model in found.models.values()):
        init = shlex.join(
            ["oip-conformance", "init", "--target-url", without_user(options.url), *more, "-o", "target.toml"]
        )
        return f"{init}, say there what the models take, and: pytest --target-config=target.toml"
    named = [] if subjects == ROLES else ["--target-model", ALL if len(found.models) > 1 else subjects.models[0]]
    return shlex.join([*command, *named, *([f"--target-extension={PROTOCOL}"] if is_stuck else [])])
