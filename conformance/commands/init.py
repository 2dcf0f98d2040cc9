"""`oip-conformance init`: a file for `--target-config`, filled in from the metadata of the target."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.roles import roles
from conformance.roles.placement import Placement
from conformance.survey import discovery, role_survey
from conformance.terms.text import safe
from conformance.terms.user_error import UserError
from conformance.transport import settings
from conformance.transport.credentials import hide
from conformance.transport.settings import SettingsError
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLost

HEAD = """\
# A target for oip-conformance: pytest --target-config=THIS-FILE
# What is not said here is asked of the server; the command line and the environment come first.

{url}
# grpc = "host:8001"  # judged over gRPC, too
# timeout = 10  # seconds for a connection, and for the next byte of an answer
# extensions = ["binary_tensor_data", "raw", "classification", "classification_grpc"]  # judged, offered or not{offered}
# never = ["state.*"]  # checks whose requests must not be sent; a run without them is incomplete

# Sent with every request and never shown; ${{NAME}} is taken from the environment.
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
"""


class InitError(UserError):
    """The file cannot be made; the message is one line."""


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "init",
        help="print a file for --target-config, filled in from a server",
        description="Print a file for --target-config. With a URL, ask the server for its models, and map every role "
        "that one of them fills: by its name, or because its tensors and its answers are the role's.",
    )
    parser.add_argument("--target-url", metavar="URL", help="the server; without it, an empty template is printed")
    parser.add_argument("--target-header", metavar="'NAME: VALUE'", action="append", default=[], help="repeatable")
    parser.add_argument("--target-ca", metavar="FILE", help="verify TLS with these certificates")
    parser.add_argument("--target-insecure", action="store_true", help="do not verify TLS certificates")
    parser.add_argument(
        "--target-model",
        metavar="NAME",
        action="append",
        default=[],
        help="try this model, too, should no index name it",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there; an existing file is left as it is")


def run(options: argparse.Namespace) -> str:
    """Return what to print.

    Raises:
        InitError: the URL cannot be used, nobody answers, or the file exists.
    """
    text = (
        _drafted(options)
        if options.target_url
        else HEAD.format(url='url = "http://host:8000"', offered="") + WITHOUT_TARGET
    )
    if options.output is None:
        return text.rstrip()
    try:
        with Path(options.output).open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InitError(f"cannot write {options.output}: {error.strerror}") from error
    return f"wrote {options.output}: pytest --target-config={options.output}"


def _drafted(options: argparse.Namespace) -> str:
    try:
        made = settings.make(
            options.target_url, options.target_header, ca_file=options.target_ca, insecure=options.target_insecure
        )
    except SettingsError as error:
        raise InitError(str(error)) from error
    try:
        target = Target(made)
        names = [*discovery.models(target), *options.target_model]
        found = discovery.placements(target, dict.fromkeys(names))
        offered = role_survey.take(target, placements=found).offered
    except (SettingsError, TargetLost) as error:
        raise InitError(hide(str(error), made.secrets)) from error
    head = HEAD.format(url=f"url = {_quoted(made.url)}", offered=f"; offered here: {', '.join(offered) or 'none'}")
    return f"{head}\n{_roles(found)}{_left_over(names, found)}"


def _roles(found: Mapping[str, Placement]) -> str:
    every = roles.load()
    title = f"# {len(found)} of {len(every)} roles are filled by models of this server; the others are not judged.\n"
    lines = [f"{role} = {_entry(found[role])}" if role in found else f'# {role} = ""' for role in every]
    return f"{title}[roles]\n" + "\n".join(lines) + "\n"


def _entry(placement: Placement) -> str:
    members: Sequence[tuple[str, Mapping[str, str]]] = (
        ("inputs", placement.names.inputs),
        ("outputs", placement.names.outputs),
    )
    parts = [f"{member} = {{ {_pairs(names)} }}" for member, names in members if names]
    model = _quoted(placement.model)
    return f"{{ model = {model}, {', '.join(parts)} }}" if parts else model


def _pairs(names: Mapping[str, str]) -> str:
    return ", ".join(f"{ours} = {_quoted(theirs)}" for ours, theirs in names.items())


def _left_over(names: Sequence[str], found: Mapping[str, Placement]) -> str:
    """Return comments on the models that fill no role."""
    others = [name for name in dict.fromkeys(names) if name not in {placement.model for placement in found.values()}]
    if not others:
        return ""
    lines = "".join(
        f"#   --target-model {_quoted(name) if safe(name) != name or ' ' in name else name}\n" for name in others
    )
    return f"\n# Models that fill no role can be judged by relations, with:\n{lines}"


def _quoted(text: str) -> str:
    """Return a basic string of TOML: JSON's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
