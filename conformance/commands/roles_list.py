"""`oip-conformance roles`: every model role with its signature, to deploy what is to be judged."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from conformance.roles import roles
from conformance.roles.roles import Role, TensorSpec


def add(commands: Any) -> None:
    """Declare the command."""
    commands.add_parser("roles", help="print every model role with its signature")


def run(_: argparse.Namespace) -> str:
    """Return what to print."""
    return "\n".join(line for role in roles.load().values() for line in _described(role))


def _described(role: Role) -> list[str]:
    traits = [role.compute, *(["batching"] if role.batching else []), *(["labels"] if role.labels else [])]
    return [
        f"{role.name} ({', '.join(traits)}): {role.purpose}",
        f"    in   {_signature(role.inputs)}",
        f"    out  {_signature(role.outputs)}",
    ]


def _signature(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {spec.datatype} {list(spec.shape)}" for spec in specs)
