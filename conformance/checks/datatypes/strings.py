"""BYTES: each element is its length in four bytes, and then exactly its bytes."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.checks.support.binary_sides import expect_return, expect_side, expect_survival
from conformance.checks.support.datatypes import KIB
from conformance.roles.corner_values import OCTETS, TEXTS
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.transport.target import Target

# --- BYTES ------------------------------------------------------------------------------------------------------------

TEXT_ROWS = [Row(group, (elements,)) for group, elements in TEXTS.items()]


OCTET_ROWS = [Row(group, (elements,)) for group, elements in OCTETS.items()]


MANY_STRINGS = (
    Row("1000-of-1000", ([b"s" * 1000] * 1000,), thorough=True),
    Row("65536-empty", ([b""] * 65_536,), thorough=True),
    Row("one-of-1MiB", ([b"s" * KIB * KIB],), thorough=True),
)


@check("datatypes.strings-are-read", answers="BIN-BYTES-I", role="identity_bytes")
@rows(*TEXT_ROWS)
def strings_are_read(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """A binary BYTES element is its length in four bytes and then exactly its bytes, as JSON shows."""
    expect_survival(target, model, [model.tensor(elements)], "read")


@check("datatypes.string-lengths-are-read", answers="BIN-BYTES-I", role="string_length")
@rows(*TEXT_ROWS, *OCTET_ROWS, *MANY_STRINGS)
def string_lengths_are_read(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """A binary BYTES element has as many bytes as its prefix says, whatever they are."""
    expect_side(target, model, [model.tensor(elements)], "read")


@check("datatypes.strings-are-written", answers="BIN-BYTES-O", role="identity_bytes")
@rows(*TEXT_ROWS)
def strings_are_written(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """A BYTES element of a binary output is its length in four bytes and then exactly its bytes."""
    expect_survival(target, model, [model.tensor(elements)], "written")


@check("datatypes.any-octets-survive", answers=("BIN-BYTES-I", "BIN-BYTES-O"), role="identity_bytes")
@rows(*OCTET_ROWS, *MANY_STRINGS)
def any_octets_survive(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """BYTES elements that no JSON carries come back from binary data as binary data."""
    expect_return(target, model, [model.tensor(elements)], "BIN-BYTES-O")
