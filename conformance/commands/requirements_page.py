"""`oip-conformance requirements`: the ledger as Markdown, with the checks that answer for each entry.

Strategy: one table per area, in the ledger's order of areas; notes stand at the end by kind, so that the tables stay
readable. The page is a pure function of the ledger and the checks, and nobody edits it by hand:
`oip-conformance requirements > docs/requirements.md` writes it, and a test compares.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.checks import answers_by_requirement
from conformance.commands.markdown_cells import line, link
from conformance.terms.ledger import Level, Requirement, load


def add(commands: Any) -> None:
    """Declare the command."""
    commands.add_parser("requirements", help="print docs/requirements.md")


def run(_: argparse.Namespace) -> str:
    """Return what to print."""
    return render(load(), answers_by_requirement()).removesuffix("\n")


HEAD = """# Requirements

Written by `oip-conformance requirements > docs/requirements.md`; edit `conformance/terms/ledger.toml` instead.

| level | what it means | entries |
|---|---|---|
"""

MEANING = {
    Level.MUST: "the words of a document, or what follows from them; a server that does not meet it fails",
    Level.SHOULD: "examples and good sense; a server that does not meet it is advised",
    Level.MAY: "a server is free to offer it; judged only where it is offered",
    Level.OBSERVE: "the text is silent or contradicts itself; recorded, never failed",
}

TABLE_HEAD = "| id | level | extension | statement | source | checks |\n|---|---|---|---|---|---|\n"

# The kinds of notes, in the order of the page. The kind is the first word of a note.
NOTES = {
    "Erratum": "Errata of the documents",
    "Contested": "Contested points",
    "Decision": "Decisions",
}


def render(ledger: Mapping[str, Requirement], checks: Mapping[str, Sequence[str]]) -> str:
    """Return the page, ending in a newline.

    Args:
        ledger: every requirement by id; areas appear in the order of their first entry.
        checks: the ids of the checks that answer for each requirement id.
    """
    areas = dict.fromkeys(entry.area for entry in ledger.values())
    sections = [_area(area, [entry for entry in ledger.values() if entry.area == area], checks) for area in areas]
    notes = [_notes(kind, title, ledger.values()) for kind, title in NOTES.items()]
    return _head(ledger.values()) + "\n" + "\n".join([*sections, *filter(None, notes)])


def _head(entries: Iterable[Requirement]) -> str:
    count = Counter(entry.level for entry in entries)
    return HEAD + "".join(f"| {level} | {meaning} | {count[level]} |\n" for level, meaning in MEANING.items())


def _area(area: str, entries: Sequence[Requirement], checks: Mapping[str, Sequence[str]]) -> str:
    return f"## {area}\n\n{TABLE_HEAD}" + "".join(_line(entry, checks.get(entry.id, ())) for entry in entries)


def _line(entry: Requirement, checks: Sequence[str]) -> str:
    cells = (
        entry.id,
        f"{entry.level} ({entry.basis})",
        entry.extension,
        entry.statement,
        "<br>".join(link(str(source), source.url) for source in entry.sources),
        "<br>".join(f"`{check}`" for check in checks) or "none",
    )
    return line(cells)


def _notes(kind: str, title: str, entries: Iterable[Requirement]) -> str:
    texts = {entry.id: entry.note.removeprefix(f"{kind}: ") for entry in entries if entry.note.startswith(f"{kind}: ")}
    return f"## {title}\n\n" + "".join(f"- **{key}** {text}\n" for key, text in texts.items()) if texts else ""
