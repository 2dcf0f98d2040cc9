"""Renders docs/errata.md: contradictions in the documents, and questions that the documents leave open.

Strategy: the ledger has the readings, a proposed wording, and the suite's decisions with their reasons, in the entry of
a requirement; reports have the behaviour of servers. The page is generated from these alone; do not edit it by hand.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from conformance.pages import pages
from conformance.pages.servers import ServerResult
from conformance.report.markdown import text
from conformance.spec import ledger
from conformance.spec.documents import Document, Sentence, get_sentence, load_documents
from conformance.spec.ledger import Requirement

# Kinds in the order of the page: title and introduction.
KINDS: Mapping[str, tuple[str, str]] = {
    "contested": ("Contested", "The text has several interpretations, or two documents contradict each other."),
    "example": (
        "Sentences and examples",
        "A sentence contradicts an example, or two passages of one document contradict each other.",
    ),
    "silence": ("Open questions", "No sentence answers the question, and servers differ or clients have to guess."),
}
MAX_SHOWN = 4  # observations per server
WIDTH = 90  # characters of an observation, and of a line of a wording
FOLDER = "requirements/"


@dataclass(frozen=True, slots=True)
class Erratum:
    """One contradiction or gap in the documents; `spec/requirements/README.md` explains the fields."""

    name: str
    kind: str
    title: str
    sentences: tuple[Sentence, ...]
    readings: tuple[str, ...]
    document: Document
    wording: str
    requirements: tuple[Requirement, ...]
    decision: str = ""


@cache
def load() -> tuple[Erratum, ...]:
    """Return the errata in the order of the page: by kind, then in that of the ledger.

    Raises KeyError: an erratum names an unknown requirement, sentence or document; the message names both.
    """
    order = list(KINDS)
    errata = (_load_erratum(*entry) for entry in ledger.list_entries("errata"))
    return tuple(sorted(errata, key=lambda found: order.index(found.kind)))


def _load_erratum(requirement: str, table: Mapping[str, Any]) -> Erratum:
    try:
        return Erratum(
            name=table["name"],
            kind=table["kind"],
            title=table["title"],
            sentences=tuple(map(get_sentence, table["sentences"])),
            readings=tuple(table["readings"]),
            document=load_documents()[table["document"]],
            wording=table["wording"],
            requirements=tuple(map(ledger.get_requirement, (requirement, *table.get("also", ())))),
            decision=table.get("decision", ""),
        )
    except KeyError as error:
        raise KeyError(f"erratum {table['name']} of {requirement}: {error}") from error


def render(servers: Sequence[ServerResult]) -> str:
    """Return the page, ending in a newline."""
    by_kind = {kind: [found for found in load() if found.kind == kind] for kind in KINDS}
    return pages.render_template(
        "errata.md.jinja",
        kinds=KINDS,
        by_kind=by_kind,
        numbers={found.name: number for number, found in enumerate(load(), 1)},
        rows=_list_result_rows,
        servers=servers,
        decisions=_group_decisions,
        words=_format_first_and_last_words,
        references=lambda entries: ", ".join(pages.link_requirement(entry.id, FOLDER) for entry in entries),
        folded=partial(textwrap.wrap, width=WIDTH),
    )


def _format_first_and_last_words(sentence: Sentence) -> str:
    """Return the first and last words that locate a sentence in its document; empty for a section with an anchor."""
    return " ... ".join(filter(None, (sentence.first, sentence.last)))


def _list_result_rows(erratum: Erratum, servers: Sequence[ServerResult]) -> Iterator[list[str]]:
    """Yield table rows: the names of servers with equal results, and this result for each requirement."""
    by_cells: dict[tuple[str, ...], list[str]] = {}
    for server in servers:
        cells = tuple(_format_result(server, entry) for entry in erratum.requirements)
        by_cells.setdefault(cells, []).append(text(server.name))
    yield from ([", ".join(names), *cells] for cells, names in by_cells.items())


def _format_result(server: ServerResult, requirement: Requirement) -> str:
    """Return a server's outcome for a requirement, and its observations, which replace the outcome "observed"."""
    observed = [text(what, WIDTH) for what in server.observed.get(requirement.id, ())[:MAX_SHOWN]]
    word = server.describe_outcome(requirement)
    return "<br>".join(observed if observed and word == "observed" else [word, *observed])


def _group_decisions(erratum: Erratum) -> Iterator[tuple[Sequence[Requirement], str]]:
    """Yield requirements with the same level, statement and note over both transports, and the note as Markdown."""
    by_text: dict[tuple[str, str, str], list[Requirement]] = {}
    for entry in erratum.requirements:
        by_text.setdefault((entry.level, entry.statement, entry.note), []).append(entry)
    for entries in by_text.values():
        statement = f"{entries[0].statement} {entries[0].note}".strip()
        yield entries, pages.link_ids(pages.format_note(statement), entries[0].id, FOLDER)
