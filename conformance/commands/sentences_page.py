"""docs/sentences.md: every sentence of the documents that asks for something, and what judges it.

Strategy: the ledger read backwards. The page is a pure function of the sentences and the ledger, and nobody edits it by
hand: `oip-conformance sources page > docs/sentences.md` writes it, and a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from conformance.spec.documents import Document, Sentence
from conformance.spec.ledger import Requirement


def format_row(cells: Iterable[str]) -> str:
    """Return one line of a table, ending in a newline."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def format_link(text: str, url: str) -> str:
    """Return a link; brackets in its text are escaped."""
    shown = re.sub(r"([][])", r"\\\1", text)
    return f"[{shown}]({url})"


HEAD = """# Sentences

Written by `oip-conformance sources page > docs/sentences.md`; edit `conformance/spec/sentences/*.toml`, and the
sources in `conformance/spec/ledger.toml`, instead.

Every sentence of the documents that asks a server or a client for something, in the order of the documents, with the
requirements that judge it or the reason why none does. A link leads to the sentence itself, at the revision that was
read. `oip-conformance sources check DIR` looks each of them up in a folder of copies.

| document | revision | date | sentences | judged | not judged, for a reason | gaps |
|---|---|---|---|---|---|---|
"""

TABLE_HEAD = "| section | sentence | key | judged by |\n|---|---|---|---|\n"


def map_citations(ledger: Iterable[Requirement]) -> dict[str, list[str]]:
    """Return the ids of the requirements that cite each sentence, by its key, in the order of the ledger."""
    found: dict[str, list[str]] = {}
    for entry in ledger:
        for source in entry.sources:
            found.setdefault(source.key, []).append(entry.id)
    return found


def render(sentences: Iterable[Sentence], cited: Mapping[str, Sequence[str]]) -> str:
    """Return the page, ending in a newline.

    Args:
        sentences: of all documents, in the order of the page.
        cited: the ids of the requirements that cite each sentence, by its key.
    """
    by_document: dict[Document, list[Sentence]] = {}
    for sentence in sentences:
        by_document.setdefault(sentence.document, []).append(sentence)
    summary = "".join(_summary(document, found, cited) for document, found in by_document.items())
    sections = [_document(document, found, cited) for document, found in by_document.items()]
    return "\n".join([HEAD + summary, *filter(None, [_gaps(by_document.values())]), *sections])


def _summary(document: Document, found: Sequence[Sentence], cited: Mapping[str, Sequence[str]]) -> str:
    judged = sum(sentence.key in cited for sentence in found)
    reasons, gaps = (sum(bool(getattr(sentence, name)) for sentence in found) for name in ("unjudged", "gap"))
    cells = (_format_link(document.title, document.url), document.revision[:12], document.date)
    return _format_row((*cells, *map(str, (len(found), judged, reasons, gaps))))


def _gaps(documents: Iterable[Sequence[Sentence]]) -> str:
    gaps = [sentence for found in documents for sentence in found if sentence.gap]
    lines = [f"- {_format_link(sentence.key, sentence.url)}: {sentence.gap}.\n" for sentence in gaps]
    return "## Gaps\n\nWhat should be judged and is not.\n\n" + "".join(lines) if lines else ""


def _document(document: Document, found: Sequence[Sentence], cited: Mapping[str, Sequence[str]]) -> str:
    lines = [_line(sentence, cited.get(sentence.key, ())) for sentence in found]
    return f"## {document.title}\n\n{TABLE_HEAD}" + "".join(lines)


def _line(sentence: Sentence, ids: Sequence[str]) -> str:
    reasons = {"none": sentence.unjudged, "gap": sentence.gap}
    judged = [", ".join(ids), *(f"{kind}: {why}" if why else "" for kind, why in reasons.items())]
    shown = _format_link(sentence.gist or sentence.section, sentence.url)
    name = sentence.key.removeprefix(f"{sentence.document.key}.")
    return _format_row((sentence.section, shown, f"`{name}`", "<br>".join(filter(None, judged))))


def _format_row(cells: Iterable[str]) -> str:
    """Return one line of a table, ending in a newline."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _format_link(text: str, url: str) -> str:
    """Return a link; brackets in its text are escaped."""
    shown = re.sub(r"([][])", r"\\\1", text)
    return f"[{shown}]({url})"
