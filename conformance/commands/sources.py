"""`oip-conformance sources`: whether every sentence stands where the ledger has it, and the pages about them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.commands import sentences_page
from conformance.pages import servers
from conformance.pages.servers import ServerResult
from conformance.spec import ledger
from conformance.spec.documents import Document, load_documents, load_sentences
from conformance.spec.sentence_places import find_mismatch, squeeze_whitespace
from conformance.spec.user_error import UserError


class SourcesError(UserError):
    """The folder cannot be checked; the message is one line."""


def add(commands: Any) -> None:
    """Declare the command with its own subcommands."""
    sources = commands.add_parser("sources", help="the sentences of the documents that the requirements rest on")
    actions = sources.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="look up each sentence in copies of the documents",
        description="Look up each sentence in copies of the documents. Exit status 0 when each stands in exactly one "
        "place with the words that it had, 1 with a line for each that does not. The copies are: "
        + ", ".join(document.copy for document in _copied()),
    )
    check.add_argument("folder", type=Path, metavar="DIR", help="the folder of the copies")
    actions.add_parser("page", help="print docs/sentences.md")
    errata = actions.add_parser("errata", help="print docs/errata.md: where the documents contradict themselves")
    errata.add_argument("folder", type=Path, metavar="DIR", help="a folder of reports, which say what servers do")


def run(options: argparse.Namespace) -> str | tuple[str, int]:
    """Return what to print, and the exit status where it is not 0.

    Raises:
        SourcesError: DIR is no folder, or has no copy of any document, or a file that is no report.
    """
    if options.action == "errata":
        from conformance.pages import errata  # Jinja2 takes its time, and is needed for this alone

        return errata.render(_servers(options.folder)).removesuffix("\n")
    if options.action == "page":
        cited = sentences_page.map_citations(ledger.load().values())
        return sentences_page.render(load_sentences().values(), cited).removesuffix("\n")
    troubles = list(_check(options.folder))
    count = sum(bool(sentence.document.copy) for sentence in load_sentences().values())
    return ("\n".join(troubles), 1) if troubles else f"all {count} sentences are in their places"


def _servers(folder: Path) -> tuple[ServerResult, ...]:
    if not folder.is_dir():
        raise SourcesError(f"{folder}: no such folder")
    try:
        return servers.load(folder, bundled=True)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SourcesError(f"{folder}: has a file that is no report: {error}") from error


def _copied() -> list[Document]:
    return [document for document in load_documents().values() if document.copy]


def _check(folder: Path) -> Iterator[str]:
    """Yield a line for each sentence, and for each document, that is not as it should be."""
    if not folder.is_dir():
        raise SourcesError(f"{folder}: no such folder")
    if not any((folder / document.copy).is_file() for document in _copied()):
        raise SourcesError(f"{folder}: holds none of {', '.join(document.copy for document in _copied())}")
    for document in _copied():
        yield from _check_document(document, folder / document.copy)


def _check_document(document: Document, path: Path) -> Iterator[str]:
    try:
        text = squeeze_whitespace(path.read_text(encoding="utf-8"))
    except OSError as error:
        yield f"{document.key}: cannot read {path}: {error.strerror}"
        return
    except UnicodeDecodeError:
        yield f"{document.key}: {path} is not UTF-8"
        return
    for sentence in load_sentences().values():
        found = find_mismatch(text, sentence) if sentence.document == document else None
        if found:
            words = " ... ".join(filter(None, (sentence.first, sentence.last)))
            yield f"{sentence.key}: {found}: {words!r} in {path}"
