"""The file formats of a report, by suffix; each is rendered from the JSON report, during the run or later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance.report.output_files import write_atomically

Report = Mapping[str, Any]


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


# `.shields.json` must come before `.json`, its own suffix.
FORMATS: Mapping[str, Callable[[Report], str]] = {
    ".shields.json": _render_shields,
    ".json": _render_json,
    ".html": _render_html,
    ".md": _render_markdown,
    ".svg": _render_svg,
}


def find_suffix(path: Path) -> str | None:
    """Return the suffix that selects the format of a file, or None."""
    return next((known for known in FORMATS if path.name.endswith(known)), None)


def write(report: Report, path: Path) -> None:
    """Write the report atomically, in the format of the file's suffix.

    Raises:
        KeyError: the suffix is unknown.
        OSError: the file cannot be written.
    """
    write_atomically(path, FORMATS[find_suffix(path) or path.suffix](report))
