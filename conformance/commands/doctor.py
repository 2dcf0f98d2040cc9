"""`oip-conformance doctor URL`: describes a server, its extensions and models, and suggests the next command."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.commands.connection_options import (
    add_connection_options,
    add_timeout_option,
    add_url_argument,
    make_settings,
    serve_reference,
)
from conformance.discovery import model_discovery, placement_search
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.run_start import ALL_MODELS, discover_subjects, list_first_names
from conformance.judging.selection import Subjects
from conformance.judging.session import Session
from conformance.report.deployed_models import describe_nondeterministic_model, format_signature
from conformance.roles import roles
from conformance.spec.extensions import OVER_HTTP, PROTOCOL
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport.credentials import hide
from conformance.transport.settings import SettingsError, strip_user
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError

HEALTH = {"live": "/v2/health/live", "ready": "/v2/health/ready"}
QUICK = "--conformance-profile=quick"
JUDGE_COMMAND = f"pytest --target-config=target.toml {QUICK}"
NO_LIST = "the server lists no models, at GET /v2/models or POST /v2/repository/index"
NOT_FILLED = "deploy models for the others, or declare the server's limits in a target file: oip-conformance init"
NOTHING_TO_JUDGE = 6  # the exit status of an incomplete run


class DoctorError(UserError):
    """The server cannot be reached; the message is one line."""


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "doctor",
        help="show what a server offers, and which command judges it",
        description="Show in ten lines what a server is, which extensions it offers, which models it has, and which "
        "command judges it. Nothing is judged. Exit status 0: something can be judged; 6: nothing can.",
    )
    add_url_argument(parser, "the base URL of the server, without /v2; 'reference' is the bundled one")
    parser.add_argument(
        "--target-model",
        metavar="NAME",
        action="append",
        default=[],
        help=f"show whether this deployed model answers, with which inputs, and which extensions work on it "
        f"(repeatable); {ALL_MODELS!r} is every model that the server lists",
    )
    add_connection_options(parser)
    add_timeout_option(parser)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return the text to print and the exit status.

    Raises:
        DoctorError: the URL is invalid, or no server answers.
    """
    if not options.target_url:
        raise DoctorError("doctor needs the URL of a server: oip-conformance doctor URL")
    with serve_reference(options.target_url) as url:
        try:
            made = make_settings(options, url)
            with Session(Target(made)) as session, session.target.limit_silence():
                lines, status = _examine_server(session, options)
        except (SettingsError, TargetLostError) as error:
            raise DoctorError(str(error)) from error
    return hide("\n".join(lines), made.secrets), status


def _examine_server(session: Session, options: argparse.Namespace) -> tuple[list[str], int]:
    target, named = session.target, tuple(dict.fromkeys(options.target_model))
    health = ", ".join(f"{'' if target.get(path).succeeded else 'not '}{word}" for word, path in HEALTH.items())
    names = placement_search.list_models(target)
    _, nothing = discover_subjects(session)
    filled, other_models = len(session.survey.roles), session.survey.describe_other_models()
    if named or (names and not filled):
        _, nothing = discover_subjects(session, Subjects(named or (ALL_MODELS,), with_roles=False), lenient=True)
    found = session.survey
    described = found.models if named else {}  # each model has its own line with its trouble
    lines = [
        f"{'server':20}{_describe_server(found)}; {health}",
        f"{'lists':20}{escape_text(', '.join(found.listed), 200) or 'no extensions'}",
        *(
            _list_extensions_by_model(target, _list_answering_models(described))
            if described
            else _list_extensions(found)
        ),
        f"{'models':20}{escape_text(f'{len(names)} listed: {list_first_names(names)}', 300) if names else NO_LIST}",
        *(_format_model(name, model) for name, model in described.items()),
        f"{'roles':20}{filled} of {len(roles.load())} filled",
        *([f"{'':20}{NOT_FILLED}"] if 0 < filled < len(roles.load()) else []),
        *(f"{'':20}{line}" for line in other_models),
        *([f"{'nothing to judge':20}{escape_text(nothing.text(), 600)}"] if nothing and not described else []),
        *_list_next_commands(options, found, is_stuck=nothing is not None),
    ]
    return lines, NOTHING_TO_JUDGE if nothing else 0


