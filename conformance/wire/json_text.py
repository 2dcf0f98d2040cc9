"""A strict parser of untrusted JSON, which reports every deviation and never raises.

The parser accepts these deviations from RFC 8259 with a finding: bytes that are not UTF-8 become lone surrogates
(json-not-utf8), the last of duplicate members counts (json-duplicate-member), and NaN and Infinity are numbers
(json-non-finite). The parser rejects a text that is not JSON (json-invalid), nests too deeply (json-too-deep), or
exceeds the limits of size or objects (json-too-large). These limits bound the cost of parsing.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.wire.finding import Finding, format_value

MAX_DEPTH: Final = 64
MAX_JSON_BYTES: Final = 64 * 1024 * 1024
MAX_OBJECTS: Final = 100_000
FIELD: Final = "json"

_FATAL = frozenset({"json-invalid", "json-too-deep", "json-too-large"})
_EXACT = 2.0**53
_BEYOND_INTEGERS = 2.0**66
# A fast path: replace each digit by 0. If the text then contains none of these sequences, every number with a point is
# exactly a double. This search takes a tenth of the time of a regular expression.
_DIGITS_ALIKE: Final = bytes.maketrans(b"123456789E+", b"000000000e-")
_INEXACT: Final = (b"0" * 16, b"0e0", b"0e-")
_HUGE = 10**400
# A string is matched whole, so that its content is not taken for structure; an unterminated string extends to the end
# of the text. Possessive repetition keeps the search linear for any text.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_NON_FINITE = re.compile(_STRING + rb"|(-?Infinity|NaN)", re.DOTALL)
_LONG_NUMBER = re.compile(_STRING + rb"|([0-9]{4000,})", re.DOTALL)


class ParsedJson(NamedTuple):
    """The result of parsing a JSON text: the value, None if the text was rejected, and the findings about the text."""

    value: Any
    findings: tuple[Finding, ...]

    @property
    def is_json(self) -> bool:
        """Whether the text was accepted; the value of an accepted text may be None as well, for `null`."""
        return not any(finding.kind in _FATAL for finding in self.findings)


def parse_json(text: bytes) -> ParsedJson:
    """Parse a JSON text. Offsets of findings are offsets in `text`. Never raises."""
    if excess := _find_excess(text):
        return ParsedJson(None, (excess,))
    deep = find_too_deep(text, MAX_DEPTH)
    if deep is not None:
        actual = f"depth {MAX_DEPTH + 1}"
        return ParsedJson(None, (Finding("json-too-deep", FIELD, deep, f"at most depth {MAX_DEPTH}", actual),))
    decoded, findings = _decode_utf8(text)
    duplicates: Counter[str] = Counter()
    constants: list[str] = []

    def build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            duplicates.update({name: n for name, n in Counter(name for name, _ in pairs).items() if n > 1})
        return found

    def parse_constant(spelling: str) -> float:
        constants.append(spelling)
        return float(spelling)

    try:
        number = _parse_number if _may_be_inexact(text) else None
        value = json.loads(
            decoded,
            object_pairs_hook=build_object,
            parse_float=number,
            parse_int=_parse_integer if b"-0" in text else None,
            parse_constant=parse_constant,
        )
    except json.JSONDecodeError as error:
        at = len(decoded[: error.pos].encode("utf-8", "surrogateescape"))
        return ParsedJson(None, (*findings, Finding("json-invalid", FIELD, at, "JSON", error.msg)))
    except (ValueError, RecursionError):  # limits of Python, mainly on the digits of an integer
        return ParsedJson(None, (*findings, _describe_unreadable_number(text)))
    findings += [
        Finding("json-duplicate-member", FIELD, None, f"one member {format_value(name)}", f"{count} of them")
        for name, count in duplicates.items()
    ]
    if constants:
        at = next(_find_outside_strings(_NON_FINITE, text)).start()
        findings.append(Finding("json-non-finite", FIELD, at, "finite numbers", constants[0]))
    return ParsedJson(value, tuple(findings))


def parse_json_prefix(body: bytes) -> int | None:
    """Return the end of the JSON object or array with which `body` begins, or None. Never raises.

    The bytes after the JSON, usually binary data, are ignored.
    """
    end = find_value_end(body)
    return end if end is not None and parse_json(body[:end]).is_json else None


def _may_be_inexact(text: bytes) -> bool:
    """Return whether a text has numbers with an exponent or many digits, which a double may not represent."""
    alike = text.translate(_DIGITS_ALIKE)
    return any(found in alike for found in _INEXACT)


def _find_outside_strings(pattern: re.Pattern[bytes], text: bytes) -> Iterator[re.Match[bytes]]:
    return (match for match in pattern.finditer(text) if match.group(1) is not None)


def _find_excess(text: bytes) -> Finding | None:
    """Return a finding if a text has too many bytes, or too many opening braces, even in strings."""
    if len(text) > MAX_JSON_BYTES:
        return Finding("json-too-large", FIELD, MAX_JSON_BYTES, f"at most {MAX_JSON_BYTES} bytes", f"{len(text)} bytes")
    objects = text.count(b"{")
    if objects > MAX_OBJECTS:
        return Finding("json-too-large", FIELD, None, f"at most {MAX_OBJECTS} objects", f"{objects} braces")
    return None


def _decode_utf8(text: bytes) -> tuple[str, list[Finding]]:
    try:
        return text.decode(), []
    except UnicodeDecodeError as error:
        finding = Finding("json-not-utf8", FIELD, error.start, "UTF-8", f"byte {text[error.start]:02x}")
        return text.decode("utf-8", "surrogateescape"), [finding]


def _describe_unreadable_number(text: bytes) -> Finding:
    number = next(_find_outside_strings(_LONG_NUMBER, text), None)
    if number is None:
        return Finding("json-invalid", FIELD, None, "JSON that can be read", "JSON beyond the limits of the parser")
    actual = f"a number of {len(number.group(1))} digits"
    return Finding("json-invalid", FIELD, number.start(), "a number that can be read", actual)


def _parse_integer(spelling: str) -> float | int:
    """Convert a number without point and exponent to an int; -0 becomes a float, because an int would lose its sign."""
    return -0.0 if spelling == "-0" else int(spelling)


def _parse_number(spelling: str) -> float | int:
    """Convert a number with a point or an exponent to a float; an integer from 2^53 to 2^66 becomes an exact int.

    A float would round an INT64 that is written as 9007199254740993.0. A number that a float cannot represent, such as
    1e400, becomes the constant `_HUGE` instead of Infinity: an exact int would need much memory.
    """
    value = float(spelling)
    if abs(value) < _EXACT:
        return value
    if math.isinf(value):
        return _HUGE if value > 0 else -_HUGE
    if abs(value) > _BEYOND_INTEGERS:  # beyond the integers of any datatype
        return value
    exact = Decimal(spelling)
    return int(exact) if exact == exact.to_integral_value() else value


# --- structure: the brackets of a text, found without parsing its values, at the speed of numpy -----------------------
# The cost of an untrusted text has to be known before parsing: its depth and its number of objects. Brackets inside
# strings do not count. For invalid JSON the result is arbitrary, because the parser rejects it anyway.

_BLOCK: Final = 1 << 16
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_BLANKS = re.compile(rb"[ \t\r\n]*")
_QUOTE: Final = ord('"')
# The change of depth for each byte.
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1

Depths = NDArray[Any]


def find_too_deep(text: bytes, limit: int) -> int | None:
    """Return the offset of the first bracket that is nested deeper than `limit`, or None."""
    if text.count(b"[") + text.count(b"{") <= limit:
        return None
    for start, depths in _compute_depths(text, 0):
        if depths.max() > limit:
            return start + int(np.argmax(depths > limit))
    return None


def find_value_end(text: bytes) -> int | None:
    """Return the end of the object or array at the start of a text, after white space; None for other texts."""
    begin = _BLANKS.match(text).end()  # type: ignore[union-attr]  # it always matches
    if text[begin : begin + 1] not in (b"[", b"{"):
        return None
    for start, depths in _compute_depths(text, begin):
        if depths.min() <= 0:
            return start + int(np.argmax(depths <= 0)) + 1
    return None


def _compute_depths(text: bytes, begin: int) -> Iterator[tuple[int, Depths]]:
    """Yield for each block of a text its offset, and the nesting depth after each byte of the block."""
    depth, in_string = 0, False
    while begin < len(text):
        end = min(begin + _BLOCK, len(text))
        # An escape is two bytes that are neither quote nor bracket; a block that would split one includes it.
        plain = _ESCAPE.sub(b"__", text[begin:end])
        if plain.endswith(b"\\"):
            end, plain = min(end + 1, len(text)), plain[:-1] + b"__"
        octets = np.frombuffer(plain, np.uint8, end - begin)
        inside = np.logical_xor.accumulate(octets == _QUOTE) ^ in_string
        steps = _STEPS[octets]
        steps[inside] = 0
        depths = np.cumsum(steps, dtype=np.int32) + depth
        yield begin, depths
        depth, in_string, begin = int(depths[-1]), bool(inside[-1]), end
