"""Masks secrets of the user in server answers with asterisks of the same length, so that offsets stay valid.

A server may repeat only a part of a secret. So the search looks for all substrings of eight bytes ("pieces") of the
secrets, in all encodings at once. A piece has a weight: a low one if the piece may be a number, zero if it occurs in a
word of the protocol or in the request. Pieces that start at consecutive offsets form a sequence. A sequence is masked
if its total weight is sufficient.
"""

from __future__ import annotations

import re
import zlib
from array import array
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conformance.spec import data_files
from conformance.spec.extensions import CHOICES
from conformance.transport.exchange import Exchange, TransportFailure
from conformance.wire.request import Message

COOKIE_HEADER: Final = "set-cookie"
HIDDEN: Final = "..."
PIECE_BYTES: Final = 8
MIN_SECRET_DIGITS: Final = 16  # digits in a row; numbers that servers compute share fewer with a secret
_PROVEN_WEIGHT: Final = MIN_SECRET_DIGITS - PIECE_BYTES + 1  # the weight to mask a run: the pieces in so many digits
_DIGITS: Final = frozenset(b"0123456789abcdef .:,+e")
_LOOKUP_PIECES: Final = 512 * 1024  # pieces per lookup
_MAX_DECODED_BYTES: Final = 16 * 1024 * 1024  # of a compressed body
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_SCHEMAS: Final = ("error", "model_metadata", "request", "response", "server_metadata")

Numbers: TypeAlias = NDArray[np.intp]


class Mask:
    """Masks certain secrets in bytes and in texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        short: set[bytes] = set()  # secrets too short for pieces are searched whole
        weights: dict[bytes, int] = {}
        for secret in secrets:
            for text, is_number in list_encodings(secret):
                if len(text) < (MIN_SECRET_DIGITS if is_number else PIECE_BYTES):
                    short.add(text)
                for piece in _cut_pieces(text):
                    weight = 1 if is_number or set(piece) <= _DIGITS else _PROVEN_WEIGHT
                    weights[piece] = 0 if piece in _collect_word_pieces() else max(weight, weights.get(piece, 0))
        self._short = re.compile(b"|".join(map(re.escape, sorted(short))) or b"(?!)")
        self._pieces = np.sort(np.frombuffer(b"".join(weights), "<u8"))
        self._weights = np.array([weights[piece.tobytes()] for piece in self._pieces], np.intp)

    def hide(self, octets: bytes, sent: bytes = b"") -> bytes:
        """Return the bytes with secrets masked, the length unchanged.

        Args:
            octets: the bytes that a server sent.
            sent: the request; text of the request is not masked, because a server may repeat it.
        """
        if not len(self._pieces):
            return octets
        text, sent = fold(octets), fold(sent)
        spans = list(self._find_secrets(text, sent))
        plain, find_offset = unescape(text)
        if len(plain) < len(text):
            spans += ((find_offset(begin), find_offset(end)) for begin, end in self._find_secrets(plain, sent))
        hidden = bytearray(octets)
        for begin, end in spans:
            hidden[begin:end] = b"*" * (end - begin)
        return bytes(hidden)

    def hide_text(self, text: str) -> str:
        """Return the text with secrets masked."""
        octets = text.encode("utf-8", "surrogatepass")
        hidden = self.hide(octets)
        return text if hidden == octets else hidden.decode("utf-8", "replace")

    def _find_secrets(self, text: bytes, sent: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each secret in `text` that `sent` does not contain; both texts are folded (`fold`)."""
        yield from (match.span() for match in self._short.finditer(text) if match[0] not in sent)
        places, numbers = self._find_pieces(text)
        if not len(places):
            return
        weights = self._weights.copy()
        weights[self._find_pieces(sent)[1]] = 0
        firsts = np.flatnonzero(np.diff(places, prepend=-2) != 1)
        lasts = np.append(firsts[1:], len(places)) - 1
        is_proven = np.add.reduceat(weights[numbers], firsts) >= _PROVEN_WEIGHT
        ends = places[lasts[is_proven]] + PIECE_BYTES
        yield from zip(places[firsts[is_proven]].tolist(), ends.tolist(), strict=True)

    def _find_pieces(self, text: bytes) -> tuple[Numbers, Numbers]:
        """Return the offset of each secret piece in a folded text, and the index of the piece in `self._pieces`."""
        count = max(len(text) - PIECE_BYTES + 1, 0)
        words = np.ndarray((count,), "<u8", text.ljust(PIECE_BYTES), strides=(1,))
        places, numbers = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for start in range(0, count, _LOOKUP_PIECES):
            part = words[start : start + _LOOKUP_PIECES]
            nearest = np.searchsorted(self._pieces, part)
            found = np.flatnonzero(self._pieces.take(nearest, mode="clip") == part)
            places.append(found + start)
            numbers.append(nearest[found])
        return np.concatenate(places), np.concatenate(numbers)


@lru_cache(maxsize=64)
def make_mask(secrets: tuple[str, ...]) -> Mask:
    """Return the cached mask of these secrets."""
    return Mask(secrets)


# --- words that are not secret, because correct answers contain them --------------------------------------------------


