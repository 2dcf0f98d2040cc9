"""What the site shows of real servers: the matrix as a page, and the bars of the home page, from docs/results."""

from __future__ import annotations

import tomllib
from functools import cache

from conformance.pages.servers import BUNDLED
from conformance.report import matrix_page
from conformance.report.comparison import compare
from conformance.report.matrix import Links, Matrix, build_matrix, sort_versions
from conformance.report.report_file import read
from conformance.spec.ledger import Requirement
from tests.support.results import RESULTS

PAGE = "docs/results.md"
HOME = RESULTS.parents[1] / "tests/support/site/home.md"
BARS = "<!-- bars -->"
UPSTREAM = RESULTS.parent / "upstream"
TARGETS = RESULTS.parents[1] / "targets"
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
    """Return the matrix of all real servers."""
    paths = [path for path in sorted(RESULTS.glob("*.json")) if path.stem != BUNDLED]
    reports = sort_versions([(path.stem, read(path, is_whole=False)) for path in paths])
    return build_matrix(compare(reports), reports, Links(find_page, find_bug_report, find_issues))


def find_page(entry: Requirement) -> str:
    """Return the address of a requirement from the page of the matrix."""
    return f"../requirements/{entry.page}/#{entry.id}"


def find_bug_report(server: str, requirement: str) -> str:
    """Return the address of a bug report, if there is one."""
    name = requirement.replace("/", "-")
    return f"../upstream/{server}/{name}/" if (UPSTREAM / server / f"{name}.md").is_file() else ""


def find_issues(server: str, requirement: str) -> list[str]:
    """Return the issues that `targets` names beside what the server is known not to meet."""
    path = TARGETS / server / "expected.toml"
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["known"] if path.is_file() else []
    own = [entry["issue"] for entry in entries if entry["requirement"] == requirement and "issue" in entry]
    return list(dict.fromkeys(own))


def render_matrix() -> str:
    """Return the page of the matrix, which MkDocs leaves as it is but for its head."""
    style, script = matrix_page.read_style(), matrix_page.read_script()
    return (
        f"{HEAD}<style>\n{WIDE}\n{style}</style>\n\n{matrix_page.render_body(build())}\n\n<script>{script}</script>\n"
    )


def render_home() -> str:
    """Return the home page."""
    bars = f"<style>\n{matrix_page.read_style()}</style>\n\n{matrix_page.render_bars(build(), 'docs/results/')}"
    return HOME.read_text(encoding="utf-8").replace(BARS, bars)
