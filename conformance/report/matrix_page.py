"""Renders a matrix as HTML: as a separate page, or as parts to include in the pages of another site.

Every text is escaped on output. The page has no dependency and loads nothing. Without the
script, everything is readable: each cell links to a panel with details, and CSS shows the panel whose anchor is in the
address of the page. The script adds search and filters.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from conformance.report import anchors
from conformance.report.comparison import LEGEND
from conformance.report.key_findings import choose_findings
from conformance.report.matrix import Matrix
from conformance.report.page_html import MARKS, compute_csp_hash, render_prose
from conformance.report.requirement_changes import format_outcome
from conformance.report.simple_page import build_environment, compute_parts
from conformance.spec.text import join_some

FOLDER = Path(__file__).parent / "templates" / "matrix"
MAX_TEXT_CHARS = 1000
MAX_LINES = 4  # results in a cell
MAX_OBSERVATIONS = 6
MAX_ROW_NAMES = 4
FEW_SOURCES = 1  # sources of a requirement that has a page


def render_page(matrix: Matrix) -> str:
    """Return the matrix as a self-contained page, ending in a newline."""
    style, script = read_style(), read_script()
    policy = f"default-src 'none'; style-src '{compute_csp_hash(style)}'; script-src '{compute_csp_hash(script)}'"
    return _render("page.html.jinja", matrix, style=style, script=script, policy=policy)


def render_body(matrix: Matrix) -> str:
    """Return the whole matrix as one HTML element; the page around it needs `read_style` and `read_script`."""
    return _render("body.jinja", matrix)


def render_bars(matrix: Matrix, cells_page: str) -> str:
    """Return the bars of the columns, which link to the page `cells_page`; the page around them needs `read_style`."""
    return f'<div class="oip-matrix">\n{_render("bars.jinja", matrix, cells_page=cells_page)}\n</div>\n'


def read_style() -> Markup:
    """Return the CSS of the matrix; its rules apply to elements inside the class `oip-matrix`."""
    return _read_template_file("matrix.css")


def read_script() -> Markup:
    """Return the JavaScript of the matrix, for search and filters."""
    return _read_template_file("matrix.js")


def _read_template_file(name: str) -> Markup:
    return Markup((FOLDER / name).read_text(encoding="utf-8"))  # noqa: S704 - our own file


def _render(name: str, matrix: Matrix, **more: Any) -> str:
    cells = [cell for row in matrix.rows for cell in row.cells]
    kinds = {cell.kind: (cell.word, cell.meaning) for cell in cells}
    return (
        _build_environment()
        .get_template(f"matrix/{name}")
        .render(
            matrix=matrix,
            findings=choose_findings(matrix),
            filters=_list_filters(matrix),
            legend={kind: kinds[kind] for kind in sorted(kinds, key=_find_kind_position)},
            bar_parts=compute_parts,
            max_lines=MAX_LINES,
            max_observed=MAX_OBSERVATIONS,
            few_sources=FEW_SOURCES,
            **more,
        )
    )


@cache
def _build_environment() -> jinja2.Environment:
    environment = build_environment(max_chars=MAX_TEXT_CHARS)
    environment.filters |= {
        "prose": render_prose,
        "place": anchors.encode_name,
        "change": lambda outcome, rows: format_outcome(LEGEND[outcome][0], rows),
        "some": lambda rows: join_some([row for row in rows if row], MAX_ROW_NAMES),
        "capitalized": lambda text: text[:1].upper() + text[1:],
    }
    return environment


def _list_filters(matrix: Matrix) -> dict[str, list[str]]:
    """Return filter name -> the values that occur in the matrix."""
    rows = matrix.rows
    values = {
        "extension": [row.extension for row in rows],
        "concern": [row.concern for row in rows if row.concern],
        "level": [row.level for row in rows],
    }
    return {name: list(dict.fromkeys(found)) for name, found in values.items()}


def _find_kind_position(kind: str) -> int:
    known = list(MARKS)
    return known.index(kind) if kind in known else len(known)
