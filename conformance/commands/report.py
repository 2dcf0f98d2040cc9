"""`oip-conformance report`: makes pages and badges from the JSON report of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conformance.report import formats
from conformance.report.json_report import compute_digest
from conformance.report.output_files import convert_write_errors
from conformance.report.report_file import ReportError, read
from conformance.spec.options import REPORT_SUFFIXES, expect_report_suffix


def add_subcommand(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "report",
        help="convert a JSON report to pages and badges",
        description="Convert a JSON report to pages and badges.",
    )
    parser.add_argument("report", type=Path, metavar="REPORT", help="a .json file that --conformance-report wrote")
    known = ", ".join(REPORT_SUFFIXES)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", action="append", required=True,
        help=f"write this file (repeatable); the suffix chooses the format: {known}",
    )  # fmt: skip


def run(options: argparse.Namespace) -> str:
    """Write the files and return their paths as messages.

    Raises UserError: the file is not a complete report, or a page cannot be written.
    """
    for path in options.output:
        expect_report_suffix(path)
    report = read(options.report)
    if report["footer"]["digest"] != compute_digest(report):
        raise ReportError(f"{options.report} was edited or cut: its digest does not match its content")
    for path in options.output:
        with convert_write_errors(path):
            formats.write(report, path)
    return "\n".join(f"wrote {path}" for path in options.output)
