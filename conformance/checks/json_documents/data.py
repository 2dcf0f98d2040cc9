"""The member `data` of JSON tensors: flat or nested arrays, and the values of their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformance.checks.json_documents.coerced_elements import (
    AS_INTEGERS,
    ESCAPED,
    ESCAPED_CAPITALS,
    WITH_A_POINT,
    WITH_EXPONENTS,
    ElementRewriting,
)
from conformance.checks.support.changed_tensors import reorder_by_columns
from conformance.checks.support.controls import expect_or_attribute_to_isolation, is_carried_as_binary
from conformance.checks.support.datatypes import get_identity_role
from conformance.checks.support.inputs import choose_revealing_inputs, make_distinct_tensor
from conformance.checks.support.refusals import Refusal, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, make_refusals, send_json
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal, is_refused
from conformance.expect.unmet import NotApplicableError, UnmetError, block_if
from conformance.roles.model import Model
from conformance.spec.check import Only, Row, check, rows
from conformance.spec.extensions import BINARY, HTTP
from conformance.spec.fit import JSON, Fit
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import INTEGERS, MAX_EXACT_INTEGER, lookup
from conformance.wire.edits import update
from conformance.wire.finding import format_value
from conformance.wire.request import Form, Message
from conformance.wire.tensor import Tensor

# --- data --------------------------------------------------------------------------------------------------------------

_SHAPED_ROLES = ("rank2", "rank3", "rank4", "rank2_bytes", "batching", "fixed")


_UNCARRIED = "the same elements as binary data are also wrong"


@check("json.data-is-flat-or-nested", requirements="OIP-DATA")
@rows(
    *[
        Row(f"{role}-{form}", (form, None), role=role)
        for role in ("weighted_sum", *_SHAPED_ROLES)
        for form in ("flat", "nested")
    ],
    *[
        Row(f"{role}-{form}-seen-as-binary", (form, "binary"), role=role, needs=BINARY)
        for role in _SHAPED_ROLES
        for form in ("flat", "nested")
    ],
    Row("nested", ("nested", None), fit=Fit(min_rank=2, is_json=True)),
    Row("nested-9-items", ("nested", None, 9), fit=Fit(min_rank=2, is_variable=True, is_json=True)),
)
def data_is_flat_or_nested(target: Target, model: Model, form: str, want: Form | None, items: int = 0) -> None:
    """The server reads JSON data in row-major order, flat or nested."""
    tensors = model.build_salted_inputs(items, model.salt) if items else _choose_order_revealing_inputs(model)
    expected = model.expected(tensors)
    reply = target.infer(model.request(tensors, send="json", want=want, nested=form == "nested"))
    with block_if(lambda: want == "binary" and not is_carried_as_binary(target, model, tensors, "written"), _UNCARRIED):
        expect_or_attribute_to_isolation(
            target, reply, lambda found: expect(found).tensors(expected, through_json=True)
        )


def _choose_order_revealing_inputs(model: Model) -> Sequence[Tensor]:
    """Return inputs whose answer shows the order in which the server read their elements."""
    if not model.is_deployed:
        return [make_distinct_tensor(model, model.sample()[0].shape)]
    return choose_revealing_inputs(model, reorder_by_columns)


@check("json.data-is-returned-flat-or-nested", requirements="OIP-DATA")
@rows(
    *[Row(role, role=role, needs=BINARY) for role in ("rank0", "transpose", *_SHAPED_ROLES)],
    Row("deployed", ("json",), fit=JSON),
)
def data_is_returned_flat_or_nested(target: Target, model: Model, send: Form = "binary") -> None:
    """The server writes JSON data in row-major order, flat or nested according to the shape."""
    tensors = model.sample() if model.is_deployed else [make_distinct_tensor(model, model.sample()[0].shape)]
    reply = target.infer(model.request(tensors, send=send))
    with block_if(lambda: send == "binary" and not is_carried_as_binary(target, model, tensors, "read"), _UNCARRIED):
        expect(reply).tensors(model.find_outputs(tensors))
    for output in reply.answer.outputs:
        data = (reply.answer.document or {})["outputs"][output.index].get("data")
        flat = isinstance(data, list) and not any(isinstance(item, list) for item in data)
        if not (output.binary or flat or (isinstance(data, list) and _is_nested(data, output.shape or ()))):
            nested = f"data of {output.name}, flat or nested according to its shape {list(output.shape or ())}"
            raise UnmetError(nested, _describe_nesting(data), reply)


def _describe_nesting(data: Any) -> str:
    """Describe nested arrays by the length of the first array at each level, outermost first."""
    if not isinstance(data, list):
        return f"no array: {format_value(data)}"
    lengths = []
    while isinstance(data, list):
        lengths.append(len(data))
        data = data[0] if data else None
    return f"arrays nested in another way, with the lengths {', '.join(map(str, lengths))}"


def _is_nested(data: Any, shape: Sequence[int]) -> bool:
    """Say whether arrays are nested according to the shape."""
    if not shape:
        return not isinstance(data, list)
    return isinstance(data, list) and len(data) == shape[0] and all(_is_nested(item, shape[1:]) for item in data)


# --- values of elements -----------------------------------------------------------------------------------------------
# Requests are assembled as text to control the spelling of elements: `1e-20`, `\u0049`, `300`. Answers are JSON as
# well; floats are compared within tolerance, as everywhere.

Texts = Mapping[str, Any]  # the text of an element -> its value


def _spell_limits(datatype: str) -> Texts:
    """Return JSON texts and their values: the limits of an integer datatype and the integers next to these limits."""
    found = np.iinfo(lookup(datatype).dtype)
    low, high = max(int(found.min), -MAX_EXACT_INTEGER), min(int(found.max), MAX_EXACT_INTEGER)
    return {str(value): value for value in (low, low + 1, 0, 1, high // 2, high - 1, high)}


FLOATS: Mapping[str, Texts] = {
    "small": {"1e-20": 1e-20, "-1E-20": -1e-20, "0.00000000000000000001": 1e-20, "1.5e-7": 1.5e-7, "2e-06": 2e-6},
    "large": {"1e2": 100.0, "1E+20": 1e20, "-2.5e+3": -2500.0, "3e038": 3e38},
    "plain": {"0.1": 0.1, "-0.0": 0.0, "100.0": 100.0, "0e0": 0.0, "0.5": 0.5, "-12.25": -12.25},
    "integers": {"1": 1.0, "-7": -7.0, "0": 0.0, "16777216": 16777216.0, "-0": 0.0},
    "many-digits": {
        "0.30000000000000004": 0.30000000000000004,
        "123456.78901234567890123": 123456.7890123456789,
        "1.00000000000000000000000000000000000001": 1.0,
        "-9.87654321098765432e-05": -9.87654321098765432e-05,
    },
}
DOUBLES: Texts = {"1e-300": 1e-300, "-1e300": -1e300, "2.2250738585072014E-308": 2.2250738585072014e-308}
STRINGS: Mapping[str, Mapping[str, str]] = {
    "nul": {r'"a\u0000b"': "a\0b", r'"\u0000"': "\0", r'"\u0000c"': "\0c", r'"d\u0000"': "d\0", '"e"': "e"},
    "letters-escaped": {r'"\u0049NPUT"': "INPUT", r'"x\u0079z"': "xyz", r'"\u0041\u0042"': "AB"},
    "short-escapes": {r'"\"\\\/\b\f\n\r\t"': '"\\/\b\f\n\r\t', r'"\\u0041"': "\\u0041", r'"\\"': "\\", '"/"': "/"},
    "hexadecimal-in-either-case": {r'"\u00e9\u00E9"': "éé", r'"\uABcd"': "\uabcd", r'"\u001f\u001F"': "\x1f\x1f"},
    "two-and-three-bytes": {r'"\u00fc\u732b"': "ü猫", '"ü猫"': "ü猫", r'"\u07ff\u0800\uffe6"': "\u07ff\u0800\uffe6"},
    "beyond-16-bits": {
        r'"\ud83d\ude00"': "😀",
        '"😀"': "😀",
        r'"a\uD83D\uDE00b"': "a😀b",
        r'"\udbff\udffd"': "\U0010fffd",
    },
    "element-of-64-KiB": {f'"{"k" * 65_537}"': "k" * 65_537},  # its length takes more than two bytes
    "empty-and-blank": {'""': "", '" "': " ", '"  a "': "  a ", r'"\u0020"': " ", r'"\t"': "\t"},
}
# Groups that a parser may refuse, because they have more digits than a double (RFC 8259, 6).
LIMITABLE_GROUPS = ("many-digits",)
# name -> the number of elements, and the indices of the elements that are true; None for all elements
TRUTHS: Mapping[str, tuple[int, Sequence[int] | None]] = {
    "all-of-8": (8, None),
    "all-of-9": (9, None),
    "all-of-65": (65, None),
    "eighth-and-ninth-of-9": (9, (7, 8)),
    "ends-of-17": (17, (0, 15, 16)),
    "last-of-257": (257, (63, 64, 255, 256)),
}


def _spell_bools(count: int, true: Sequence[int] | None) -> list[tuple[str, bool]]:
    """Return `count` JSON texts and their boolean values: true at the indices in `true`; None means all."""
    places = range(count) if true is None else true
    return [("true", True) if place in places else ("false", False) for place in range(count)]


def make_spelled_request(model: Model, elements: Sequence[str], want: Form | None = None) -> Message:
    """Return a JSON request whose data consist of these JSON texts."""
    filler = "" if model.role.inputs[0].datatype == "BYTES" else 0
    request = model.request([model.tensor([filler] * len(elements))], send="json", want=want)
    message = request.encode_with(lambda document: document["inputs"][0].update(data="@"))
    return message.with_json(message.body.replace(b'"@"', f"[{','.join(elements)}]".encode()))


@dataclass(frozen=True, slots=True)
class SpelledElements:
    """The elements of the input of a role, each with its JSON text."""

    elements: Sequence[tuple[str, Any]]

    def build_message(self, model: Model) -> tuple[Message, Sequence[Tensor]]:
        """Return a JSON request with these texts as elements, and the inputs that the texts stand for."""
        message = make_spelled_request(model, [text for text, _ in self.elements])
        return message, [model.tensor([value for _, value in self.elements])]


def _make_text_rows(datatype: str, groups: Mapping[str, Texts]) -> list[Row]:
    """Return a row for each group of JSON texts, for the identity model of a datatype."""
    return [
        Row(
            f"{datatype}-{name}",
            (SpelledElements(list(group.items())), name in LIMITABLE_GROUPS),
            role=get_identity_role(datatype),
        )
        for name, group in groups.items()
    ]


def _build_own_row(name: str, spelling: ElementRewriting) -> Row:
    """Return a row that sends elements in this spelling to deployed models."""
    return Row(name, (spelling, False), fit=Fit(some_input=spelling.datatypes, is_json=True))


VALUES: tuple[Row, ...] = (
    *_make_text_rows("FP64", {**FLOATS, "doubles": DOUBLES}),
    *_make_text_rows("FP32", FLOATS),
    *[row for datatype in INTEGERS for row in _make_text_rows(datatype, {"limits": _spell_limits(datatype)})],
    *_make_text_rows("BYTES", STRINGS),
    *[
        Row(f"BOOL-{name}", (SpelledElements(_spell_bools(*truth)), False), role="identity_bool")
        for name, truth in TRUTHS.items()
    ],
    _build_own_row("with-exponents", WITH_EXPONENTS),
    _build_own_row("whole-numbers", AS_INTEGERS),
    _build_own_row("escaped", ESCAPED),
    _build_own_row("escaped-capitals", ESCAPED_CAPITALS),
)


@check("json.elements-are-what-they-spell", requirements="OIP-VALUE")
@rows(*VALUES)
def elements_are_what_they_spell(
    target: Target, model: Model, spelling: SpelledElements | ElementRewriting, may_be_limited: bool
) -> None:
    """The server returns each element of JSON data with the value that its text represents.

    Raises NotApplicableError: the target refuses more digits than a double holds, which no document forbids.
    """
    message, tensors = spelling.build_message(model)
    reply = target.infer(message)
    if may_be_limited and is_refused(target, model, reply):
        raise NotApplicableError(f"the target refuses numbers of so many digits: {escape_text(reply.outcome())}")
    expected = model.expected(tensors)
    expect_or_attribute_to_isolation(target, reply, lambda found: expect(found).tensors(expected, through_json=True))


@check("json.strings-have-the-length-that-they-spell", requirements="OIP-VALUE", role="string_length")
@rows(*[Row(name, (list(group.items()),)) for name, group in STRINGS.items()])
def strings_have_the_length_that_they_spell(target: Target, model: Model, elements: Sequence[tuple[str, str]]) -> None:
    """The server reads every character of a JSON string, as UTF-8."""
    reply = target.infer(make_spelled_request(model, [text for text, _ in elements]))
    _expect_values(reply, model, [value for _, value in elements])


def _expect_values(reply: Reply, model: Model, values: Sequence[Any], requirement: str | None = None) -> None:
    """Expect the outputs that the model computes for an input with these values."""
    expect(reply, requirement).tensors(model.expected([model.tensor(values)]), through_json=True)


# --- other spellings of integers, and numbers out of range ------------------------------------------------------------

INTEGER_SPELLINGS: Mapping[str, Texts] = {
    "with-a-point": {"100.0": 100, "-7.00": -7, "0.0": 0},
    "with-an-exponent": {"1e2": 100, "-2E1": -20, "3e+0": 3},
    "with-both": {"1.2e1": 12, "120e-1": 12, "-0.5E1": -5},
}


@check("json.integers-written-otherwise", requirements=("OIP-INT-SPELLING", "OIP-VALUE"))
@rows(
    *[
        Row(f"{datatype}-{name}", (list(group.items()),), role=get_identity_role(datatype))
        for datatype in ("INT32", "INT64")
        for name, group in INTEGER_SPELLINGS.items()
    ],
    Row("deployed-with-a-point", (WITH_A_POINT,), fit=Fit(some_input=WITH_A_POINT.datatypes, is_json=True)),
)
def integers_written_otherwise(
    target: Target, model: Model, elements: Sequence[tuple[str, int]] | ElementRewriting
) -> str:
    """The server reads an integer with a point or an exponent by its value, or refuses it."""
    spelling = elements if isinstance(elements, ElementRewriting) else SpelledElements(elements)
    message, tensors = spelling.build_message(model)
    reply = target.send(message, fresh=True)
    if not reply.succeeded:
        expect(reply, "OIP-VALUE").refused()
        return "refused"
    expect(reply, "OIP-VALUE").tensors(model.expected(tensors), through_json=True)
    return "taken for their values"


# Integer data with one element outside the range of the datatype, at different indices.
OUT_OF_RANGE: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("UINT8", (300,)),
    ("UINT8", (1, 2, 256)),
    ("UINT8", (-1, 2)),
    ("INT8", (1, 128)),
    ("INT8", (-129, 2)),
    ("UINT16", (65536,)),
    ("INT16", (1, 32768, 3)),
    ("UINT32", (1, 4294967296)),
    ("INT32", (2147483648, 2)),
    ("INT32", (1, -2147483649)),
    ("INT64", (9223372036854775808,)),
    ("UINT64", (1, 18446744073709551616)),
    ("UINT64", (-1,)),
)


def _name_fault(datatype: str, elements: Sequence[int]) -> str:
    """Return the name of a fault that consists of data with these elements."""
    return f"{datatype}-data-of-{'-'.join(str(element).replace('-', 'minus-') for element in elements)}"


REFUSALS: tuple[Refusal, ...] = make_refusals(
    "OIP-RANGE",
    send_json,
    [
        Fault(
            _name_fault(datatype, elements),
            get_identity_role(datatype),
            update("inputs.0", shape=[len(elements)], data=list(elements)),
        )
        for datatype, elements in OUT_OF_RANGE
    ],
)


@check(
    "json.integer-beyond-its-datatype-is-refused",
    requirements="OIP-RANGE",
    only=Only(HTTP, "`grpc.contents-that-make-no-tensor-are-refused` has such integers"),
)
@rows(*make_refusal_rows(REFUSALS))
def integer_beyond_its_datatype_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses an integer in JSON data that its datatype cannot hold."""
    expect_refusal(target, model, refusal.message(model), refusal.described)
