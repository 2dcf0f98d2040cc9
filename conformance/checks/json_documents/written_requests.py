"""Equivalent requests in other JSON spellings, and values that JSON must escape or cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from conformance.checks.json_documents.answers import expect_json
from conformance.checks.support.changed_tensors import WIDE_FLOATS, fill_floats_with_non_finite_numbers
from conformance.checks.support.classes import read_texts
from conformance.checks.support.controls import expect_or_attribute_to_isolation, is_side_right
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES
from conformance.spec.fit import ANY, JSON, Fit
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.json_data import flatten
from conformance.wire.json_writing import JsonStyle, write_escaped, write_first_escaped, write_plain
from conformance.wire.request import Form, InferRequest, Message, RequestedOutput
from conformance.wire.tensor import Tensor

# --- requests that use every object and member ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestKind:
    """A kind of request whose JSON the checks write in other spellings.

    Attributes:
        role: the role of the model that receives the request; None for deployed models.
        expect: raises `UnmetError` if the answer is wrong.
    """

    role: str | None
    needs: tuple[str, ...]
    request: Callable[[Model], InferRequest]
    expect: Callable[[Reply, Model], object]
    fit: Fit | None = None

    def build_row(self, name: str, *values: Any) -> Row:
        """Return a row that passes this kind and further values to a check."""
        return Row(name, (self, *values), role=self.role, needs=self.needs, fit=self.fit)


def _sample_ascii_inputs(model: Model) -> list[Tensor]:
    """Return sample inputs whose strings are ASCII and differ from the names of JSON members."""
    ascii_texts = [f"{model.salt}x", "", 'quote " and \\']
    return [Tensor.from_values(t.name, "BYTES", ascii_texts) if t.datatype == "BYTES" else t for t in model.sample()]


def _expect_listed_outputs(reply: Reply, model: Model) -> None:
    """Expect the correct outputs of the role `multi`, and the id of the request."""
    expect(reply).tensors(
        tensor for tensor in model.expected(_sample_ascii_inputs(model)) if tensor.name != "OUT_INT64"
    )
    if (reply.answer.document or {}).get("id") != "in-order":
        raise UnmetError('id "in-order"', "another, or none", reply)


def _list_some_outputs(model: Model) -> list[str]:
    """Return the names of all outputs of a deployed model except the first; a single output is kept."""
    names = [spec.name for spec in model.role.outputs]
    return names[1:] or names


def _request_some_outputs(**options: Any) -> Callable[[Model], InferRequest]:
    """Return a builder of a request to a deployed model that lists some of its outputs."""
    return lambda model: model.request(outputs=_list_some_outputs(model), request_id="in-order", **options)


def _expect_some_outputs(reply: Reply, model: Model) -> None:
    """Expect the correct outputs of a deployed model, and no id other than that of the request."""
    expect(reply).tensors(
        tensor for tensor in model.expected(model.sample()) if tensor.name in _list_some_outputs(model)
    )
    if (reply.answer.document or {}).get("id") not in ("in-order", None):  # OIP-ID judges a missing id
        raise UnmetError('id "in-order"', "another", reply)


OWN = RequestKind(None, (), _request_some_outputs(send="json"), _expect_some_outputs, JSON)
DEPLOYED_BINARY = RequestKind(
    None, BINARY, _request_some_outputs(want="binary", binary_data_output=True), _expect_some_outputs, ANY
)
LISTED_OUTPUTS = ("OUT_BYTES", "OUT_FP32", "OUT_BOOL")
FORMS: Mapping[str, RequestKind] = {
    "json": RequestKind(
        "multi",
        (),
        lambda model: model.request(
            _sample_ascii_inputs(model), send="json", outputs=LISTED_OUTPUTS, request_id="in-order"
        ),
        _expect_listed_outputs,
    ),
    "binary": RequestKind(
        "multi",
        BINARY,
        lambda model: model.request(
            _sample_ascii_inputs(model),
            want="binary",
            outputs=LISTED_OUTPUTS,
            binary_data_output=True,
            request_id="in-order",
        ),
        _expect_listed_outputs,
    ),
    "mixed": RequestKind(
        "multi",
        BINARY,
        lambda model: model.request(
            _sample_ascii_inputs(model),
            send={"IN_BOOL", "IN_BYTES"},
            outputs=[
                RequestedOutput("OUT_BYTES", False),
                RequestedOutput("OUT_FP32", True),
                RequestedOutput("OUT_BOOL", False),
            ],
            binary_data_output=False,
            request_id="in-order",
        ),
        _expect_listed_outputs,
    ),
    "classes": RequestKind(
        "scores",
        CLASSES,
        lambda model: model.request(
            send="json", outputs=[RequestedOutput("SCORES", classification=2)], request_id="in-order"
        ),
        lambda reply, _: read_texts(reply, "SCORES"),
    ),
}

# --- other spellings of the same request ------------------------------------------------------------------------------

IDS: frozenset[str] = frozenset({"id"})  # other checks judge escapes in ids


def _put_members_first(*first: str) -> JsonStyle:
    """Return a JSON style that writes these members first in each object."""
    return JsonStyle(
        sort=lambda names: [*(name for name in first if name in names), *(name for name in names if name not in first)]
    )


def _surround_tokens(gap: str) -> JsonStyle:
    """Return a JSON style with `gap` on either side of every token."""
    return JsonStyle(f"{gap},{gap}", f"{gap}:{gap}", gap, name=lambda name: gap + write_plain(name))


def _write_first_escaped_in_capitals(text: str) -> str:
    """Return a JSON string whose first character is an escape with upper-case digits."""
    written = write_first_escaped(text)
    return f"{written[:3]}{written[3:7].upper()}{written[7:]}" if text else written


STYLES: Mapping[str, JsonStyle] = {
    "members-backwards": JsonStyle(sort=reversed),
    "data-first": _put_members_first("data", "parameters", "outputs", "datatype", "shape"),
    "shape-last": _put_members_first("name", "datatype", "data", "parameters", "inputs"),
    "datatype-last": _put_members_first("name", "data", "parameters", "shape", "id", "outputs", "inputs"),
    "names-of-members-escaped": JsonStyle(name=write_escaped),
    "first-letters-of-members-escaped": JsonStyle(name=_write_first_escaped_in_capitals),
    "strings-escaped": JsonStyle(text=write_escaped, plain_members=IDS),
    "first-letters-of-strings-escaped": JsonStyle(text=_write_first_escaped_in_capitals, plain_members=IDS),
    "blanks-around-every-token": _surround_tokens(" "),
    "lines-and-tabs-around-every-token": _surround_tokens("\r\n\t"),
}
# Rows that also run on deployed models.
OWN_STYLES = ("members-backwards", "names-of-members-escaped", "strings-escaped", "lines-and-tabs-around-every-token")


USUAL_TRIALS = 4


@check("json.request-written-otherwise-is-the-same", requirements="OIP-WRITTEN")
@rows(
    *[
        request_kind.build_row(f"{name}-{form}", style)
        for name, style in STYLES.items()
        for form, request_kind in FORMS.items()
    ],
    *[OWN.build_row(name, STYLES[name]) for name in OWN_STYLES],
    DEPLOYED_BINARY.build_row("members-backwards-of-binary-data", STYLES["members-backwards"]),
)
def request_written_otherwise_is_the_same(
    target: Target, model: Model, request_kind: RequestKind, style: JsonStyle
) -> None:
    """The server reads a request in any member order, with escapes and with white space."""
    request = request_kind.request(model)
    _expect_same_answer_as_usual(
        target, model, request_kind, request.message().with_json(style.write(request.build_sent_document()))
    )


def _expect_same_answer_as_usual(target: Target, model: Model, request_kind: RequestKind, message: Message) -> None:
    """Expect the correct answer to a message; block if the usual spelling gets a wrong answer as well."""

    def expect_correct_outputs(found: Reply) -> None:
        """Expect the correct answer for this kind of request."""
        with attribute_to(None):
            request_kind.expect(found, model)

    def is_usual_spelling_wrong() -> bool:
        """Say whether any of several answers to the usual spelling is wrong: a server may choose an order at random."""
        usual = request_kind.request(model).message()
        replies = (target.send(usual, fresh=True) for _ in range(USUAL_TRIALS))
        return any(not is_met(partial(request_kind.expect, reply, model)) for reply in replies)

    reply = target.send(message)
    with block_if(is_usual_spelling_wrong, "the answer to the same request in the usual spelling is also wrong"):
        expect_or_attribute_to_isolation(target, reply, expect_correct_outputs)
    request = request_kind.request(model)
    listed = sorted(output.name for output in request.outputs or ())
    if (found := _summarize_answer(reply)) != (request.id, listed):
        usual = _summarize_answer(target.send(request.message(), fresh=True))
        if found != usual:
            raise UnmetError(_describe_summary(*usual), _describe_summary(*found), reply)


def _summarize_answer(reply: Reply) -> tuple[object, list[str]]:
    """Return the id and the sorted output names of an answer."""
    return (reply.answer.document or {}).get("id"), sorted(reply.answer.names())


def _describe_summary(identity: object, outputs: list[str]) -> str:
    """Describe the id and the outputs of an answer."""
    return f"{'no id' if identity is None else f'id {format_value(identity)}'} and outputs {', '.join(outputs)}"


# --- unknown members --------------------------------------------------------------------------------------------------

UNDEFINED_MEMBERS: Mapping[str, Any] = {
    "model_name": "of the documents' examples",
    "x-number": 1.5,
    "x-integer": -7,
    "x-true": True,
    "x-false": False,
    "x-null": None,
    "x-empty": "",
}
NESTED_MEMBERS: Mapping[str, Any] = {
    "x-object": {"inputs": [], "data": [[1], {}], "shape": [0]},
    "x-array": [{"name": "x"}, []],
    "x-empty-object": {},
    "x-empty-array": [],
}
# Members that the protocol defines for other objects, but not for the objects to which they are added here.
MISPLACED_MEMBERS: Mapping[str, Mapping[str, Any]] = {
    "request": {"name": "OUT_BOOL", "shape": [1], "datatype": "FP64", "data": [7.5]},
    "inputs": {"id": "of an input", "inputs": [], "outputs": [{"name": "NO_SUCH_OUTPUT"}]},
    "outputs": {"id": "of an output", "shape": [1], "datatype": "FP64", "data": [7.5]},
}
OBJECT_FINDERS: Mapping[str, Callable[[dict[str, Any]], list[dict[str, Any]]]] = {
    "request": lambda document: [document],
    "inputs": lambda document: document["inputs"],
    "outputs": lambda document: document["outputs"],
}


@check("json.undefined-members-change-nothing", requirements="OIP-MEMBERS")
@rows(
    *[
        request_kind.build_row(f"{object_kind}-{kind}-{form}", object_kind, members, first)
        for object_kind in OBJECT_FINDERS
        for kind, members, first in (
            ("values-last", UNDEFINED_MEMBERS, False),
            ("objects-first", NESTED_MEMBERS, True),
            ("of-other-objects", MISPLACED_MEMBERS[object_kind], True),
        )
        for form, request_kind in FORMS.items()
        if form != "mixed"
    ],
    OWN.build_row("request-values-last", "request", UNDEFINED_MEMBERS, False),
    OWN.build_row("request-objects-first", "request", NESTED_MEMBERS, True),
    OWN.build_row("outputs-values-last", "outputs", UNDEFINED_MEMBERS, False),
    OWN.build_row("outputs-objects-first", "outputs", NESTED_MEMBERS, True),
    OWN.build_row("inputs-objects-first", "inputs", NESTED_MEMBERS, True),
    OWN.build_row("inputs-of-other-objects", "inputs", MISPLACED_MEMBERS["inputs"], True),
)
def undefined_members_change_nothing(
    target: Target, model: Model, request_kind: RequestKind, object_kind: str, members: Mapping[str, Any], first: bool
) -> None:
    """The server ignores members that the documents do not define, wherever they are."""

    def add_members(document: dict[str, Any]) -> None:
        for owner in OBJECT_FINDERS[object_kind](document):
            own = dict(owner)
            owner.clear()
            owner.update({**members, **own} if first else {**own, **members})

    _expect_same_answer_as_usual(target, model, request_kind, request_kind.request(model).encode_with(add_members))


# --- the text ----------------------------------------------------------------------------------------------------------

_TEXTS_TO_ESCAPE: dict[str, bytes] = {
    "quotes-and-backslashes": b'"\\"\\\\"',
    "line-ends": b"a\r\nb\tc",
    "control-characters": b"\x01\x1b\x1f\x7f",
    "nul": b"a\x00b",
    "beyond-16-bits": "猫😀\u2028".encode(),
    "accents": "é".encode(),  # a letter that Latin-1 has
}


TEXTS = Fit(some_input=frozenset({"BYTES"}), outputs=frozenset({"BYTES"}), is_json=True)
_INVALID_UTF_8: dict[str, bytes] = {
    "a-byte-that-is-never-utf-8": b"a\xffb",
    "a-sequence-cut-short": b"a\xe2\x82",
    "a-lone-surrogate": b"\xed\xa0\x80",
}


_FOR_ANY_MODEL = ("control-characters", "accents", "a-byte-that-is-never-utf-8")


@check("json.strings-are-escaped", requirements="OIP-JSON", role="identity_bytes")
@rows(
    *[
        Row(name, (text, "json"), fit=TEXTS if name in _FOR_ANY_MODEL else None)
        for name, text in _TEXTS_TO_ESCAPE.items()
    ],
    *[
        Row(name, (text, "binary"), needs=BINARY, fit=TEXTS if name in _FOR_ANY_MODEL else None)
        for name, text in _INVALID_UTF_8.items()
    ],
)
def strings_are_escaped(target: Target, model: Model, text: bytes, send: Form) -> None:
    """The server escapes any bytes in a JSON string as valid JSON, or refuses the request."""
    tensors = (
        [_fill_strings(tensor, text) for tensor in model.sample()] if model.is_deployed else [model.tensor([text])]
    )
    reply = target.infer(model.request(tensors, send=send, want="json" if send == "binary" else None))
    if reply.succeeded:
        expect_json(reply)


# Different elements, some of which are not UTF-8: replacing invalid bytes must not make them equal.
_DIFFERENT_STRINGS: dict[str, Sequence[bytes]] = {
    "single-bytes": (b"\xff", b"\xfe", b"\x80"),
    "the-same-length": (b"a\xffb", b"a\xc3b", b"a\xe9b"),
    "with-and-without": (b"a\xff", b"a", b"\xffa"),
    "the-replacement-character": (b"\xff", "\ufffd".encode(), b"?"),
    "cut-short": (b"\xe2\x82", b"\xe2", b"\xf0\x9f\x98"),
    "lone-surrogates": (b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xed\xa0\x81"),
    "octets-of-a-number": (b"\x00\x00\x80\x3f", b"\x00\x00\x80\x40", b"\x00\x00\x80\xbf", b"\x00\x00\xc0\x3f"),
}


@check("json.strings-that-differ-stay-apart", requirements=("OIP-BYTES-EXACT", "OIP-JSON"), role="identity_bytes")
@rows(*[Row(name, (texts,), needs=BINARY) for name, texts in _DIFFERENT_STRINGS.items()])
def strings_that_differ_stay_apart(target: Target, model: Model, texts: Sequence[bytes]) -> str:
    """The server refuses BYTES that are not UTF-8 in a JSON answer, or writes different elements as different strings."""
    reply = target.infer(model.request([model.tensor(texts)]))
    if is_refused(target, model, reply):
        return f"refused: {escape_text(reply.outcome(), 120)}"
    expect_json(reply)
    output = expect(reply).output(model.role.outputs[0].name)
    if output.binary:
        return "binary data"
    data = (reply.answer.document or {})["outputs"][output.index].get("data")
    found = [item if isinstance(item, str) else format_value(item) for item in data] if isinstance(data, list) else []
    if len(found) == len(texts) == len(set(found)):
        return f"data {format_value(data)}"
    if not is_side_right(target, model, [model.tensor([f"text {place}" for place in range(len(texts))])], "read"):
        raise BlockedError("the server also misreads other strings in binary data")
    raise UnmetError(f"a refusal, or {len(texts)} different strings", f"data {format_value(data)}", reply)


def _fill_strings(tensor: Tensor, text: bytes) -> Tensor:
    """Return a BYTES tensor filled with this string; return any other tensor unchanged."""
    if tensor.datatype != "BYTES":
        return tensor
    return Tensor.from_values(tensor.name, tensor.datatype, [text] * tensor.elements, tensor.shape)


@check("json.nan-and-infinities", requirements=("OIP-JSON-NAN", "OIP-JSON", "BIN-SAME-AS-JSON-O"))
@rows(
    *[Row(role, role=role, needs=BINARY) for role in ("identity_fp32", "identity_fp64")],
    Row("deployed", needs=BINARY, fit=Fit(some_input=WIDE_FLOATS, outputs=WIDE_FLOATS)),
)
def nan_and_infinities(target: Target, model: Model) -> str:
    """The server refuses NaN and infinities in a JSON answer, or writes them as valid JSON."""
    if model.is_deployed:
        return _judge_own_non_finite(target, model)
    reply = target.infer(model.request([model.tensor([float("nan"), float("inf"), float("-inf")])]))
    if not reply.succeeded:
        return f"refused: {escape_text(reply.outcome(), 120)}"
    expect_json(reply)
    if reply.answer.find_by_kind("json-non-finite"):
        raise UnmetError("a refusal, or valid JSON, such as null or strings", "bare words: NaN, Infinity", reply)
    output = expect(reply, "BIN-SAME-AS-JSON-O").output(model.role.outputs[0].name)
    if output.binary:
        return "binary data"
    data = (reply.answer.document or {})["outputs"][output.index].get("data")
    if isinstance(data, list) and all(map(_may_be_non_finite, data)):
        return f"data {format_value(data)}"
    if not is_side_right(target, model, [model.tensor([1.5, -2.25])], "read"):
        raise BlockedError("the server also misreads 1.5 and -2.25 in binary data")
    raise UnmetError(
        "NaN, Infinity and -Infinity", f"data {format_value(data)}", reply, requirement="BIN-SAME-AS-JSON-O"
    )


def _judge_own_non_finite(target: Target, model: Model) -> str:
    """Expect valid JSON for an output that has NaN or an infinity as binary data; return what the server does.

    Raises NotApplicableError: no output of the model consists of NaN and infinities.
    """
    tensors = fill_floats_with_non_finite_numbers(model.sample())
    as_binary = target.infer(model.request(tensors, want="binary"))
    names = [
        output.name
        for output in as_binary.answer.outputs
        if as_binary.succeeded and output.datatype in WIDE_FLOATS and _has_none_finite(output.array)
    ]
    names = [name for name in names if name not in model.binary_outputs]
    if not names:
        raise NotApplicableError(f"{model.name} has no output that consists of NaN and infinities")
    reply = target.infer(model.request(tensors, outputs=[names[0]]))
    if not reply.succeeded:
        return f"refused: {escape_text(reply.outcome(), 120)}"
    expect_json(reply)
    if reply.answer.find_by_kind("json-non-finite"):
        raise UnmetError("a refusal, or valid JSON, such as null or strings", "bare words: NaN, Infinity", reply)
    output = expect(reply, "BIN-SAME-AS-JSON-O").output(names[0])
    data = [] if output.binary else (reply.answer.document or {})["outputs"][output.index].get("data")
    if isinstance(data, list) and not all(map(_may_be_non_finite, flatten(data, ()))):
        expected = "NaN, Infinity and -Infinity, as in the binary data"
        raise UnmetError(expected, f"data {format_value(data)}", reply, requirement="BIN-SAME-AS-JSON-O")
    return "binary data" if output.binary else f"data {format_value(data)}"


def _has_none_finite(array: np.ndarray[Any, Any] | None) -> bool:
    """Say whether an array has elements and all are NaN or infinite."""
    return array is not None and bool(array.size) and not np.isfinite(array).any()


def _may_be_non_finite(value: Any) -> bool:
    """Say whether a JSON value may represent NaN or an infinity: null, a string, or a number beyond all floats."""
    return value is None or isinstance(value, str) or (type(value) is int and abs(value) > 2**1024)
