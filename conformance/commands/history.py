"""`oip-conformance history`: shows reports of one product over time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.certification import manifest
from conformance.commands.page_files import deliver_page, expect_known_suffix
from conformance.report.history import build_history, build_page
from conformance.report.report_file import ReportError, read
from conformance.spec.report import Report

REPORTS = ("*.json", "*.json.xz")


def add_subcommand(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "history",
        help="show reports over time: what was fixed or broken, and when",
        description="Show the reports of a folder over time: for each product, what was fixed or broken, and when.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder of reports (.json, .json.xz)")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write this file, .html or .md (default: print Markdown)"
    )


def run(options: argparse.Namespace) -> str:
    """Return the page as Markdown, or write it and return a message.

    Raises ReportError: the folder has no report, or an invalid one, or the page cannot be written.
    """
    expect_known_suffix(options.output)
    return deliver_page(build_page(build_history(_read_reports(options.folder))), options.output)


def _read_reports(folder: Path) -> Sequence[tuple[str, Report]]:
    """Read the reports of a folder, each with its file name; report all invalid files in one error."""
    if not folder.is_dir():
        raise ReportError(f"{folder} is not a folder")
    reports, errors = [], []
    for path in sorted(path for pattern in REPORTS for path in folder.glob(pattern) if path.name != manifest.NAME):
        try:
            reports.append((path.name, read(path, is_whole=False)))
        except ReportError as error:
            errors.append(str(error))
    if errors:
        raise ReportError("; ".join(errors))
    if not reports:
        raise ReportError(f"{folder} holds no report (.json, .json.xz)")
    return reports
