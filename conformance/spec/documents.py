"""The source documents and their normative sentences, read from `sentences/*.toml`.

The files do not copy the sentences. An entry has the first and last words of its sentence: a browser finds them by a
text fragment, and `sources check` finds them in a copy of the document. It also has a digest, which reveals changes to
the words in between. Entries for sections of standards have the anchor of the section instead of words and digest.
`schemas/sentences.schema.json` documents the fields; tests validate the files against it, this module does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from conformance.spec import data_files

SENTENCES_FOLDER = "spec/sentences"
# In the order of the generated pages.
FILES = (
    "triton_binary",
    "triton_classification",
    "triton_parameters",
    "kserve_binary",
    "oip_rest",
    "oip_openapi",
    "oip_grpc",
    "oip_proto",
    "rfcs",
)
# The sentences of loaded packs, by key; `load_sentences` does not return them.
_OF_PACKS: dict[str, Sentence] = {}


@dataclass(frozen=True, slots=True)
class Document:
    """A document at the revision that the ledger cites.

    Attributes:
        revision: the commit of the document; empty if the document has no commit.
        date: the date of the commit; empty if the document has no commit.
        copy: the file name of a copy that `sources check` can search; empty for standards.
    """

    key: str
    title: str
    url: str
    revision: str = ""
    date: str = ""
    copy: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A passage of a document: a sentence, list item, table row or part of an example; or a section of a standard.

    Attributes:
        key: `document.sentence`, by which the ledger cites the passage.
        first: the first words; empty for a section.
        last: the last words; empty if `first` is the whole passage.
        sha256: the digest of all words from the first to the last.
        gist: a summary of the requirement; empty for a section.
        anchor: the anchor of the section; empty for a passage that is found by its words.
        unjudged: why no requirement cites the passage; empty if a requirement cites it.
        gap: what the suite should judge of the passage, but does not judge yet.
    """

    key: str
    document: Document
    section: str
    first: str = ""
    last: str = ""
    sha256: str = ""
    gist: str = ""
    anchor: str = ""
    unjudged: str = ""
    gap: str = ""

    @property
    def url(self) -> str:
        """The URL of the sentence: the page with an anchor or a text fragment.

        Source: WICG, Scroll to Text Fragment, "Syntax".
        """
        if self.anchor:
            return f"{self.document.url}#{self.anchor}"
        return f"{self.document.url}#:~:text=" + ",".join(map(_encode_words, filter(None, (self.first, self.last))))

    def __str__(self) -> str:
        """Return `document, "section": gist`."""
        place = f'{self.document.title}, "{self.section}"'
        return f"{place}: {self.gist}" if self.gist else place


def _encode_words(words: str) -> str:
    """Percent-encode words for a text fragment, including `-`, `,` and `&`, which delimit parts of the fragment."""
    return quote(words, safe="").replace("-", "%2D")


@cache
def load_documents() -> Mapping[str, Document]:
    """Return every document by its key, in the order of the generated pages; the mapping is cached and read-only."""
    return MappingProxyType({key: build_document(key, table) for key, table in _load_tables().items()})


@cache
def load_sentences() -> Mapping[str, Sentence]:
    """Return every sentence by its key, grouped by document; the mapping is cached and read-only."""
    found = (one for key, table in _load_tables().items() for one in build_sentences(load_documents()[key], table))
    return MappingProxyType({sentence.key: sentence for sentence in found})


def add_sentences_of_pack(sentences: Mapping[str, Sentence]) -> None:
    """Let `get_sentence` find the sentences of a pack."""
    _OF_PACKS.update(sentences)


def get_sentence(key: str) -> Sentence:
    """Return one sentence of the suite, or of a loaded pack.

    Raises KeyError: no document has a sentence with this key; the message names the key.
    """
    found = load_sentences().get(key) or _OF_PACKS.get(key)
    if found is None:
        raise KeyError(f"unknown sentence {key!r}")
    return found


@cache
def _load_tables() -> Mapping[str, Mapping[str, Any]]:
    return {
        key: table for name in FILES for key, table in data_files.load_toml(f"{SENTENCES_FOLDER}/{name}.toml").items()
    }


def build_document(key: str, table: Mapping[str, Any]) -> Document:
    """Return the document of a table in a file of sentences."""
    return Document(key, **{name: value for name, value in table.items() if name != "sentences"})


def build_sentences(document: Document, table: Mapping[str, Any]) -> Iterator[Sentence]:
    """Yield the sentences of a document from its table in a file of sentences."""
    for name, fields in table["sentences"].items():
        yield Sentence(f"{document.key}.{name}", document, **fields)
