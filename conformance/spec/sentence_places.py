"""Where a sentence stands in a copy of its document: in exactly one place, with the words that it had.

Strategy: a text is searched with its white space squeezed, since copies and pages break lines where they like. A place
begins with the first words of the sentence and goes on to the nearest last words behind them. Words are whole words,
and capitals do not matter: so has it a browser that follows a text fragment, which stops at the first place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from enum import StrEnum

from conformance.spec.documents import Sentence


class SentenceMismatch(StrEnum):
    """What is wrong with the place of a sentence; the value is for people."""

    NOT_THERE = "is not there"
    SEVERAL = "stands in several places"
    CHANGED = "has other words"


def squeeze_whitespace(text: str) -> str:
    """Return a text with each stretch of white space as one space, and none around it."""
    return " ".join(text.split())


def compute_digest(words: str) -> str:
    """Return what `Sentence.sha256` holds for squeezed words."""
    return hashlib.sha256(words.encode()).hexdigest()


def find_places(text: str, sentence: Sentence) -> list[tuple[int, int]]:
    """Return every place of a sentence in a squeezed text: where it begins, and where it ends."""
    return list(_places(text, sentence))


def _places(text: str, sentence: Sentence) -> Iterator[tuple[int, int]]:
    for first in _words(sentence.first).finditer(text):
        last = _words(sentence.last).search(text, first.end()) if sentence.last else first
        if last:
            yield first.start(), last.end()


def _words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)


def find_mismatch(text: str, sentence: Sentence) -> SentenceMismatch | None:
    """Return what is wrong with a sentence in a squeezed text, or None.

    Args:
        text: of the copy, `squeeze_whitespace`.
        sentence: one with words; a section of a standard has none.
    """
    found = find_places(text, sentence)
    if len(found) != 1:
        return SentenceMismatch.SEVERAL if found else SentenceMismatch.NOT_THERE
    ((begin, end),) = found
    return None if compute_digest(text[begin:end]) == sentence.sha256 else SentenceMismatch.CHANGED
