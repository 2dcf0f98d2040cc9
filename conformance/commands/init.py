"""`oip-conformance init`: writes a file for `--target-config`, using the metadata of the target."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from conformance.discovery import model_discovery, placement_search, role_discovery
from conformance.discovery.config_tables import format_model_tables, format_proposed_limits, format_roles_table, quote
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.discovery.limit_checks import remove_batch
from conformance.judging.run_start import list_first_names
from conformance.judging.session import Session
from conformance.report.output_files import convert_write_errors
from conformance.roles.declared_limits import propose_limits
from conformance.spec.extensions import CHOICES, EXTENSIONS, OVER_HTTP, PROTOCOL
from conformance.spec.options import add_command_options
from conformance.spec.text import escape_text
from conformance.spec.user_error import UserError
from conformance.transport import config
from conformance.transport.credentials import hide
from conformance.transport.grpc_packages import expect_grpc
from conformance.transport.reference import REFERENCE, serve_reference
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError
from conformance.wire.datatypes import OIP_DATATYPES

HEAD = """\
# A target for oip-conformance: pytest --target-config=THIS-FILE
# The suite discovers what is missing here; the command line and the environment override this file.

{addresses}
# timeout = 10  # seconds for a connection, and for the next byte of an answer
{extensions}
# never = ["state.*"]  # checks whose requests must not be sent; a run without them is incomplete
# restart = "systemctl restart my-server"  # a command that starts the server again if a request ends it

# Sent with every request and never shown; ${{NAME}} is taken from the environment, and "@FILE" from a file.
# [headers]
# Authorization = "Bearer ${{MODEL_TOKEN}}"

# [tls]
# ca = "ca.pem"  # beside this file
# insecure = true
"""
WITHOUT_TARGET = """
# Role -> model. Without this table, models are found by the roles' own names (`oip-conformance roles`).
# [roles]
# identity_int32 = "my_model"
# multi = { model = "my_other_model", version = "3", inputs = { IN_BOOL = "flags" }, outputs = { OUT_BOOL = "y" } }

# Deployed models of any kind, to judge by their own answers to plain requests: the same as --target-model NAME.
# [models.resnet50]
"""
URL_LINE, GRPC_LINE = 'url = "http://host:8000"', 'grpc = "host:8001"  # its gRPC address, to judge it as well'
EXTENSIONS_LINE = f'# extensions = {json.dumps(CHOICES)}  # judged, offered or not; "{PROTOCOL}": the base protocol'
TEMPLATE = (
    HEAD.format(addresses=f"{URL_LINE}\n# {GRPC_LINE}", extensions=EXTENSIONS_LINE)
    + format_proposed_limits({"datatypes": [*OIP_DATATYPES], "fixed_shapes": False, "max_batch": 4, "labels": False})
    + WITHOUT_TARGET
)


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "init",
        help="write a target file, filled in from a server",
        description="Print a target file, which --target-config reads. With a URL, the file lists the models of that "
        "server: those that fill a role of the suite, by name or by what they compute, and all others, which are "
        "judged by their own answers to plain requests.",
    )
    add_command_options(parser, "init")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write this file, which must not exist (default: print it)"
    )


def run(options: argparse.Namespace) -> str:
    """Write the file or return it; return the text to print.

    Raises UserError: the URL is invalid or missing, no server answers, or the file exists.
    """
    if options.target_grpc:
        if not options.target_url:
            raise UserError("init needs the URL of the server as well: no call over gRPC lists models")
        expect_grpc("--target-grpc")
    text, unfinished = _draft_file(options) if options.target_url else (TEMPLATE, [])
    if options.output is None:
        return text.rstrip()
    with convert_write_errors(options.output), options.output.open("x", encoding="utf-8") as file:
        file.write(text)
    todo = f"; fill in the inputs of {list_first_names(unfinished)} there, then run" if unfinished else ":"
    return escape_text(f"wrote {options.output}{todo} pytest --target-config={options.output}", 600)


def _draft_file(options: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the text of a target file, and the models for which a user has to add inputs.

    Raises UserError: an address is invalid, no server answers, or it lists no models.
    """
    with serve_reference(options.target_url) as url:
        made = config.read_options(options).build_settings(url, options.target_grpc)
        shown = REFERENCE if options.target_url == REFERENCE else made.url
        grpc = f"grpc = {quote(options.target_grpc)}" if options.target_grpc else f"# {GRPC_LINE}"
        try:
            with Session(Target(made)) as session, session.target.limit_silence():
                text, unfinished = _discover_models(session, options.target_model, f"url = {quote(shown)}\n{grpc}")
                return hide(text, made.secrets), [hide(name, made.secrets) for name in unfinished]
        except TargetLostError as error:
            raise UserError(hide(str(error), made.secrets)) from error


def _discover_models(session: Session, named: Sequence[str], addresses: str) -> tuple[str, list[str]]:
    """Discover models; return the text of the target file, and the models for which a user has to add inputs."""
    target = session.target
    names = list(dict.fromkeys([*placement_search.find_models(target), *named]))
    if not names:
        answers = hide(placement_search.describe_missing_list(target), target.settings.secrets)
        raise UserError(
            f"{target.settings.url} lists no models ({answers}), and none has the name of a role: "
            "name a model with --target-model NAME"
        )
    found = placement_search.find_placements(target, names)
    offered = role_discovery.discover_roles(target, placements=found).offered
    filled = {placement.model for placement in found.values()}
    others = [name for name in names if name not in filled]
    described = model_discovery.discover_models(target, others, lenient=True) if others else DiscoveryResult()
    offered |= described.offered
    head = HEAD.format(addresses=addresses, extensions=_format_extensions(offered))
    unfinished = [name for name, model in described.models.items() if model["missing"]]
    signatures = placement_search.read_signatures(target, names).values()
    proposed = propose_limits([spec for signature in signatures for spec in remove_batch(signature.tensors)])
    limits = format_proposed_limits(proposed)
    return f"{head}{limits}{format_roles_table(found)}{format_model_tables(described.models)}", unfinished


def _format_extensions(offered: Collection[str]) -> str:
    """Return the line `extensions`, active if a run without it would judge nothing over HTTP."""
    names = [name for name in EXTENSIONS if name in offered]
    if {*OVER_HTTP} & {*names}:
        return f"{EXTENSIONS_LINE}; offered here: {', '.join(names)}"
    chosen = json.dumps([PROTOCOL, *names])
    return f"extensions = {chosen}  # judged, offered or not; this server offers none of {', '.join(OVER_HTTP)}"
