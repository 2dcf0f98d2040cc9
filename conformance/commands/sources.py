"""`oip-conformance sources`: checks that each cited sentence is in its document, and renders pages about them.

White space is collapsed before a search, since copies and pages break lines differently. A match begins with the first
words of the sentence and extends to the nearest occurrence of its last words. Matching ignores case and compares whole
words, as browsers do for a link with a text fragment. A browser shows only the first match.

The page of sentences lists the requirements by sentence; it is generated from the sentences and the ledger only.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from conformance.judging import packs
from conformance.pages import servers
from conformance.pages.servers import ServerResult
from conformance.spec import ledger
from conformance.spec.documents import Document, Sentence, load_documents, load_sentences
from conformance.spec.ledger import Requirement
from conformance.spec.user_error import UserError


class SentenceMismatch(StrEnum):
    """The reasons why a sentence does not match its document; the values are for messages."""

    NOT_THERE = "is not there"
    SEVERAL = "occurs several times"
    CHANGED = "has other words"


def squeeze_whitespace(text: str) -> str:
    """Return a text with each run of white space collapsed to one space, and none at its ends."""
    return " ".join(text.split())


def compute_digest(words: str) -> str:
    """Return the digest of words with collapsed white space, to compare with `Sentence.sha256`."""
    return hashlib.sha256(words.encode()).hexdigest()


def find_matches(text: str, sentence: Sentence) -> list[tuple[int, int]]:
    """Return the start and end of every match of a sentence in a text with collapsed white space."""
    return list(_iterate_matches(text, sentence))


def _iterate_matches(text: str, sentence: Sentence) -> Iterator[tuple[int, int]]:
    for first in _build_pattern(sentence.first).finditer(text):
        last = _build_pattern(sentence.last).search(text, first.end()) if sentence.last else first
        if last:
            yield first.start(), last.end()


def _build_pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)


def find_mismatch(text: str, sentence: Sentence) -> SentenceMismatch | None:
    """Return why a sentence does not match a text with collapsed white space; None if it matches.

    Args:
        text: the copy of the document after `squeeze_whitespace`.
        sentence: a sentence with words; a section of a standard has none.
    """
    found = find_matches(text, sentence)
    if len(found) != 1:
        return SentenceMismatch.SEVERAL if found else SentenceMismatch.NOT_THERE
    ((begin, end),) = found
    return None if compute_digest(text[begin:end]) == sentence.sha256 else SentenceMismatch.CHANGED


def add_subcommand(commands: Any) -> None:
    """Add the command and its subcommands."""
    sources = commands.add_parser(
        "sources",
        help="check the sentences that the requirements cite, or print pages about them",
        description="Check the sentences that the requirements cite, or print pages about them.",
    )
    actions = sources.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="look up each sentence in copies of the documents",
        description="Look up each sentence in copies of the documents. Exit status 0: each is there once, unchanged; "
        "1: some are not, with a line for each. The copies are: "
        + ", ".join(document.copy for document in _list_copied_documents()),
    )
    check.add_argument("folder", type=Path, metavar="DIR", help="the folder of the copies")
    check.add_argument("--pack", metavar="NAME", help="look up the sentences of this installed pack instead")
    actions.add_parser("page", help="print all sentences, with the requirements that rest on each")
    errata = actions.add_parser("errata", help="print the errata: errors and contradictions of the documents")
    errata.add_argument("folder", type=Path, metavar="DIR", help="a folder of reports, which show what servers do")


def run(options: argparse.Namespace) -> str | tuple[str, int]:
    """Return the text to print, with the exit status if it is not 0.

    Raises UserError: DIR is not a folder, has no copy of any document, or has a file that is not a report.
    """
    if options.action == "errata":
        from conformance.pages import errata  # Jinja2 is slow to import and needed only here

        return errata.render(_load_servers(options.folder)).removesuffix("\n")
    if options.action == "page":
        cited = group_requirements_by_sentence(ledger.load().values())
        return render_sentences(load_sentences().values(), cited).removesuffix("\n")
    sentences = packs.load(options.pack, "--pack").sentences if options.pack else load_sentences()
    chosen = [sentence for sentence in sentences.values() if sentence.document.copy]
    troubles, count = list(_check_folder(options.folder, chosen)), len(chosen)
    return ("\n".join(troubles), 1) if troubles else f"all {count} sentences were found in their documents"


def _load_servers(folder: Path) -> tuple[ServerResult, ...]:
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    return servers.load(folder, bundled=True)


def _list_copied_documents() -> list[Document]:
    return [document for document in load_documents().values() if document.copy]


def _check_folder(folder: Path, sentences: Sequence[Sentence]) -> Iterator[str]:
    """Yield a line for each sentence that does not match and each document that cannot be read."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    copied = list(dict.fromkeys(sentence.document for sentence in sentences))
    if not any((folder / document.copy).is_file() for document in copied):
        raise UserError(f"{folder}: holds none of {', '.join(document.copy for document in copied)}")
    for document in copied:
        yield from _check_document(document, folder / document.copy, sentences)


