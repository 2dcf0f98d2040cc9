"""`oip-conformance explain`: one requirement with its sources and checks, or all of them in a list."""

from __future__ import annotations

import argparse
from typing import Any

from conformance.checks import answers_by_requirement
from conformance.terms import ledger


def add(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("explain", help="print one requirement, or list all of them")
    parser.add_argument("id", nargs="?", metavar="ID", help="for instance BIN-ORD-O; without it, all ids with levels")


def run(options: argparse.Namespace) -> str:
    """Return what to print.

    Raises:
        UnknownRequirementError: there is no requirement of that id.
    """
    if options.id is None:
        return "\n".join(f"{entry.id:<20}{entry.level:<9}{entry.area}" for entry in ledger.load().values())
    entry = ledger.requirement(options.id.upper())
    return ledger.explain(entry.id, answers_by_requirement())
