"""`oip-conformance explain`: explains a requirement, check or fault, or lists all requirements."""

from __future__ import annotations

import argparse
from typing import Any

from conformance.pages import explanations
from conformance.spec import ledger


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "explain",
        help="explain a requirement, a check or a fault, or list all requirements",
        description="Explain requirements, checks, or faults of the bundled server; without a name, list every "
        "requirement with its level and concern.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help="each a requirement (BIN-ORDER-O), a check (ordering.response-follows-its-json) or a fault "
        "(binary-outputs-in-reverse)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> str:
    """Return the text to print. Raises UnknownNameError: there is no requirement, check or fault of that name."""
    if not options.names:
        width = max(map(len, ledger.load())) + 2
        return "\n".join(
            f"{entry.id:<{width}}{entry.level:<9}{entry.concern or '-':<11}{entry.area}"
            for entry in ledger.load().values()
        )
    names = filter(None, (name.partition("[")[0].strip() for name in options.names))  # without the row of a check
    return "\n\n".join(map(explanations.explain, names))
