"""Lets the search of a built site find ids: it cuts queries where it cuts the pages, not at hyphens."""

from __future__ import annotations

from pathlib import Path

# The theme sets the separator of the index alone; queries keep that of lunr, which has the hyphen.
_OF_INDEX = "lunr.tokenizer.separator=new RegExp("


def mend_worker(site: Path) -> None:
    """Change the theme's search in place.

    Raises:
        ValueError: the theme has another search.
    """
    (worker,) = (site / "assets/javascripts/workers").glob("search.*.js")
    worker.write_text(cut_queries_alike(worker.read_text(encoding="utf-8")), encoding="utf-8")


def cut_queries_alike(script: str) -> str:
    """Return the script with one separator for the index and for queries."""
    if script.count(_OF_INDEX) != 1:
        raise ValueError("the theme's search sets its separator elsewhere")
    return script.replace(_OF_INDEX, f"lunr.QueryLexer.termSeparator={_OF_INDEX}")
