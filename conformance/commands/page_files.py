"""Pages that a subcommand writes into a file whose suffix says which form it has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from conformance.report.report_file import ReportError


def find_suffix(path: Path, known: Iterable[str]) -> str:
    """Return the suffix of a file.

    Raises:
        ReportError: none of those that are known.
    """
    names = list(known)
    if path.suffix not in names:
        raise ReportError(f"{path}: unknown suffix {path.suffix!r}, known are {', '.join(names)}")
    return path.suffix


def write(path: Path, page: str) -> str:
    """Write a page, whole or not at all, and return a line that says so.

    Raises:
        ReportError: it cannot be written there.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(page, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error
    return f"wrote {path}"