@cache
def _collect_words() -> bytes:
    """Return the words that correct answers contain: names of roles, tensors, JSON members and media types; folded."""
    texts = [(data_files.PACKAGE_FOLDER / "roles/roles.toml").read_bytes()]
    texts += [(data_files.find_folder("schemas") / f"{name}.schema.json").read_bytes() for name in _SCHEMAS]
    texts += [" ".join(CHOICES).encode(), b"application/json application/octet-stream application/grpc"]
    return fold(b"\n".join(texts))


@cache
def _collect_word_pieces() -> frozenset[bytes]:
    return frozenset(_cut_pieces(_collect_words()))


def _cut_pieces(text: bytes) -> list[bytes]:
    return [text[start : start + PIECE_BYTES] for start in range(len(text) - PIECE_BYTES + 1)]


def is_word(text: str) -> bool:
    """Return whether a text is, or is a part of, a word of the protocol or of a model role."""
    return fold(text.encode("utf-8", "replace")) in _collect_words()


# --- exchanges -------------------------------------------------------------------------------------------------------


def mask_exchange(exchange: Exchange, secrets: Sequence[str]) -> Exchange:
    """Return an exchange with the secrets and the server's cookies masked in its answer.

    Each exchange is masked once, before it is truncated or parsed. So a run judges the same bytes that its recording
    contains.
    """
    headers = tuple((name, HIDDEN if name.lower() == COOKIE_HEADER else value) for name, value in exchange.headers)
    if not secrets:
        return exchange if headers == exchange.headers else replace(exchange, headers=headers)
    mask, failure = make_mask(tuple(secrets)), exchange.failure
    return replace(
        exchange,
        headers=tuple((mask.hide_text(name), mask.hide_text(value)) for name, value in headers),
        body=_mask_body(exchange, mask),
        details=mask.hide_text(exchange.details),
        version=mask.hide_text(exchange.version),
        failure=failure and TransportFailure(failure.kind, mask.hide_text(failure.text)),
    )


def _mask_body(exchange: Exchange, mask: Mask) -> bytes:
    """Return the body with secrets masked; a compressed body that contains secrets is compressed again."""
    sent = _join_request_content(exchange.message)
    plain = mask.hide(exchange.body, sent)
    codings = [value.strip().lower() for name, value in exchange.headers if name.lower() == "content-encoding"]
    window = _WINDOWS.get(codings[0]) if len(codings) == 1 else None
    if window is None or not exchange.body:
        return plain
    unpacker = zlib.decompressobj(wbits=window)
    try:
        inside = unpacker.decompress(exchange.body, _MAX_DECODED_BYTES)
    except zlib.error:
        return plain
    if not unpacker.eof or unpacker.unused_data or (hidden := mask.hide(inside, sent)) == inside:
        return plain
    packer = zlib.compressobj(wbits=window)
    return packer.compress(hidden) + packer.flush()


def _join_request_content(message: Message) -> bytes:
    """Return path, header values and body of the request, without the user's headers; a server may repeat these."""
    values = [value for _, value in message.headers]
    return "\n".join([message.path, *values]).encode("utf-8", "replace") + b"\n" + message.body


# --- how a server may write a secret ----------------------------------------------------------------------------------
# Unchanged, in hexadecimal digits, in base64, with escapes of JSON, URLs, Python and HTML. Case and the alphabet of
# base64 are ignored.

_FOLD: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")
_ESCAPE: Final = re.compile(
    rb'(?:%|\\u00|\\x)([0-9a-f]{2})|&#x([0-9a-f]{2});|&#([0-9]{1,3});|\\(["/]|\\(?![ux"/]))|&(amp|lt|gt|quot);'
)
_NAMES: Final = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"'}


def fold(octets: bytes) -> bytes:
    """Return the bytes in lower case, and with `+/` for `-_` of URL-safe base64; the length stays unchanged."""
    return octets.translate(_FOLD)


def list_encodings(secret: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the folded encodings of a secret, each with whether the encoding consists of digits only."""
    for octets in dict.fromkeys((secret.encode("utf-8", "replace"), secret.encode("latin-1", "replace"))):
        yield fold(octets), octets.isdigit()
        for digits in (octets.hex(), octets.hex(" "), octets.hex(":")):
            yield digits.encode(), True
        for before in range(3):
            yield fold(_encode_base64_at(octets, before)), False


def _encode_base64_at(octets: bytes, before: int) -> bytes:
    """Return the base64 characters that encode only `octets`, if `before` other bytes precede them in the data."""
    first, end = -(-before * 8 // 6), (before + len(octets)) * 8 // 6
    return b64encode(bytes(before) + octets)[first:end]


def unescape(text: bytes) -> tuple[bytes, Callable[[int], int]]:
    """Return a folded text with its escapes resolved, and a function that maps offsets in the result to the text."""
    places, surplus = array("q"), array("q", (0,))  # offsets of resolved escapes; bytes removed so far

    def resolve_escape(match: re.Match[bytes]) -> bytes:
        places.append(match.start() - surplus[-1])
        surplus.append(surplus[-1] + len(match[0]) - 1)
        in_html, decimal, character, name = match.groups()[1:]
        if digits := match[1] or in_html:
            return fold(bytes((int(digits, 16),)))
        if decimal:
            return fold(bytes((int(decimal) & 0xFF,)))
        return character or _NAMES[name]

    plain = _ESCAPE.sub(resolve_escape, text)
    return plain, lambda offset: offset + surplus[bisect_left(places, offset)]
