"""`oip-conformance roles`: describes model roles for deployment: tensors, formula, labels, demands on the server."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from math import prod
from typing import Any

from conformance.judging import packs
from conformance.roles import roles
from conformance.roles.formulas import format_formula
from conformance.roles.roles import Role, TensorSpec
from conformance.spec.options import add_command_options
from conformance.spec.user_error import UserError


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "roles",
        help="print model roles: tensors, computation, labels",
        description="Print all model roles, or the named ones: inputs and outputs, computation (k counts elements row "
        "by row), class labels, and the batches and lengths that the suite sends.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a role (repeatable); default: all")
    add_command_options(parser, "roles")


def run(options: argparse.Namespace) -> str:
    """Return the text to print. Raises UserError: there is no role of that name, or a pack cannot be used."""
    named = packs.split_extensions(options.target_extension)[1]
    every = {**roles.load(), **roles.load_for_packs(named)}
    for name in options.names:
        if name not in every and (pack := packs.load_pack_of_id(name)):
            every |= pack.roles
    for name in options.names:
        if name not in every:
            like = get_close_matches(name, every, n=3)
            hint = f": did you mean {' or '.join(like)}?" if like else "; `oip-conformance roles` prints them all"
            raise UserError(f"there is no role {name}{hint}")
    return "\n".join(line for name in options.names or every for line in _describe_role(every[name]))


def _describe_role(role: Role) -> Iterator[str]:
    yield f"{role.name}: {role.purpose}"
    yield f"    in      {_format_signature(role.inputs)}"
    yield f"    out     {_format_signature(role.outputs)}"
    yield f"    is      {format_formula(role)}"
    for spec in role.outputs:
        if labels := role.labels.get(spec.name):
            rest = "; the others have none" if len(labels) < abs(prod(spec.shape)) else ""
            yield f"    labels  {spec.name}: {', '.join(labels)}{rest}"
    yield f"    needs   {'; '.join(_list_needs(role))}"


def _list_needs(role: Role) -> Iterator[str]:
    specs = (*role.inputs, *role.outputs)
    if role.batching:
        yield f"a batch dimension in front of every shape, of 1 to {roles.MAX_BATCH} items"
    if any(-1 in spec.shape for spec in specs):
        yield "any length for -1, from 0 to 5 MB of data; rows that exceed a limit of the server are n/a"
    elif not role.batching:
        yield "exactly these shapes"
    if role.versions:
        yield f"the versions {' and '.join(role.versions)}, both loaded, and listed in the metadata"
    if role.is_optional:
        yield "nothing: the role is optional, for servers that cannot have it"


def _format_signature(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {spec.datatype} {list(spec.shape)}" for spec in specs)
