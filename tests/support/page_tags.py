"""The tags, attributes and text of a page without a script, such as those of a comparison and of a history."""

from __future__ import annotations

from html.parser import HTMLParser


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
