"""BOOL, with one byte for each element, and BYTES, with a four-byte length before each element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.checks.support.changed_tensors import fill_strings, invert_booleans, shift_elements
from conformance.checks.support.controls import expect_both_sides, expect_read, expect_right, expect_written
from conformance.checks.support.datatypes import KIB, get_identity_role
from conformance.checks.support.inputs import find_alterable_inputs
from conformance.checks.support.wrong_requests import WrongRequest
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.roles.corner_values import BYTE_STRINGS, TEXTS
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import HTTP
from conformance.spec.fit import TEXTS as TAKES_TEXTS
from conformance.spec.fit import Fit
from conformance.transport.target import Target
from conformance.wire.message_edits import Data
from conformance.wire.tensor import Tensor

# --- BOOL -------------------------------------------------------------------------------------------------------------

BOOLS: tuple[tuple[str, list[bool]], ...] = (
    ("true", [True]),
    ("false", [False]),
    ("mixed", [True, False, False, True, True, False, True, False, False]),
    ("eighth-and-ninth-of-9", [False] * 7 + [True] * 2),
    ("ninth-alone", [False] * 8 + [True]),
    ("all-of-17", [True] * 17),
    ("all-but-the-last-of-65", [True] * 64 + [False]),
    ("last-of-257", [False] * 256 + [True]),
)
ROLE_ROWS = [Row(name, (values,), role=get_identity_role("BOOL")) for name, values in BOOLS]
BOOL_ONLY = frozenset({"BOOL"})
DEPLOYED_COUNT = 17  # elements or items of a deployed model: more than the bits of two bytes


def _make_bools(model: Model, values: Sequence[bool] | None) -> Sequence[Tensor]:
    """Return these values, or inputs of a deployed model with both BOOL values if a few drawn inputs have them."""
    if values is not None:
        return [model.tensor(values)]
    return find_alterable_inputs(
        model, lambda tensors: shift_elements([t for t in tensors if t.datatype == "BOOL"]), DEPLOYED_COUNT
    )


@check("datatypes.bool-bytes-are-read", requirements=("BIN-BOOL-I", "BIN-DATATYPES-I"))
@rows(*ROLE_ROWS, Row("deployed", (None,), fit=Fit(some_input=BOOL_ONLY)))
def bool_bytes_are_read(target: Target, model: Model, values: list[bool] | None) -> None:
    """The server reads the byte 1 as true and the byte 0 as false, one byte for each element."""
    tensors = _make_bools(model, values)
    expect_read(target, model, tensors, invert_booleans(tensors), datatypes=BOOL_ONLY)


@check("datatypes.bool-bytes-are-written", requirements=("BIN-BOOL-O", "BIN-DATATYPES-O"))
@rows(*ROLE_ROWS, Row("deployed", (None,), fit=Fit(outputs=BOOL_ONLY)))
def bool_bytes_are_written(target: Target, model: Model, values: list[bool] | None) -> None:
    """The server writes true as the byte 1 and false as the byte 0, one byte for each element."""
    expect_written(target, model, _make_bools(model, values), datatypes=BOOL_ONLY, free_of=("bool-byte",))


@check(
    "datatypes.other-bool-bytes-are-not-returned",
    requirements="BIN-BOOL-OTHER",
    only=Only(HTTP, "no sentence gives the bytes of BOOL in raw contents"),
)
@rows(Row("alone", role="identity_bool"), Row("beside-others", role="multi"))
def other_bool_bytes_are_not_returned(target: Target, model: Model) -> str:
    """The server refuses the byte 2 in a BOOL input, or returns 0 or 1."""
    edit = Data(lambda data: b"\2" * len(data), "@BOOL")
    message = WrongRequest(lambda model: model.request(want="binary"), (edit,))(model)
    reply = target.send(message, fresh=True)
    if is_refused(target, model, reply, advises_status=True):
        return f"refused with {reply.status}"
    expect(reply).answered().free_of("bool-byte")
    return "read as 0 or 1"


# --- BYTES ------------------------------------------------------------------------------------------------------------

TEXT_ROWS = [Row(group, (elements,), role="identity_bytes") for group, elements in TEXTS.items()]


OCTET_ROWS = [Row(group, (elements,)) for group, elements in BYTE_STRINGS.items()]


MANY_STRING_ROWS = (
    Row("1000-of-1000", ([b"s" * 1000] * 1000,)),
    Row("65536-empty", ([b""] * 65_536,)),
    Row("one-of-1MiB", ([b"s" * KIB * KIB],)),
)
# Groups for deployed models. A model that accepts a single element gets the last element; the other groups are similar.
DEPLOYED_GROUPS = ("empty", "nul", "two-to-four-byte-letters", "255-256-long")
_BYTES = frozenset({"BYTES"})


def _list_deployed_rows(fit: Fit, fit_of_groups: Fit) -> list[Row]:
    """Return rows for deployed models: one with sample inputs, and one for each group of strings.

    `fit` and `fit_of_groups` choose the models of these rows.
    """
    return [Row("deployed", ((), True), fit=fit)] + [
        Row(f"deployed-{group}", (TEXTS[group], True), fit=fit_of_groups) for group in DEPLOYED_GROUPS
    ]


def _make_strings(model: Model, elements: Sequence[bytes], *, own: bool) -> list[Tensor]:
    """Return these elements; for a deployed model, inputs filled with them, or its sample inputs if there are none."""
    if not own:
        return [model.tensor(elements)]
    tensors = model.build_salted_inputs(len(elements) or 1, model.salt)
    return fill_strings(tensors, elements[::-1]) if elements else tensors


@check("datatypes.strings-are-read", requirements="BIN-BYTES-I")
@rows(*TEXT_ROWS, *_list_deployed_rows(TAKES_TEXTS, TAKES_TEXTS))
def strings_are_read(target: Target, model: Model, elements: Sequence[bytes], own: bool = False) -> None:
    """The server reads a BYTES element as a length of four bytes and exactly that many bytes."""
    tensors = _make_strings(model, elements, own=own)
    expect_read(target, model, tensors, fill_strings(tensors, [b"other"]), datatypes=_BYTES)


@check("datatypes.string-lengths-are-read", requirements="BIN-BYTES-I", role="string_length")
@rows(*[replace(row, role=None) for row in TEXT_ROWS], *OCTET_ROWS, *MANY_STRING_ROWS)
def string_lengths_are_read(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """The server reads as many bytes of a BYTES element as its length prefix says, whatever the bytes are."""
    expect_right(target, model, [model.tensor(elements)])


@check("datatypes.strings-are-written", requirements="BIN-BYTES-O")
@rows(*TEXT_ROWS, *_list_deployed_rows(Fit(outputs=_BYTES), Fit(some_input=_BYTES, outputs=_BYTES)))
def strings_are_written(target: Target, model: Model, elements: Sequence[bytes], own: bool = False) -> None:
    """The server writes a BYTES element as a length of four bytes and exactly that many bytes."""
    expect_written(target, model, _make_strings(model, elements, own=own), datatypes=_BYTES)


@check("datatypes.any-octets-survive", requirements=("BIN-BYTES-I", "BIN-BYTES-O"), role="identity_bytes")
@rows(*OCTET_ROWS, *MANY_STRING_ROWS)
def any_octets_survive(target: Target, model: Model, elements: Sequence[bytes]) -> None:
    """The server returns BYTES elements unchanged, including those that JSON cannot represent."""
    expect_both_sides(target, model, [model.tensor(elements)], "BIN-BYTES-O")
