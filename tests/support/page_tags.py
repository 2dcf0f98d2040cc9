"""The tags, attributes and text of pages: of a report, and of those without a script."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from xml.etree.ElementTree import Element

import html5lib

from conformance.report.page_html import render
from conformance.report.view import build_view


class Tags(HTMLParser):
    """Collects the tags of a page, checks that each is closed, and keeps the text."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "h4", "p", "div", "ul", "li"),
    *("a", "br", "code", "small", "span", "strong", "svg", "rect", "table", "thead", "tbody", "tr", "th", "td"),
}


def parse_tags(page: str) -> Tags:
    """Return the tags of a page, each of which is closed."""
    parser = Tags()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


def parse_report_page(report: Any) -> Element:
    """Return the page of a report; an error of HTML's own is an error here."""
    tree: Element = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(render(build_view(report)))
    return tree


def read_text(element: Element) -> str:
    """Return the words in an element, with a space where a new element begins."""
    return " ".join(" ".join(element.itertext()).split())
