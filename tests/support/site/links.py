"""Where the pages of the repository link to: each file is there, and so is the heading or anchor in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from tests.support.site import generated
from tests.support.site.commonmark import parse

ROOT = generated.ROOT
LEDGER = "conformance/spec/requirements/README.md"
# Folders whose pages are not of this documentation: what is installed, and a part of the template of a registry.
FOREIGN_FOLDERS = {"node_modules", "certifications"}
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_PUNCTUATION = re.compile(r"[^\w\- ]")


class Link(NamedTuple):
    """A relative link: the page it is on, as it is written, where it leads, and to which anchor."""

    page: Path
    written: str
    target: Path
    anchor: str


@cache
def read_pages() -> Mapping[Path, str]:
    """Return every page of the site with its text: files of the repository, and those that are made."""
    found = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "fixtures/README.md", LEDGER)]
    found += [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "targets").rglob("README.md"))]
    texts = {path: path.read_text(encoding="utf-8") for path in found if not FOREIGN_FOLDERS & set(path.parts)}
    return texts | {ROOT / name: text for name, text in generated.render_site_pages().items()}


@cache
def find_links(page: Path, text: str) -> Sequence[Link]:
    """Return the relative links of a page, pictures as well."""
    return tuple(_links(page, text))


def _links(page: Path, text: str) -> Iterator[Link]:
    for token in parse(text):
        for child in token.children or ():
            written = str(child.attrGet("href") or child.attrGet("src") or "")
            if written and not _ELSEWHERE.match(written):
                path, _, anchor = written.partition("#")
                yield Link(page, written, (page.parent / unquote(path)).resolve() if path else page, unquote(anchor))


def find_anchors(text: str) -> set[str]:
    """Return what a page can be entered by: headings, as GitHub names them, and anchors of its own."""
    found: dict[str, int] = {}
    tokens = parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            words = "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))
            name = _PUNCTUATION.sub("", words.strip().lower()).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
    return {*found, *(f"{name}-{number}" for name, most in found.items() for number in range(1, most + 1))} | {
        *_ANCHOR.findall(text)
    }


def find_broken_links() -> Iterator[str]:
    """Yield each link that leads nowhere; to a page that is made, only such a page may link."""
    made = {ROOT / name for name in generated.render_site_pages()}
    for page, text in read_pages().items():
        for link in find_links(page, text):
            where = f"{page.relative_to(ROOT)}: {link.written}"
            if not (link.target.exists() or {page, link.target} <= made):
                yield f"{where}: there is no such file"
            elif link.anchor and link.target.suffix == ".md" and link.anchor not in _anchors_of(link.target):
                yield f"{where}: there is no such heading"


@cache
def _anchors_of(path: Path) -> set[str]:
    return find_anchors(read_pages()[path] if path in read_pages() else path.read_text(encoding="utf-8"))
