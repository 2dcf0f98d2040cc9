"""Strings that have to be escaped, and numbers that JSON does not have."""

from __future__ import annotations

from typing import Any

from conformance.checks.json_documents.answer_members import expect_json
from conformance.checks.support.binary_sides import is_right
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY
from conformance.spec.fit import Fit
from conformance.spec.text import escape_text
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.request import Form
from conformance.wire.tensor import Tensor

# --- the text ----------------------------------------------------------------------------------------------------------

_TEXTS: dict[str, bytes] = {
    "quotes-and-backslashes": b'"\\"\\\\"',
    "line-ends": b"a\r\nb\tc",
    "control-characters": b"\x01\x1b\x1f\x7f",
    "nul": b"a\x00b",
    "beyond-16-bits": "猫😀\u2028".encode(),
}


TEXTS = Fit(some_input=frozenset({"BYTES"}), outputs=frozenset({"BYTES"}), is_json=True)
_NO_TEXTS: dict[str, bytes] = {
    "a-byte-that-is-never-utf-8": b"a\xffb",
    "a-sequence-cut-short": b"a\xe2\x82",
    "a-lone-surrogate": b"\xed\xa0\x80",
}


@check("json.strings-are-escaped", answers="OIP-JSON", role="identity_bytes")
@rows(
    *[Row(name, (text, "json"), fit=TEXTS if name == "control-characters" else None) for name, text in _TEXTS.items()],
    *[Row(name, (text, "binary"), needs=BINARY) for name, text in _NO_TEXTS.items()],
)
def strings_are_escaped(target: Target, model: Model, text: bytes, send: Form) -> None:
    """An answer with any bytes in a JSON string is valid JSON in UTF-8, or the request is refused."""
    tensors = [_filled(tensor, text) for tensor in model.sample()] if model.is_own_oracle else [model.tensor([text])]
    reply = target.infer(model.request(tensors, send=send, want="json" if send == "binary" else None))
    if reply.succeeded:
        expect_json(reply)


def _filled(tensor: Tensor, text: bytes) -> Tensor:
    """Return strings that are all this one; other tensors as they are."""
    if tensor.datatype != "BYTES":
        return tensor
    return Tensor.of(tensor.name, tensor.datatype, [text] * tensor.elements, tensor.shape)


@check("json.nan-and-infinities", answers=("OIP-JSON-NAN", "OIP-JSON", "BIN-SAME-AS-JSON-O"))
@rows(*[Row(role, role=role, needs=BINARY) for role in ("identity_fp32", "identity_fp64")])
def nan_and_infinities(target: Target, model: Model) -> str:
    """NaN and infinities in a JSON answer are refused, or written as something that JSON has."""
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
    if isinstance(data, list) and all(map(_is_no_number, data)):
        return f"data {format_value(data)}"
    if not is_right(target, model, [model.tensor([1.5, -2.25])], "read"):
        raise BlockedError("1.5 and -2.25 are read wrong from binary data, too")
    raise UnmetError(
        "NaN, Infinity and -Infinity", f"data {format_value(data)}", reply, requirement="BIN-SAME-AS-JSON-O"
    )


def _is_no_number(value: Any) -> bool:
    """Whether a JSON value can stand for NaN or an infinity: null, a text, or a number beyond all floats."""
    return value is None or isinstance(value, str) or (type(value) is int and abs(value) > 2**1024)
