"""What pages show of real servers, from docs/results: the table of the repository, and the site's matrix and bars."""

from __future__ import annotations

import tomllib
from functools import cache

from conformance.pages.servers import BUNDLED
from conformance.report import markdown, matrix_page
from conformance.report.comparison import compare
from conformance.report.matrix import NOT_OFFERED, Cell, Links, Matrix, Row, build_matrix, sort_versions
from conformance.report.report_file import read_folder
from conformance.spec import links
from conformance.spec.ledger import Requirement
from conformance.spec.outcome import Outcome
from tests.support.results import RESULTS

PAGE = "docs/results.md"
HOME = RESULTS.parents[1] / "tests/support/site/home.md"
BARS = "<!-- bars -->"
UPSTREAM = RESULTS.parent / "upstream"
TARGETS = RESULTS.parents[1] / "targets"
# The folders of servers that call themselves otherwise.
FOLDERS = {"Inference Server": "aissemble", "omle-server": "omle"}
# Between the lines of its head, MkDocs reads what a page is. Results of servers would bury the pages of requirements.
HEAD = """\
---
title: Matrix
hide: [navigation, toc]
search:
  exclude: true
---
# What model servers do

"""
# The matrix needs the whole width; a cell that an address names is below the site's header.
WIDE = ".md-grid { max-width: 1600px; } :root { scroll-padding-top: 56px; }"


@cache
def build() -> Matrix:
    reports = sort_versions([pair for pair in read_folder(RESULTS) if pair[0] != BUNDLED])
    return build_matrix(compare(reports), reports, Links(find_page, find_bug_report, find_issues))


def find_page(entry: Requirement) -> str:
    """Return the address of a requirement from the page of the matrix."""
    return f"../requirements/{entry.page}/#{entry.id}"


def find_bug_report(server: str, requirement: str) -> str:
    """Return the address of a bug report, if there is one."""
    report = f"{FOLDERS.get(server, server)}/{requirement.replace('/', '-')}"
    return f"../upstream/{report}/" if (UPSTREAM / f"{report}.md").is_file() else ""


def find_issues(server: str, requirement: str) -> list[str]:
    """Return the issues that `targets` names beside what the server is known not to meet."""
    path = TARGETS / FOLDERS.get(server, server) / "expected.toml"
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["known"] if path.is_file() else []
    own = [entry["issue"] for entry in entries if entry["requirement"] == requirement and "issue" in entry]
    return list(dict.fromkeys(own))


def render_matrix() -> str:
    """Return the page of the matrix, which MkDocs leaves as it is but for its head."""
    style, script = matrix_page.read_style(), matrix_page.read_script()
    return (
        f"{HEAD}<style>\n{WIDE}\n{style}</style>\n\n{matrix_page.render_body(build())}\n\n<script>{script}</script>\n"
    )


TABLE = """\
# Results of real servers

Written by `python -m tests.support.pages` from the reports in [results](results), which the recipes in
[targets](../targets/README.md) make. The [site](develop/maintaining.md#pages-that-are-made) shows this table as a
matrix, in which a click on a cell shows the exchange behind it; `oip-conformance explain ID` prints a requirement. A
link in a cell leads to a [bug report](upstream/README.md).

"""


def render_table() -> str:
    """Return the page of the repository: one table, with the outcome of each requirement for each server."""
    cells = [cell for row in build().rows for cell in row.cells]
    legend = dict(sorted({_format_word(cell): cell.meaning for cell in cells}.items()))
    columns = build().columns
    rows = [
        ["verdict", "", *(column.verdict_in_words for column in columns)],
        ["MUSTs", "", *(column.musts.brief for column in columns)],
        ["SHOULDs", "", *(column.shoulds.brief for column in columns)],
        *([_format_id(row), row.level, *map(_format_cell, row.cells)] for row in build().rows),
    ]
    table = markdown.table(["requirement", "level", *(column.title for column in columns)], rows)
    return TABLE + "\n".join([*(f"- {word}: {meaning}" for word, meaning in legend.items()), "", *table, ""])


def _format_id(row: Row) -> str:
    """Return an id, which leads to the site where its cells show the exchanges of a server that does not meet it."""
    has_exchange = links.SITE and any(cell.is_unmet for cell in row.cells)
    return f"[`{row.id}`]({links.SITE}/docs/results/#{row.anchor})" if has_exchange else f"`{row.id}`"


def _format_cell(cell: Cell) -> str:
    page = cell.bug_report.removeprefix("../").removesuffix("/")
    return f"[{_format_word(cell)}]({page}.md)" if page else _format_word(cell)


def _format_word(cell: Cell) -> str:
    return "-" if cell.kind == NOT_OFFERED else f"**{cell.word}**" if cell.kind == Outcome.FAIL else cell.word


def render_home() -> str:
    bars = f"<style>\n{matrix_page.read_style()}</style>\n\n{matrix_page.render_bars(build(), 'docs/results/')}"
    return HOME.read_text(encoding="utf-8").replace(BARS, bars)
