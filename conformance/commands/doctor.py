"""`oip-conformance doctor URL`: describes a server, its extensions and models, and suggests the next command."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.discovery import model_discovery, placement_search
from conformance.discovery.config_tables import format_samples
from conformance.discovery.deployed_model import SAMPLES_HELP
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.judging.run_start import ALL_MODELS, MissingKind, NothingToJudge, discover_subjects, list_first_names
from conformance.judging.selection import Subjects
from conformance.judging.session import Session
from conformance.report.deployed_models import describe_nondeterministic_model, format_signature
from conformance.roles import roles
from conformance.spec.extensions import OVER_GRPC, OVER_HTTP, PROTOCOL
from conformance.spec.options import add_command_options, format_arguments
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport import config
from conformance.transport.config import TargetConfig
from conformance.transport.credentials import hide
from conformance.transport.grpc_packages import expect_grpc
from conformance.transport.reference import serve_reference
from conformance.transport.settings import strip_user
from conformance.transport.target import SERVER_PATH, Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.grpc_request import make_grpc_call

HEALTH = {"live": "/v2/health/live", "ready": "/v2/health/ready"}
FEW_MODELS = 3  # that the first command judges
QUICK = "--conformance-profile=quick"
JUDGE_COMMAND = f"pytest --target-config=target.toml {QUICK}"
NOT_FILLED = "deploy models for the others, or declare the server's limits in a target file: oip-conformance init"
NOTHING_TO_JUDGE = 6  # the exit status of an incomplete run


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "doctor",
        help="show what a server offers, and which command judges it",
        description="Show in a few lines what a server is, which extensions it offers, which models it has, and which "
        "command judges it. Nothing is judged. Exit status 0: something can be judged; 6: nothing can.",
    )
    add_command_options(parser, "doctor")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return the text to print and the exit status. Raises UserError: the URL is invalid, or no server answers."""
    if not (options.target_url or options.target_grpc):
        raise UserError("doctor needs the URL of a server: oip-conformance doctor URL")
    if options.target_grpc:
        expect_grpc("--target-grpc")
    with serve_reference(options.target_url or "") as url:
        target = config.read_options(options)
        made = target.build_settings(url, options.target_grpc)
        try:
            lines, status = _examine_server(options, target, url)
        except TargetLostError as error:
            raise UserError(str(error)) from error
    return hide("\n".join(lines), made.secrets), status


def _examine_server(options: argparse.Namespace, target: TargetConfig, url: str) -> tuple[list[str], int]:
    """Return the lines about a server over each transport and the next commands, and the exit status."""
    lines, founds, nothing = list[str](), list[DiscoveryResult](), None
    if url:
        with Session(Target(target.build_settings(url))) as session, session.target.limit_silence():
            lines, nothing = _examine_over_http(session, options)
            founds.append(session.discovery_result)
    if options.target_grpc:
        names = list(founds[0].models) if founds else [name for name in options.target_model if name != ALL_MODELS]
        try:
            with Session(Target(target.build_settings("", options.target_grpc))) as session:
                lines += _examine_over_grpc(session, names)
                founds.append(session.discovery_result)
        except TargetLostError as error:
            if not founds:
                raise
            lines.append(f"{'over gRPC':20}{escape_text(str(error))}")
            options.target_grpc = None  # no command would judge it
    can_judge = any(found.roles or _list_answering_models(found.models) for found in founds)
    if nothing and not (can_judge or options.target_model):  # each named model has its own line with its trouble
        # The line about models has the answers to requests for a list.
        brief = replace(nothing, details=()) if nothing.lack is MissingKind.ROLES else nothing
        lines.append(f"{'nothing to judge':20}{escape_text(brief.text(), 600)}")
    lines += _list_next_commands(options, founds, is_stuck=nothing is not None)
    return lines, 0 if can_judge else NOTHING_TO_JUDGE


def _examine_over_http(session: Session, options: argparse.Namespace) -> tuple[list[str], NothingToJudge | None]:
    target, named = session.target, tuple(dict.fromkeys(options.target_model))
    health = ", ".join(f"{'' if target.get(path).succeeded else 'not '}{word}" for word, path in HEALTH.items())
    names = placement_search.list_models(target)
    listed = f"{len(names)} listed: {list_first_names(names)}"
    listed = listed if names else f"the server lists no models: {placement_search.describe_missing_list(target)}"
    _, nothing = discover_subjects(session)
    filled, other_models = len(session.discovery_result.roles), session.discovery_result.describe_other_models()
    if named or (names and not filled):
        _, nothing = discover_subjects(session, Subjects(named or tuple(names), with_roles=False), lenient=True)
    found = session.discovery_result
    described = found.models if named else {}
    return [
        f"{'server':20}{_describe_server(found)}; {health}",
        f"{'lists':20}{escape_text(', '.join(found.listed), 200) or 'no extensions'}",
        *(
            _list_extensions_by_model(target, _list_answering_models(described))
            if described
            else _list_extensions(found)
        ),
        f"{'models':20}{escape_text(listed, 300)}",
        *(line for name, model in described.items() for line in _format_model(name, model)),
        f"{'roles':20}{filled} of {len(roles.load())} filled",
        *([f"{'':20}{NOT_FILLED}"] if 0 < filled < len(roles.load()) else []),
        *(f"{'':20}{line}" for line in other_models),
    ], nothing


