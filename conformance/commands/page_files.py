"""Pages that a subcommand prints as Markdown, or writes into a file whose suffix says which form it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from conformance.report.output_files import write_atomically
from conformance.report.report_file import ReportError
from conformance.report.simple_page import SimplePage, render_html, render_markdown

FORMATS: Mapping[str, Callable[[SimplePage], str]] = {".md": render_markdown, ".html": render_html}


def expect_known_suffix(path: Path | None) -> None:
    """See that a page can be written into a file; None: it is printed.

    Raises:
        ReportError: its suffix says no form.
    """
    if path and path.suffix not in FORMATS:
        raise ReportError(f"{path}: unknown suffix {path.suffix!r}, known are {', '.join(FORMATS)}")


def deliver(page: SimplePage, path: Path | None) -> str:
    """Write a page, whole or not at all, and return a line that says so; without a path, return it to be printed.

    Raises:
        ReportError: it cannot be written there.
    """
    if path is None:
        return render_markdown(page).removesuffix("\n")
    try:
        write_atomically(path, FORMATS[path.suffix](page))
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error
    return f"wrote {path}"
