"""Makes a built site small: what no page loads goes, and what every page repeats is written once or shorter."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

MAX_INDEXED_CHARS = 800  # of a section, its text for the search; its beginning says what it is about
_KEPT = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
_SPACE = re.compile(r"\s*\n\s*")
# Browsers ignore white space around these tags.
_BLOCK = re.compile(
    r"\s*(</?(?:html|head|meta|link|title|body|header|footer|main|nav|article|section|div|form|fieldset|p|h[1-6]|hr"
    r"|ul|ol|li|dl|dt|dd|table|thead|tbody|tr|th|td)\b(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>)\s*"
)
_TAG = re.compile(r"(<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>)")


def shrink(site: Path) -> None:
    _remove_unused(site)
    for path in site.rglob("*.html"):
        path.write_text(squeeze(path.read_text(encoding="utf-8")), encoding="utf-8")
    index = site / "search/search_index.json"
    found = json.loads(index.read_text(encoding="utf-8"))
    for section in found["docs"]:
        section["text"] = cut(section["text"])
    index.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _remove_unused(site: Path) -> None:
    """Remove what the theme brings and no page loads: source maps, and word stems of other languages."""
    for path in (site / "assets").rglob("*.map"):
        path.unlink()
    shutil.rmtree(site / "assets/javascripts/lunr", ignore_errors=True)


def squeeze(page: str) -> str:
    """Return HTML without white space and character references that change nothing."""
    pieces = _KEPT.split(page)
    # Of each match, split returns the text before it, all of it, and the name of its tag.
    return "".join(
        _squeeze_piece(piece) if place % 3 == 0 else piece for place, piece in enumerate(pieces) if place % 3 < 2
    )


def _squeeze_piece(piece: str) -> str:
    """Return a piece of a page in which white space does not count, tags and text."""
    parts = _TAG.split(_BLOCK.sub(r"\1", _SPACE.sub("\n", piece)))
    # Quotes mean nothing special in text; in attributes they do.
    return "".join(
        part if place % 2 else part.replace("&#34;", '"').replace("&#39;", "'") for place, part in enumerate(parts)
    )


def cut(text: str) -> str:
    """Return the beginning of the text of a section, up to the end of a paragraph or item if it has one."""
    if len(text) <= MAX_INDEXED_CHARS:
        return text
    begin = text[:MAX_INDEXED_CHARS]
    end = max(begin.rfind("</p>"), begin.rfind("</li>"))
    return text[: text.index(">", end) + 1] if end > 0 else begin.rpartition("<")[0] or begin
