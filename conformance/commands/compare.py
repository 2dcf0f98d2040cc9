"""`oip-conformance compare`: compares reports side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from conformance.commands.page_files import deliver_page, expect_known_suffix
from conformance.report import comparison_page, regression
from conformance.report.comparison import compare, keep_differences
from conformance.report.matrix import Matrix, build_matrix, sort_versions
from conformance.report.report_file import ReportError, read


def add_subcommand(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the subcommand and its options."""
    parser = commands.add_parser(
        "compare",
        help="compare reports of servers or of clients",
        description="Compare reports of servers, or of clients, in a table of requirements. With --gate, compare two "
        "reports of one server or client.",
    )
    parser.add_argument(
        "reports", nargs="+", type=Path, metavar="REPORT", help="a .json file that --conformance-report wrote"
    )
    parser.add_argument(
        "--gate", action="store_true",
        help="print the rows that fail only in the second report; exit status 1 if there are any",
    )  # fmt: skip
    parser.add_argument(
        "--only-differences", action="store_true",
        help="show only facts, requirements and observations that differ",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write this file, .html or .md (default: print Markdown)"
    )


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Return or write the page; with `--gate`, return the differences of two reports and the exit status.

    Raises:
        ReportError: a file is not a report, the page cannot be written, or the number of reports does not fit `--gate`
            or `--only-differences`.
    """
    if not options.gate:
        return _render_page(options), 0
    if len(options.reports) != 2 or options.output or options.only_differences:
        raise ReportError(
            "--gate compares exactly two reports, OLD NEW; it cannot be combined with -o or --only-differences"
        )
    found = regression.compare(*map(read, options.reports))
    return "\n".join(found.format_lines()), found.exit_status


def _render_page(options: argparse.Namespace) -> str:
    expect_known_suffix(options.output)
    if options.only_differences and len(options.reports) < 2:
        raise ReportError("--only-differences needs two reports or more")
    named = sort_versions([(path.stem, read(path, is_whole=False)) for path in options.reports])
    comparison = compare(named)
    shown = keep_differences(comparison) if options.only_differences else comparison
    return deliver_page(
        comparison_page.build_page(shown), options.output, lambda: _render_html(build_matrix(shown, named))
    )


def _render_html(matrix: Matrix) -> str:
    from conformance.report import matrix_page  # slow to import, and only needed for HTML

    return matrix_page.render_page(matrix)
