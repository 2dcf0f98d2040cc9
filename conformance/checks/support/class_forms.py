"""Texts of classes as binary data and as JSON: what they have to be, and whether a server writes them right at all."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from conformance.checks.support.binary_sides import is_right, is_right_alone
from conformance.checks.support.classes import read_texts
from conformance.expect import class_texts
from conformance.expect.expectation import expect
from conformance.expect.unmet import UnmetError
from conformance.spec.text import format_element
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire import strings
from conformance.wire.outputs import Output
from conformance.wire.tensor import Tensor

UNWRITTEN = "the same texts are wrong as binary data, too, where they are no classes"


def are_written(target: Target, right: Sequence[str], found: Output | None) -> bool:
    """Say whether a model that returns BYTES writes these texts right in one dimension, and in the shape of the classes."""
    octets = [text.encode("utf-8", "surrogateescape") for text in right]
    matrices = target.model("rank2_bytes")
    shape = found.shape if found else None
    if matrices is not None and shape is not None and len(shape) == 2 and prod(shape) == len(octets):
        square = matrices.tensor(octets, shape)
        if not is_right(target, matrices, [square], "written"):
            return False
    return is_right_alone(target, Tensor.of("INPUT", "BYTES", octets), "written")


def expect_texts(
    reply: Reply, name: str, right: Sequence[str], requirement: str | None = None, *, is_near: bool = False
) -> None:
    """Expect an answer of one output to hold these texts, as binary data or as JSON.

    `is_near`: their values may differ by as much as a model's own answers do from one request to the next.
    """
    if is_near and _are_near(found := read_texts(reply, name), right):
        right = found
    expected = f"{_listed(right)}, as without binary_data"
    if expect(reply).output(name).binary:
        tail = reply.body[reply.answer.json_end :]
        if tail != strings.encode([text.encode("utf-8", "surrogateescape") for text in right]):
            actual = f"{len(tail)} bytes that are not these as BYTES elements: {format_element(tail, 24)}"
            raise UnmetError(expected, actual, reply, requirement=requirement, offset=reply.answer.json_end)
    elif read_texts(reply, name) != list(right):
        raise UnmetError(expected, _listed(read_texts(reply, name)), reply, requirement=requirement)


def _are_near(found: Sequence[str], right: Sequence[str]) -> bool:
    """Say whether texts are the same classes, but for what is left open of a value."""
    pairs = [
        (class_texts.parse_leniently(one), class_texts.parse_leniently(other))
        for one, other in zip(found, right, strict=False)
    ]
    return len(found) == len(right) and all(one and other and class_texts.is_same(one, other) for one, other in pairs)


def _listed(found: Sequence[str]) -> str:
    texts = [format_element(text.encode("utf-8", "surrogateescape")) for text in found[:8]]
    return ", ".join(texts) + (", ..." if len(found) > 8 else "")
