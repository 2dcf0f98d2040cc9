"""Renders the pages of requirements: an index, a page for each area, a glossary.

Strategy: the templates hold the text; this module provides their data and the Markdown filters. The pages are
generated from the ledger, the checks, the fixtures, the faults and the results alone; do not edit them by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2

from conformance.pages import examples, recorded_exchanges, requirement_facts
from conformance.pages.servers import ServerResult, group_by_outcome
from conformance.spec import data_files, ledger
from conformance.spec.documents import Sentence
from conformance.spec.extensions import PROTOCOL, ROBUSTNESS, TITLES
from conformance.spec.ledger import AREAS, CONCERNS, Level, Requirement
from conformance.spec.links import format_page_name

NOTICE = (
    "Written by `oip-conformance requirements -o DIR`. Edit `conformance/spec/requirements/` "
    "and `conformance/pages/` instead."
)
MAX_FAULTS = 8  # faults that target a requirement; more are folded
MAX_SIDE_FAULTS = 24  # faults that target another requirement and break this one as well
MEANINGS: Mapping[Level, str] = {
    Level.MUST: "a document demands it in words, or implies it; a server that does not meet it fails",
    Level.SHOULD: "examples or good sense recommend it; a server that does not meet it gets advice but does not fail",
    Level.MAY: "a server may offer it; the suite judges it only if the server offers it",
    Level.OBSERVE: "the text leaves it open, or contradicts itself; the suite records the behaviour, which never fails",
}
# Subject of a newcomer's questions -> the areas whose requirements answer them.
SUBJECTS: Mapping[str, Sequence[str]] = {
    "Headers": ("headers",),
    "Binary tensor data": ("metadata", "sizes", "datatypes", "bytes", "ordering", "overrides"),
    "Raw binary requests": ("raw",),
    "Classification": ("classification",),
    "gRPC": ("grpc",),
    "JSON, errors and connections": ("json", "errors", "state", "robustness"),
    "Clients": ("client",),
}
EXTENSIONS: Mapping[str, str] = {**TITLES, PROTOCOL: "the base protocol", ROBUSTNESS: "robustness"}
_KIND = re.compile(r"\b(Erratum|Contested|Decision): ")


def render(servers: Sequence[ServerResult]) -> dict[str, str]:
    """Return the text of each page by its name, ending in a newline.

    `servers`: the servers whose results the pages show; if empty, the pages omit real servers.

    Raises NoFaultsError: the reference server does not list its faults.
    """
    areas = _group_by_area()
    pages = {"README.md": render_index(), "glossary.md": render_glossary()}
    return pages | {format_page_name(area): _render_area(area, entries, servers) for area, entries in areas.items()}


def render_index() -> str:
    """Return the index of the pages."""
    entries = ledger.load().values()
    return render_template(
        "index.md.jinja",
        areas=_group_by_area(),
        over_grpc=_map_grpc_variants(),
        titles=AREAS,
        questions=_group_questions(),
        meanings=MEANINGS,
        counts=Counter(entry.level for entry in entries),
        concerns=CONCERNS,
        musts=Counter(entry.concern for entry in entries if entry.level is Level.MUST),
    )


def render_glossary() -> str:
    """Return the glossary."""
    words = data_files.load_toml("pages/glossary.toml")
    return render_template(
        "glossary.md.jinja", words=dict(sorted(words.items(), key=lambda item: build_anchor(item[0])))
    )


def _render_area(area: str, entries: Sequence[Requirement], servers: Sequence[ServerResult]) -> str:
    return render_template(
        "area.md.jinja",
        area=area,
        title=AREAS[area],
        entries=entries,
        over_grpc=_map_grpc_variants(),
        extensions=EXTENSIONS,
        examples=examples.load(),
        answering=requirement_facts.map_checks(),
        recorded=recorded_exchanges.load(),
        faults_of=requirement_facts.find_faults,
        most=MAX_FAULTS,
        most_beside=MAX_SIDE_FAULTS,
        rows=requirement_facts.describe_row_count,
        servers=servers,
        found_in=partial(describe_servers, servers=servers),
    )


def _group_by_area() -> dict[str, list[Requirement]]:
    """Return the requirements by area, in the order of the ledger, without gRPC variants of HTTP requirements."""
    areas: dict[str, list[Requirement]] = {}
    for entry in ledger.load().values():
        if entry.id == entry.name:
            areas.setdefault(entry.page, []).append(entry)
    return areas


def _group_questions() -> dict[str, list[tuple[str, Sequence[str]]]]:
    """Return subject -> each question with the ids of the requirements that answer it."""
    subjects = {area: subject for subject, areas in SUBJECTS.items() for area in areas}
    found: dict[str, list[tuple[str, Sequence[str]]]] = {subject: [] for subject in SUBJECTS}
    for name, entry in ledger.list_entries("questions"):
        subject = subjects[ledger.get_requirement(name).page]
        found[subject].append((entry["text"], (name, *entry.get("also", ()))))
    return {subject: questions for subject, questions in found.items() if questions}


def _map_grpc_variants() -> dict[str, Requirement]:
    """Return id of an HTTP requirement -> the gRPC variant of the requirement, for requirements that have one."""
    return {entry.name: entry for entry in ledger.load().values() if entry.id != entry.name}


# --- text -------------------------------------------------------------------------------------------------------------


def render_template(template: str, **values: Any) -> str:
    """Render a template to a page, ending in a newline."""
    text = _create_environment().get_template(template).render(notice=NOTICE, **values)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


@cache
def _create_environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,  # noqa: S701 - Markdown, of our own texts alone
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Callable[..., str]] = {
        "anchor": build_anchor, "cell": escape_cell, "code": format_code, "linked": link_ids,
        "note": format_note, "reference": link_requirement, "sentence": end_sentence, "source": link_source,
    }  # fmt: skip
    environment.filters |= filters
    return environment


def link_source(sentence: Sentence) -> str:
    """Return a Markdown link to the source sentence of a requirement."""
    text = re.sub(r"[\[\]]", r"\\\g<0>", str(sentence))
    return f"[{text}]({sentence.url})"


def format_note(text: str) -> str:
    """Return a note with the words "Erratum:", "Contested:" and "Decision:" in bold."""
    return _KIND.sub(r"**\1:** ", text)


def link_ids(text: str, own: str, folder: str = "") -> str:
    """Return a text in which all requirement ids except `own` are links; see `link_requirement` for `folder`."""
    names = "|".join(sorted(map(re.escape, ledger.load()), key=len, reverse=True))
    pattern = re.compile(rf"`[^`]*`|(?<![\w-])({names})(?![\w-])")
    return pattern.sub(
        lambda found: link_requirement(found[1], folder) if found[1] not in (None, own) else found[0], text
    )


def link_requirement(requirement_id: str, folder: str = "") -> str:
    """Return a link to a requirement; `folder` is the path from the page to those of requirements."""
    entry = ledger.get_requirement(requirement_id)
    return f"[{entry.id}]({folder}{format_page_name(entry.page)}#{entry.id})"


def build_anchor(word: str) -> str:
    """Return the anchor of a word on the glossary page."""
    return re.sub(r"[^a-z]+", "-", word.lower()).strip("-")


def escape_cell(text: str) -> str:
    """Escape a text for a table cell."""
    return text.replace("|", "\\|")


def format_code(text: str) -> str:
    """Return a text as inline code in Markdown."""
    return f"`{text}`"


def end_sentence(text: str) -> str:
    """Return a text, with a full stop added if it lacks one."""
    return text if text.endswith(".") else f"{text}."


def describe_servers(requirement: Requirement, servers: Sequence[ServerResult]) -> str:
    """Return in one line the outcomes of real servers for a requirement."""
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in group_by_outcome(requirement, servers).items())
