"""BYTES: each element is its length in four bytes, and then exactly its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.checks.support.binary_sides import expect_return, expect_side, expect_survival
from conformance.checks.support.changed_tensors import fill_texts
from conformance.checks.support.control_sides import expect_read, expect_written
from conformance.checks.support.datatypes import KIB
from conformance.roles.corner_values import BYTE_STRINGS, TEXTS
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import TEXTS as TAKES_TEXTS
from conformance.spec.fit import Fit
from conformance.transport.target import Target
from conformance.wire.tensor import Tensor

# --- BYTES ------------------------------------------------------------------------------------------------------------

TEXT_ROWS = [Row(group, (elements,), role="identity_bytes") for group, elements in TEXTS.items()]


OCTET_ROWS = [Row(group, (elements,)) for group, elements in BYTE_STRINGS.items()]


MANY_STRINGS = (
    Row("1000-of-1000", ([b"s" * 1000] * 1000,), thorough=True),
    Row("65536-empty", ([b""] * 65_536,), thorough=True),
    Row("one-of-1MiB", ([b"s" * KIB * KIB],), thorough=True),
)
# Groups for deployed models, which may take a single element, the last of a group: others are much like these.
OWN_GROUPS = ("empty", "nul", "two-to-four-byte-letters", "255-256-long")
_BYTES = frozenset({"BYTES"})


def _own_rows(fit: Fit, fit_of_groups: Fit) -> list[Row]:
    return [Row("own", ((), True), fit=fit)] + [
        Row(f"own-{group}", (TEXTS[group], True), fit=fit_of_groups) for group in OWN_GROUPS
    ]


def _own_inputs(model: Model, elements: Sequence[bytes]) -> list[Tensor]:
    """Return inputs of a deployed model with these strings, or with its own where there are none."""
    tensors = model.salted(len(elements) or 1, model.salt)
    return fill_texts(tensors, elements[::-1]) if elements else tensors


@check("datatypes.strings-are-read", answers="BIN-BYTES-I")
@rows(*TEXT_ROWS, *_own_rows(TAKES_TEXTS, TAKES_TEXTS))
def strings_are_read(target: Target, model: Model, elements: Sequence[bytes], own: bool = False) -> None:
    """A binary BYTES element is its length in four bytes and then exactly its bytes, as JSON shows."""
    if own:
        tensors = _own_inputs(model, elements)
        expect_read(target, model, tensors, misread=fill_texts(tensors, [b"other"]), of=_BYTES)
    else:
        expect_survival(target, model, [model.tensor(elements)], "read")


@check("datatypes.string-lengths-are-read", answers="BIN-BYTES-I", role="string_length")
@rows(*[replace(row, role=None) for row in TEXT_ROWS], *OCTET_ROWS, *MANY_STRINGS)
def string_lengths_are_read(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """A binary BYTES element has as many bytes as its prefix says, whatever they are."""
    expect_side(target, model, [model.tensor(elements)], "read")


@check("datatypes.strings-are-written", answers="BIN-BYTES-O")
@rows(*TEXT_ROWS, *_own_rows(Fit(outputs=_BYTES), Fit(some_input=_BYTES, outputs=_BYTES)))
def strings_are_written(target: Target, model: Model, elements: Sequence[bytes], own: bool = False) -> None:
    """A BYTES element of a binary output is its length in four bytes and then exactly its bytes."""
    if own:
        expect_written(target, model, _own_inputs(model, elements), of=_BYTES)
    else:
        expect_survival(target, model, [model.tensor(elements)], "written")


@check("datatypes.any-octets-survive", answers=("BIN-BYTES-I", "BIN-BYTES-O"), role="identity_bytes")
@rows(*OCTET_ROWS, *MANY_STRINGS)
def any_octets_survive(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """BYTES elements that no JSON carries come back from binary data as binary data."""
    expect_return(target, model, [model.tensor(elements)], "BIN-BYTES-O")