def _examine_over_grpc(session: Session, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines about a server over gRPC, and about its models of these names."""
    with session.target.limit_silence():
        found = session.discover((), Subjects(tuple(names)), lenient=True)
        health = ", ".join(_describe_health_over_grpc(session.target, word) for word in HEALTH)
    listed = escape_text(", ".join(found.listed_grpc), 200) or "no extensions"
    yield f"{'over gRPC':20}{_describe_server(found)}; {health}; lists {listed}"
    for name in OVER_GRPC:
        yield f"{name:20}{found.offered.get(name) or found.describe_absence(name)}"
    yield from (line for name, model in found.models.items() for line in _format_model(name, model))
    yield f"{'roles over gRPC':20}{len(found.roles)} of {len(roles.load())} filled"


def _describe_health_over_grpc(target: Target, word: str) -> str:
    reply = target.send(make_grpc_call(f"Server{word.capitalize()}"))
    return word if (reply.answer.document or {}).get(word) else f"not {word}"


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


def _format_model(name: str, model: Mapping[str, Any]) -> list[str]:
    """Return the line of a model: its inputs and outputs, or why it answers no request; and what a user can add."""
    said = escape_text(model["refusal"], 300) if model["trouble"] else f"answers {format_signature(model)}"
    odd = f"; {describe_nondeterministic_model(model)}" if model["unsteady"] else ""
    samples = format_samples(name, model)
    odd += f"; it answers every input alike: {SAMPLES_HELP.partition(' (')[0]}" if samples else ""
    return [f"{escape_text(name, 60):19} {said}{odd}", *(f"{'':20}{line}" for line in samples)]


def _list_next_commands(
    options: argparse.Namespace, founds: Sequence[DiscoveryResult], *, is_stuck: bool
) -> Iterator[str]:
    """Yield the lines with the commands to run next: a command that runs few rows, then one that runs all rows."""
    more = format_arguments(
        {
            "--target-header": [f"{header.partition(':')[0]}: ..." for header in options.target_header],
            "--target-ca": options.target_ca,
            "--target-insecure": options.target_insecure,
        }
    )
    url = [strip_user(options.target_url)] if options.target_url else []
    over_grpc = format_arguments({"--target-grpc": options.target_grpc})
    command = ["oip-conformance", "run", *url, *over_grpc, *more]
    models = {name: model for found in reversed(founds) for name, model in found.models.items()}
    answering = list(dict.fromkeys(name for found in founds for name in _list_answering_models(found.models)))
    has_roles = any(found.roles for found in founds)
    if not answering and any(model["missing"] for model in models.values()) and (url or not has_roles):
        init, unknown = ["oip-conformance", "init"], f"address and the inputs of {', '.join(models)}"
        if url:  # without one, `init` writes a template
            names = [name for name in options.target_model if name != ALL_MODELS]
            init += [*url, *over_grpc, *more, *format_arguments({"--target-model": names})]
            unknown = "inputs"
        yield f"{'next':20}{shlex.join(init)} -o target.toml, fill in the {unknown} there, and: {JUDGE_COMMAND}"
        return
    if not (answering or has_roles):
        if url and founds[0].silence and url[0].rstrip("/").endswith(SERVER_PATH):
            shorter = url[0].rstrip("/").removesuffix(SERVER_PATH)
            yield f"{'next':20}{shlex.join(['oip-conformance', 'doctor', shorter, *over_grpc, *more])}"
            return
        other = next((name for found in founds for name in found.other_models), "NAME")
        named = shlex.join([*command, QUICK, *format_arguments({"--target-model": [other]})])
        yield f"{'next':20}{named}, or deploy roles: oip-conformance models export --help"
        return
    one_by_one = options.target_model and ALL_MODELS not in options.target_model
    chosen = answering if one_by_one else [ALL_MODELS] if len(models) > 1 else answering
    few = chosen if one_by_one else _choose_few_models(models) if len(answering) > FEW_MODELS else chosen
    for title, names, profile in (("next", few, [QUICK]), ("then", chosen, [])):
        more = format_arguments({"--target-model": names, "--target-extension": PROTOCOL if is_stuck else None})
        yield f"{title:20}{shlex.join([*command, *more, *profile])}"


def _choose_few_models(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a few answering models of different datatypes: each model costs about as many rows as all roles."""
    kinds: dict[tuple[str, ...], str] = {}
    for name in _list_answering_models(models):
        datatypes = (spec["datatype"] for spec in (*models[name]["inputs"], *models[name]["outputs"]))
        kinds.setdefault(tuple(datatypes), name)
    return list(kinds.values())[:FEW_MODELS]
