"""The index of a fleet as one HTML file: no script, nothing loaded from elsewhere, for wide and narrow screens.

Jinja2 escapes every text, and `escape_text` takes control characters out of it; the policy in the page's head forbids
scripts all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.fleet import index_labels
from conformance.report.html_environment import environment


def render(index: Mapping[str, Any]) -> str:
    """Return the page, ending in a newline."""
    templates = environment("conformance.fleet")
    return templates.get_template("fleet.html.jinja").render(
        index=index,
        page=index_labels,
        written_by=index_labels.WRITTEN_BY.replace("`", ""),
        extensions=index_labels.list_extensions(index),
        areas=index_labels.list_areas(index),
        shown=_shares(index),
    )


def _shares(index: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Return the parts of the bar: verdict, where it begins and how wide it is, of 100."""
    begins, found = 0.0, []
    for verdict, count in index["counts"].items():
        width = 100 * count / len(index["targets"])
        if count:
            found.append((verdict, round(begins, 3), round(width, 3)))
        begins += width
    return found