def _check_document(document: Document, path: Path, sentences: Sequence[Sentence]) -> Iterator[str]:
    try:
        text = squeeze_whitespace(path.read_text(encoding="utf-8"))
    except OSError as error:
        yield f"{document.key}: cannot read {path}: {error.strerror}"
        return
    except UnicodeDecodeError:
        yield f"{document.key}: {path} is not UTF-8"
        return
    for sentence in sentences:
        found = find_mismatch(text, sentence) if sentence.document == document else None
        if found:
            words = " ... ".join(filter(None, (sentence.first, sentence.last)))
            digests = [compute_digest(text[begin:end]) for begin, end in find_matches(text, sentence)]
            actual = f", with sha256 {digests[0]}" if found is SentenceMismatch.CHANGED else ""
            yield f"{sentence.key}: {found}: {words!r} in {path}{actual}"


def format_row(cells: Iterable[str]) -> str:
    """Return one line of a table, ending in a newline."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def format_link(text: str, url: str) -> str:
    """Return a link; brackets in its text are escaped."""
    shown = re.sub(r"([][])", r"\\\1", text)
    return f"[{shown}]({url})"


HEAD = """# Sentences

Written by `oip-conformance sources page`; edit `conformance/spec/sentences/*.toml`, and the
sources in `conformance/spec/requirements/`, instead.

This page lists every sentence of the documents that demands something of a server or a client, in the order of the
documents. For each sentence it names the requirements that judge it, or the reason why none does. The links lead to the
sentence in the revision that we read. `oip-conformance sources check DIR` looks up every sentence in a folder with
copies of the documents.

| document | revision | date | sentences | judged | not judged, for a reason | gaps |
|---|---|---|---|---|---|---|
"""

TABLE_HEAD = "| section | sentence | key | judged by |\n|---|---|---|---|\n"


def group_requirements_by_sentence(ledger: Iterable[Requirement]) -> dict[str, list[str]]:
    """Return key of a sentence -> the ids of the requirements that cite the sentence, in the order of the ledger."""
    found: dict[str, list[str]] = {}
    for entry in ledger:
        for source in entry.sources:
            found.setdefault(source.key, []).append(entry.id)
    return found


def render_sentences(sentences: Iterable[Sentence], cited: Mapping[str, Sequence[str]]) -> str:
    """Return the page, ending in a newline.

    Args:
        sentences: the sentences of all documents, in the order of the page.
        cited: key of a sentence -> the ids of the requirements that cite the sentence.
    """
    by_document: dict[Document, list[Sentence]] = {}
    for sentence in sentences:
        by_document.setdefault(sentence.document, []).append(sentence)
    summary = "".join(_format_summary_row(document, found, cited) for document, found in by_document.items())
    sections = [_render_document(document, found, cited) for document, found in by_document.items()]
    return "\n".join([HEAD + summary, *filter(None, [_render_gaps(by_document.values())]), *sections])


def _format_summary_row(document: Document, found: Sequence[Sentence], cited: Mapping[str, Sequence[str]]) -> str:
    judged = sum(sentence.key in cited for sentence in found)
    reasons, gaps = (sum(bool(getattr(sentence, name)) for sentence in found) for name in ("unjudged", "gap"))
    cells = (format_link(document.title, document.url), document.revision[:12], document.date)
    return format_row((*cells, *map(str, (len(found), judged, reasons, gaps))))


def _render_gaps(documents: Iterable[Sequence[Sentence]]) -> str:
    gaps = [sentence for found in documents for sentence in found if sentence.gap]
    lines = [f"- {format_link(sentence.key, sentence.url)}: {sentence.gap}.\n" for sentence in gaps]
    return (
        "## Gaps\n\nDemands that the suite should judge, but does not judge yet.\n\n" + "".join(lines) if lines else ""
    )


def _render_document(document: Document, found: Sequence[Sentence], cited: Mapping[str, Sequence[str]]) -> str:
    lines = [_format_sentence_row(sentence, cited.get(sentence.key, ())) for sentence in found]
    return f"## {document.title}\n\n{TABLE_HEAD}" + "".join(lines)


def _format_sentence_row(sentence: Sentence, ids: Sequence[str]) -> str:
    reasons = {"none": sentence.unjudged, "gap": sentence.gap}
    judged = [", ".join(ids), *(f"{kind}: {why}" if why else "" for kind, why in reasons.items())]
    shown = format_link(sentence.gist or sentence.section, sentence.url)
    name = sentence.key.removeprefix(f"{sentence.document.key}.")
    return format_row((sentence.section, shown, f"`{name}`", "<br>".join(filter(None, judged))))
