"""Clients that read rare values, names, spellings and sizes in answers wrong, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.clients import steps
from tests.clients.alterations import Original, fault
from tests.clients.honest import tensors
from tests.clients.honest.answer import LENGTH, Answer
from tests.clients.honest.caller import CallerRequest, MalformedError, Tensor

MAX_ARGUMENTS = 120_000
UNPACKED = 8192
INTEGERS = "UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64"


@fault("answer.from_json", misses="CLIENT-READS-VALUES", datatypes="FP16 BF16")
def half_subnormals_flushed(original: Original, datatype: str, shape: Sequence[int], data: list[Any]) -> bytes:
    """Subnormals of FP16 and BF16 in the JSON of an answer are read as 0."""
    least = 2.0**-14 if datatype == "FP16" else 2.0**-126
    return bytes(original(datatype, shape, [one if abs(one) >= least else 0.0 for one in data]))


one_string_without_its_length = steps.FROM_BINARY.after(
    "CLIENT-READS-VALUES", lambda made, shape, piece: piece[4:] if list(shape) == [1] else made, datatypes="BYTES"
).says("A binary output of BYTES with one element is given to the caller without its length.")


@fault("answer.from_json", misses="CLIENT-READS-NUMBERS", datatypes="FP16 BF16 FP32 FP64")
def minus_zero_without_sign(original: Original, datatype: str, shape: Sequence[int], data: list[Any]) -> bytes:
    """-0.0 in the JSON of an answer is read as 0.0."""
    return bytes(original(datatype, shape, [one if isinstance(one, list) or one else 0.0 for one in data]))


integers_with_exponents_unread = steps.FROM_JSON.fail(
    "CLIENT-READS-NUMBERS",
    MalformedError("an integer with an exponent"),
    when=lambda data: isinstance(data, list) and any(isinstance(one, Decimal) for one in data),
    datatypes=INTEGERS,
).says("An integer with an exponent or a fraction in the JSON of an answer is an error to the caller.")


@fault("answer.from_json", misses="CLIENT-READS-NUMBERS", datatypes="BF16")
def decimals_truncated(original: Original, datatype: str, shape: Sequence[int], data: list[Any]) -> bytes:
    """A decimal in the JSON of an answer is cut off to BF16."""
    as_singles = tensors.packed("FP32", data)
    return b"".join(as_singles[at + 2 : at + 4] for at in range(0, len(as_singles), 4)) or bytes(
        original(datatype, shape, data)
    )


compressed_answers_read_once = steps.DECODED.after(
    "CLIENT-READS-FRAMING", lambda found, coding: found[:UNPACKED] if coding else found
).says("Of a compressed answer only what a single read unpacks is kept.")


@fault("answer.json_length", misses="CLIENT-READS-JSON")
def header_of_four_digits(_original: Original, found: Answer) -> int | None:
    """Of the inference header of an answer four digits are read."""
    value = found.header(LENGTH)
    return None if value is None or not value.isdigit() else int(value[:4])


slash_escape_unknown = steps.PARSED.fail(
    "CLIENT-READS-JSON", MalformedError("an unknown escape"), when=lambda text: b"\\/" in text
).says("The escape `\\/` in the JSON of an answer is an error to the caller.")
large_bool_unread = steps.FROM_BINARY.fail(
    "CLIENT-READS-VALUES",
    MalformedError("too many arguments"),
    when=lambda piece: len(piece) > MAX_ARGUMENTS,
    datatypes="BOOL",
).says("A BOOL output of more elements than a call has arguments is an error to the caller.")


@fault("answer.read_outputs", misses="CLIENT-READS-ORDER")
def outputs_of_digits_first(original: Original, asked: CallerRequest, entries: Any, data: bytes) -> tuple[Tensor, ...]:
    """Binary data of outputs whose names are numbers are taken for the first, in the order of these numbers."""

    def rank(entry: Any) -> tuple[bool, int]:
        name = str(entry.get("name"))
        return (not name.isdigit(), int(name) if name.isdigit() else 0)

    return tuple(original(asked, sorted(entries, key=rank), data))
