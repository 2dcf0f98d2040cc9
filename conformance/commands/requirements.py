"""`oip-conformance requirements`: writes the pages of requirements, or prints their index."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conformance.pages import servers
from conformance.report.output_files import convert_write_errors

RESULTS = "results"


def add_subcommand(commands: Any) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "requirements",
        help="print the index of all requirements, or write their pages",
        description="Print the index of all requirements as Markdown, or write pages: one for each area, the index and "
        "a glossary.",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="write the pages into this folder; with reports in the folder `results` beside it, they show what real "
        "servers do",
    )  # fmt: skip


def run(options: argparse.Namespace) -> str:
    """Return the index of the pages, or write all pages and return a message.

    Raises UserError: the pages cannot be written.
    """
    from conformance.pages import pages  # Jinja2 is slow to import and needed only here

    output: Path | None = options.output
    if output is None:
        return pages.render_index().removesuffix("\n")
    found = pages.render(servers.load(output.absolute().parent / RESULTS))
    with convert_write_errors(output):
        output.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            (output / name).write_text(text, encoding="utf-8")
    return f"wrote {len(found)} pages into {output}"
