"""Pages that a subcommand prints as Markdown, or writes to a file in the format of its suffix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from conformance.report.output_files import convert_write_errors, write_atomically
from conformance.report.report_file import ReportError
from conformance.report.simple_page import SimplePage, render_html, render_markdown

FORMATS: Mapping[str, Callable[[SimplePage], str]] = {".md": render_markdown, ".html": render_html}


def expect_known_suffix(path: Path | None) -> None:
    """Require that the suffix of a path selects a page format; a page without a path is printed.

    Raises ReportError: the suffix is unknown.
    """
    if path and path.suffix not in FORMATS:
        raise ReportError(f"{path}: unknown suffix {path.suffix!r}, known are {', '.join(FORMATS)}")


def deliver_page(page: SimplePage, path: Path | None, render_as_html: Callable[[], str] | None = None) -> str:
    """Write a page atomically and return a message; without a path, return the page as Markdown.

    `path`: the file to write; None writes no file.
    `render_as_html`: returns the HTML of the page; None: the HTML is rendered from `page`.

    Raises ReportError: the page cannot be written.
    """
    if path is None:
        return render_markdown(page).removesuffix("\n")
    text = render_as_html() if render_as_html and path.suffix == ".html" else FORMATS[path.suffix](page)
    with convert_write_errors(path, ReportError):
        write_atomically(path, text)
    return f"wrote {path}"
