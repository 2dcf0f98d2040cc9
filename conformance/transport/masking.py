"""Secrets found in bytes, and replaced by as many asterisks, so that lengths and offsets stay true.

Secrets are looked for by their pieces of eight bytes: servers cut what they repeat, and so do messages. All pieces of
all spellings stand in one table, so that one pass over the bytes finds them, however many there are: what a mask costs
is linear in the bytes, and does not depend on the secrets.

    telling   a piece that proves that the secret is there
    weak      one that a number may be as well: so many in a row that no number is are needed
    neutral   one that is a piece of the protocol's own words, too, or of what was sent: proves nothing

A row of pieces, each one byte after the other, is masked where it holds a telling one, or enough weak ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conformance.transport.common_words import cut_pieces, get_word_pieces
from conformance.transport.secret_encodings import fold, list_encodings, unescape

PIECE_BYTES: Final = 8  # bytes
MIN_SECRET_DIGITS: Final = 16  # digits in a row; numbers that servers compute have fewer in common with a secret
_CHUNK: Final = 512 * 1024  # bytes that are looked at in one step
_OVERLAP: Final = 256  # bytes that two steps share; more than any escaped piece has
_NEUTRAL, _WEAK, _TELLING = range(3)
_ASTERISK: Final = ord("*")
_BITS: Final = 20  # of the table
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 by the golden ratio, Knuth's multiplier
_SHIFT: Final = np.uint64(64 - _BITS)
_DIGITS: Final = frozenset(b"0123456789abcdef .:,+e")

Words: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = NDArray[np.intp]  # of two columns: where each begins, and where it ends


class Mask:
    """Hides secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = [spelling for secret in secrets for spelling in list_encodings(secret)]
        # What is too short for pieces is looked for whole.
        self._whole = tuple(
            {text for text, is_weak in found if len(text) < (MIN_SECRET_DIGITS if is_weak else PIECE_BYTES)}
        )
        self._kinds = _kinds(found)

    def hidden(self, octets: bytes, sent: bytes = b"") -> bytes:
        """Return bytes without secrets.

        Args:
            octets: what a server sent.
            sent: what it was asked, where it may rightly repeat any of that.
        """
        if not self._kinds:
            return octets
        changed: bytearray | None = None
        for start in range(0, len(octets), _CHUNK):
            for places in self._places(octets[start : start + _CHUNK + _OVERLAP], sent):
                changed = changed or bytearray(octets)
                np.frombuffer(changed, np.uint8)[start + places] = _ASTERISK
        return octets if changed is None else bytes(changed)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        octets = text.encode("utf-8", "surrogatepass")
        changed = self.hidden(octets)
        return text if changed is octets else changed.decode("utf-8", "replace")

    # --- looking ---

    def _places(self, octets: bytes, sent: bytes) -> Iterator[Places]:
        """Yield places of what is to be hidden."""
        text = fold(octets)
        is_secret = self._found(text, sent)
        if is_secret is not None:
            yield np.flatnonzero(is_secret)
        if resolved := unescape(text):
            plain, starts = resolved
            is_secret = self._found(plain, sent)
            if is_secret is not None:  # an escape ends where the next character begins
                yield np.flatnonzero(np.repeat(is_secret, np.diff(starts)))

    def _found(self, text: bytes, sent: bytes) -> NDArray[np.bool_] | None:
        """Say of each byte of a text whether it is part of a secret; None where none is."""
        rows = list(self._whole_ones(text, sent))
        places, numbers = self._pieces(text)
        if len(places):
            proven = _rows(places, self._kind_of[numbers])
            if len(proven) and sent:
                proven = _rows(places, self._without(sent)[numbers])
            rows.append(proven)
        return _spread(np.concatenate(rows), len(text)) if any(map(len, rows)) else None

    def _whole_ones(self, text: bytes, sent: bytes) -> Iterator[Rows]:
        """Yield where secrets stand that are too short for pieces."""
        for whole in self._whole:
            if whole in text and not (sent and whole in fold(sent)):
                found = [match.start() for match in re.finditer(re.escape(whole), text)]
                yield np.array([(start, start + len(whole)) for start in found], np.intp)

    def _without(self, sent: bytes) -> NDArray[np.uint8]:
        """Return the kind of each piece, those neutral that were sent."""
        kinds = self._kind_of.copy()
        text = fold(sent)
        for start in range(0, len(text), _CHUNK):
            kinds[self._pieces(text[start : start + _CHUNK + PIECE_BYTES])[1]] = _NEUTRAL
        return kinds

    def _pieces(self, text: bytes) -> tuple[Places, Places]:
        """Return where pieces of secrets begin in a text, and the number of each."""
        if len(text) < PIECE_BYTES:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        words: Words = np.ndarray((len(text) - PIECE_BYTES + 1,), "<u8", text, strides=(1,))
        likely = np.flatnonzero(self._table[_hashed(words)])
        found = words[likely]
        numbers = np.minimum(np.searchsorted(self._words, found), len(self._words) - 1)
        is_one = self._words[numbers] == found
        return likely[is_one], numbers[is_one]

    @cached_property
    def _words(self) -> Words:
        return np.sort(np.frombuffer(b"".join(self._kinds), "<u8"))

    @cached_property
    def _kind_of(self) -> NDArray[np.uint8]:
        """The kind of each piece, in the order of `_words`."""
        return np.array([self._kinds[word.tobytes()] for word in self._words], np.uint8)

    @cached_property
    def _table(self) -> NDArray[np.bool_]:
        table = np.zeros(1 << _BITS, bool)
        table[_hashed(self._words)] = True
        return table


@lru_cache(maxsize=64)
def make_mask(secrets: tuple[str, ...]) -> Mask:
    """Return the mask of secrets; it is made once."""
    return Mask(secrets)


def _hashed(words: Words) -> Words:
    return (words * _SPREAD) >> _SHIFT


def _kinds(found: Sequence[tuple[bytes, bool]]) -> dict[bytes, int]:
    """Return every piece of every spelling with its kind."""
    kinds: dict[bytes, int] = {}
    for text, is_weak in found:
        for piece in cut_pieces(text, PIECE_BYTES):
            kind = _WEAK if is_weak or set(piece) <= _DIGITS else _TELLING
            kinds[piece] = max(kind, kinds.get(piece, kind))
    words = get_word_pieces(PIECE_BYTES)
    return {piece: _NEUTRAL if piece in words else kind for piece, kind in kinds.items()}


def _rows(places: Places, kinds: NDArray[np.uint8]) -> Rows:
    """Return the rows of pieces that prove a secret: the first byte of each, and the one behind its last."""
    firsts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
    lasts = np.append(firsts[1:], len(places)) - 1
    tells = np.maximum.reduceat(kinds, firsts) == _TELLING
    weak = np.add.reduceat(kinds == _WEAK, firsts, dtype=np.intp)
    proven = tells | (weak + PIECE_BYTES - 1 >= MIN_SECRET_DIGITS)
    return np.column_stack((places[firsts[proven]], places[lasts[proven]] + PIECE_BYTES))


def _spread(rows: Rows, length: int) -> NDArray[np.bool_]:
    """Say of each of so many bytes whether it is in a row."""
    begun = np.bincount(rows[:, 0], minlength=length + 1)
    ended = np.bincount(rows[:, 1], minlength=length + 1)
    return np.cumsum(begun - ended)[:length] > 0
