"""The files of an index: for people as HTML and Markdown, for programs as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from conformance.fleet import index_markdown
from conformance.report.output_files import write_atomically

PAGE: Final = "index.html"


def write(folder: Path, index: Mapping[str, Any]) -> None:
    """Write them all, each whole or not at all.

    Raises:
        OSError: one cannot be written.
    """
    from conformance.fleet import index_html  # Jinja2 takes its time

    write_atomically(folder / "index.json", json.dumps(index, indent=1, ensure_ascii=True) + "\n")
    write_atomically(folder / "index.md", index_markdown.render(index))
    write_atomically(folder / PAGE, index_html.render(index))