def _list_answering_models(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [name for name, model in models.items() if not model["trouble"]]


def _describe_server(found: DiscoveryResult) -> str:
    named = " ".join(escape_text(part, 60) for part in (found.name, found.version) if part)
    return named or f"no server metadata ({escape_text(found.silence, 100) or 'no name'})"


def _list_extensions(found: DiscoveryResult) -> Iterator[str]:
    """Yield a line for each extension: the evidence that the server offers the extension, or why it seems not to."""
    for name in OVER_HTTP:
        yield f"{name:20}{found.offered.get(name) or found.describe_absence(name)}"


def _list_extensions_by_model(target: Target, models: Sequence[str]) -> Iterator[str]:
    """Yield a line for each extension: the models on which it works, and why it does not work on the other models."""
    alone = {model: model_discovery.probe_extensions(target, model) for model in models}
    for name in OVER_HTTP:
        working = [model for model, found in alone.items() if name in found.offered]
        works = [f"works on {list_first_names(working)}"] if working else []
        others = [_describe_failure(model, found, name) for model, found in alone.items() if model not in working]
        yield f"{name:20}{escape_text('; '.join([*works, *others]), 200) or 'not tried: no model answers'}"


def _describe_failure(model: str, found: DiscoveryResult, extension: str) -> str:
    return f"not on {model}: {found.refusals[extension] or 'no request of this extension fits'}"


def _format_model(name: str, model: Mapping[str, Any]) -> str:
    """Return the line of a model: its inputs and outputs, or why it answers no request."""
    said = escape_text(model["refusal"], 300) if model["trouble"] else f"answers {format_signature(model)}"
    odd = f"; {describe_nondeterministic_model(model)}" if model["unsteady"] else ""
    return f"{escape_text(name, 60):19} {said}{odd}"


def _list_next_commands(options: argparse.Namespace, found: DiscoveryResult, *, is_stuck: bool) -> Iterator[str]:
    """Yield the lines with the commands to run next: a command that runs few rows, then one that runs all rows."""
    headers = [f"{header.partition(':')[0]}: ..." for header in options.target_header]
    more = [part for header in headers for part in ("--target-header", header)]
    more += ["--target-ca", options.target_ca] if options.target_ca else []
    more += ["--target-insecure"] if options.target_insecure else []
    command, answering = (
        ["oip-conformance", "run", strip_user(options.target_url), *more],
        _list_answering_models(found.models),
    )
    if not answering and any(model["missing"] for model in found.models.values()):
        init = ["oip-conformance", "init", strip_user(options.target_url), *more]
        init += _format_model_options([name for name in options.target_model if name != ALL_MODELS])
        yield f"{'next':20}{shlex.join(init)} -o target.toml, fill in the inputs there, and: {JUDGE_COMMAND}"
        return
    if not (found.roles or answering):
        named = shlex.join([*command, QUICK, "--target-model"])
        yield f"{'next':20}{named} NAME, or deploy roles: oip-conformance models export --help"
        return
    one_by_one = options.target_model and ALL_MODELS not in options.target_model
    models = answering if one_by_one else [ALL_MODELS] if len(found.models) > 1 else answering
    command += [*_format_model_options(models), *([f"--target-extension={PROTOCOL}"] if is_stuck else [])]
    yield f"{'next':20}{shlex.join([*command, QUICK])}"
    yield f"{'then':20}{shlex.join(command)}"


def _format_model_options(models: Sequence[str]) -> list[str]:
    return [part for name in models for part in ("--target-model", name)]
