"""The file formats of a report, by suffix; each is rendered from the JSON report, during the run or later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from conformance.report.output_files import write_atomically
from conformance.spec.options import REPORT_SUFFIXES, expect_report_suffix
from conformance.spec.report import Report


def _render_json(report: Report) -> str:
    return json.dumps(report, indent=1, ensure_ascii=True) + "\n"


def _render_html(report: Report) -> str:
    from conformance.report import page_html, view  # lazy: Jinja2 is slow to import

    return page_html.render(view.build_view(report))


def _render_markdown(report: Report) -> str:
    from conformance.report import page_markdown, view

    return page_markdown.render(view.build_view(report))


def _render_svg(report: Report) -> str:
    from conformance.report import badge, view

    return badge.render_svg(view.build_view(report))


def _render_shields(report: Report) -> str:
    from conformance.report import badge, view

    return badge.render_shields(view.build_view(report))


_RENDERERS = (_render_shields, _render_json, _render_html, _render_markdown, _render_svg)
FORMATS: Mapping[str, Callable[[Report], str]] = dict(zip(REPORT_SUFFIXES, _RENDERERS, strict=True))


def write(report: Report, path: Path) -> None:
    """Write the report atomically, in the format of the file's suffix.

    Raises:
        UserError: the suffix is unknown.
        OSError: the file cannot be written.
    """
    write_atomically(path, FORMATS[expect_report_suffix(path)](report))
