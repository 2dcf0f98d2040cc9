"""Binary data in another order than the JSON lists their tensors: seen where the contents tell.

Elements of BYTES have their lengths in front, and those of BOOL are 0 or 1: where they do not fit in the order of the
JSON, and all fit in another, that is the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

from conformance.wire.finding import Finding
from conformance.wire.outputs import Output, decode_output

# So many can be tried in every order; of more, some orders that clients are likely to have.
_ALL_ORDERS: Final = 4
_FRAMING: Final = frozenset({"bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray"})
_ELEMENTS: Final = frozenset({*_FRAMING, "bool-byte"})
# How true and false are written by those who do not write 1 and 0: all bits, or a letter.
_TRUTHS: Final = frozenset(b"\x00\xff01tfTFyYnN")


def list_other_orders(names: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Yield orders in which things of these names may stand, other than their own: a bounded number."""
    places = tuple(range(len(names)))
    by_name = sorted(places, key=lambda place: names[place])
    likely = (tuple(reversed(places)), tuple(by_name), tuple(reversed(by_name)), (*places[1:], *places[:1]))
    orders = permutations(places) if len(places) <= _ALL_ORDERS else likely
    yield from (order for order in dict.fromkeys(orders) if order != places)


def find_matching_order(inputs: Sequence[Output], body: bytes, start: int) -> list[Output] | None:
    """Return the inputs as they are in the order in which their bytes stand; None where that is no other.

    The first of those that stand elsewhere has the finding.
    """
    binary = [one for one in inputs if one.binary]
    kinds = {finding.kind for one in binary for finding in one.findings}
    if len(binary) < 2 or not kinds & _ELEMENTS or any(one.span is None for one in binary):
        return None
    if is_other_bool_encoding(binary, body):
        return None
    for order in list_other_orders([one.name for one in binary]):
        placed = _placed([binary[place] for place in order], body, start)
        if not any(finding.kind in _ELEMENTS for one in placed for finding in one.findings):
            return _merged(inputs, placed)
    return None


def is_other_bool_encoding(tensors: Sequence[Output], body: bytes) -> bool:
    """Whether all that is wrong with tensors is that BOOL is written with another byte for true than 1.

    The data of another tensor could look so as well; then that fault is named, and not the order.
    """
    wrong = [one for one in tensors if any(finding.kind != "data-and-size" for finding in one.findings)]
    return all(
        one.datatype == "BOOL" and one.span is not None and set(body[slice(*one.span)]) <= _TRUTHS for one in wrong
    )


def _placed(binary: Sequence[Output], body: bytes, start: int) -> list[Output]:
    """Return binary inputs read one after the other in this order."""
    placed: list[Output] = []
    for one in binary:
        begin, end = one.span or (0, 0)
        kept = tuple(finding for finding in one.findings if finding.kind not in _ELEMENTS)
        moved = replace(one, span=(start, start + end - begin), array=None, findings=kept)
        start += end - begin
        placed.append(decode_output(moved, {}, body))
    return placed


def _merged(inputs: Sequence[Output], placed: Sequence[Output]) -> list[Output]:
    read = {one.index: one for one in placed}
    merged = [read.get(one.index, one) for one in inputs]
    first = next(place for place, one in enumerate(inputs) if one.span != merged[place].span)
    in_json = ", ".join(one.label for one in merged if one.binary)
    in_body = ", ".join(one.label for one in placed)
    span = inputs[first].span
    merged[first] = merged[first].finding(Finding("order", "body", span[0] if span else None, in_json, in_body))
    return merged
