"""`oip-conformance models export`: writes the model roles for a real server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conformance.export import export
from conformance.export.server_formats import FORMATS
from conformance.judging import packs
from conformance.spec.options import add_command_options
from conformance.wire.datatypes import DATATYPES


def add_subcommand(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the `models` command with its own subcommand."""
    models = commands.add_parser(
        "models",
        help="write the model roles as a model repository for a real server",
        description="Write the model roles as a model repository for a real server.",
    )
    actions = models.add_subparsers(dest="action", metavar="ACTION", required=True)
    parser = actions.add_parser(
        "export",
        help="write the model roles into a folder",
        description="Write the model roles into a folder, for a real server, or as Python for a server of your own. "
        "The README.md there explains how to start them.",
    )
    parser.add_argument("--format", required=True, choices=FORMATS, help="the server that serves them")
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="NAME",
        help="export this role (repeatable); default: all that the server supports",
    )
    parser.add_argument("--prefix", default="", metavar="TEXT", help="begin the name of each model with this text")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=list(DATATYPES),
        metavar="DATATYPE",
        help="leave out roles with this datatype, which the server lacks (repeatable)",
    )
    add_command_options(parser, "export")
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder to write, absent or empty")


def run(options: argparse.Namespace) -> str:
    """Write the models and return the text to print.

    Raises UserError: nothing was exported, or a pack cannot be used.
    """
    named = packs.split_extensions(options.target_extension)[1]
    done = export(options.format, options.folder, options.role, options.prefix, options.without, named)
    count = len(done.models)
    return "\n".join(
        [
            *(f"left out: {role}: {options.format} cannot serve it: {why}" for role, why in done.left_out.items()),
            f"{count} model{'' if count == 1 else 's'} in {options.folder}; its README.md says how to start them",
        ]
    )
