"""Detects requests whose binary data are in another order than the inputs in the JSON.

BYTES elements have length prefixes, and BOOL elements are 0 or 1. If these are invalid in the order of the JSON, but
all valid in another order, the client wrote the binary data in that other order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

from conformance.wire.finding import Finding
from conformance.wire.outputs import Output, decode_output

# Up to this number of tensors all orders are tried; for more tensors, only likely orders.
_ALL_ORDERS: Final = 4
_FRAMING: Final = frozenset({"bytes-prefix-truncated", "bytes-past-end", "bytes-count", "bytes-stray"})
_ELEMENTS: Final = frozenset({*_FRAMING, "bool-byte"})
# Bytes that incorrect encoders use for true and false: all bits set, or a character.
_TRUTHS: Final = frozenset(b"\x00\xff01tfTFyYnN")


def list_other_orders(names: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Yield other orders of these names, as tuples of indices: all for a few names, else only likely orders."""
    places = tuple(range(len(names)))
    by_name = sorted(places, key=lambda place: names[place])
    likely = (tuple(reversed(places)), tuple(by_name), tuple(reversed(by_name)), (*places[1:], *places[:1]))
    orders = permutations(places) if len(places) <= _ALL_ORDERS else likely
    yield from (order for order in dict.fromkeys(orders) if order != places)


def find_matching_order(inputs: Sequence[Output], body: bytes, start: int) -> list[Output] | None:
    """Return the inputs decoded in another order, in which all elements are valid; None if there is no such order.

    The first input whose bytes are at another offset than in the order of the JSON gets a finding of kind `order`.
    """
    binary = [one for one in inputs if one.binary]
    kinds = {finding.kind for one in binary for finding in one.findings}
    if len(binary) < 2 or not kinds & _ELEMENTS or any(one.span is None for one in binary):
        return None
    if is_other_bool_encoding(binary, body):
        return None
    for order in list_other_orders([one.name for one in binary]):
        placed = _decode_in_order([binary[index] for index in order], body, start)
        if not any(finding.kind in _ELEMENTS for one in placed for finding in one.findings):
            return _merge_inputs(inputs, placed)
    return None


def is_other_bool_encoding(tensors: Sequence[Output], body: bytes) -> bool:
    """Return whether the only faults are BOOL elements that encode true as a byte other than 1, such as 255.

    Such bytes could also be the data of another tensor, in a wrong order. Then only the BOOL encoding is reported.
    """
    wrong = [one for one in tensors if any(finding.kind != "data-and-size" for finding in one.findings)]
    return all(
        one.datatype == "BOOL" and one.span is not None and set(body[slice(*one.span)]) <= _TRUTHS for one in wrong
    )


def _decode_in_order(binary: Sequence[Output], body: bytes, start: int) -> list[Output]:
    """Return the binary inputs with the spans and elements that they have if their bytes are in this order."""
    placed: list[Output] = []
    for one in binary:
        begin, end = one.span or (0, 0)
        kept = tuple(finding for finding in one.findings if finding.kind not in _ELEMENTS)
        moved = replace(one, span=(start, start + end - begin), array=None, findings=kept)
        start += end - begin
        placed.append(decode_output(moved, {}, body))
    return placed


def _merge_inputs(inputs: Sequence[Output], placed: Sequence[Output]) -> list[Output]:
    read = {one.index: one for one in placed}
    merged = [read.get(one.index, one) for one in inputs]
    first = next(place for place, one in enumerate(inputs) if one.span != merged[place].span)
    in_json = ", ".join(one.label for one in merged if one.binary)
    in_body = ", ".join(one.label for one in placed)
    span = inputs[first].span
    merged[first] = merged[first].with_findings(Finding("order", "body", span[0] if span else None, in_json, in_body))
    return merged
