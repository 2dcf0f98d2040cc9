"""The JSON of the base protocol: what answers say, what requests may say, and the text itself.

Rows that take binary data need that extension; all others are for any server of the protocol. Which form outputs come
in, how large they are and whether they are right as binary data is judged elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from conformance import blame
from conformance.check import Row, check, rows
from conformance.checks._answers import ANSWERS, BINARY, Make, asking, meets
from conformance.checks._values import blocked_where, carries, counted, is_right
from conformance.expect import expect
from conformance.outcome import Blocked, Unmet
from conformance.roles import Model, load
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.text import safe
from conformance.wire.finding import shown

Form = Literal["json", "binary"]


# Statuses of a path that the server does not know, or not with this method.
_NOT_THERE = (404, 405, 501)

# --- a plain request ---------------------------------------------------------------------------------------------------


@check("json.plain-request-is-answered", answers=("OIP-EP", "OIP-ANSWER"), infers=False)
@rows(*[Row(name, role=name, needs=() if role.speaks_json else BINARY) for name, role in load().items()])
def plain_request_is_answered(target: Target, model: Model) -> None:
    """A plain inference request is answered with status 200 and the right outputs."""
    speaks_json = model.role.speaks_json
    reply = target.infer(model.request(send="json") if speaks_json else model.request(want="binary"))
    if reply.status not in _NOT_THERE:
        expect(reply, "OIP-ANSWER").answered()
    if expect(reply).answered().reply.status != 200:
        raise Unmet("status 200 for an inference", f"status {reply.status}", reply)
    for tensor in model.expected(model.sample()):
        if speaks_json:
            expect(reply, "OIP-ANSWER").tensors([tensor])
        else:  # the values of binary data are judged by datatype
            expect(reply, "OIP-ANSWER").output(tensor.name)


@check("json.metadata-have-status-200", answers="OIP-EP", role="identity_int32", infers=False)
@rows("server", "model")
def metadata_have_status_200(target: Target, model: Model, of: str) -> None:
    """Server metadata are a GET of v2, model metadata of v2/models/NAME, with status 200."""
    reply = target.get(model.path if of == "model" else "/v2")
    if expect(reply).answered().reply.status != 200:
        raise Unmet(f"status 200 for {of} metadata", f"status {reply.status}", reply)


# --- what an answer says of itself -------------------------------------------------------------------------------------


@check("json.answer-names-its-model", answers=("OIP-NAME", "OIP-JSON"))
@rows(*ANSWERS)
def answer_names_its_model(target: Target, model: Model, make: Make) -> None:
    """An inference answer has the string model_name, which is not the name of another model."""
    reply = target.infer(make(model))
    meets(reply, "OIP-NAME")
    found = (reply.answer.document or {}).get("model_name")
    if found != model.name and found in target.roles.values():  # an alias is a server's own affair
        raise Unmet(f"model_name {shown(model.name)}", f"model_name {shown(found)}", reply)


@check("json.answer-describes-its-outputs", answers=("OIP-RES", "OIP-JSON"))
@rows(*ANSWERS)
def answer_describes_its_outputs(target: Target, model: Model, make: Make) -> None:
    """An inference answer is an object with an array of outputs, each with name, shape and datatype."""
    meets(target.infer(make(model)), "OIP-RES")


@check("json.model-version-is-a-string", answers=("OIP-VER", "OIP-JSON"))
@rows(*ANSWERS)
def model_version_is_a_string(target: Target, model: Model, make: Make) -> None:
    """The model_version of an inference answer is a string, where there is one."""
    meets(target.infer(make(model)), "OIP-VER")


@check("json.shape-counts-the-elements", answers=("OIP-SHAPE", "OIP-JSON"))
@rows(*ANSWERS)
def shape_counts_the_elements(target: Target, model: Model, make: Make) -> None:
    """The dimensions of an output are non-negative integers whose product is the number of its elements."""
    reply = target.infer(make(model))
    meets(reply, "OIP-SHAPE")
    expect(reply).free_of("shape-no-integers", "data-count", "bytes-count")


@check("json.answer-is-json-in-utf-8", answers="OIP-JSON")
@rows(*ANSWERS)
def answer_is_json_in_utf_8(target: Target, model: Model, make: Make) -> None:
    """The JSON of an answer is valid and in UTF-8, and nothing but binary data follows it."""
    _is_json(target.infer(make(model)))


def _is_json(reply: Reply) -> None:
    expect(reply, "OIP-ANSWER").answered()
    if requirement := blame.of_text(reply):
        findings = "; ".join(finding.told for finding in reply.answer.findings)
        raise Unmet("JSON in UTF-8, and nothing behind it", findings, reply, requirement=requirement)


# --- which outputs -----------------------------------------------------------------------------------------------------

_LISTED: tuple[tuple[str, ...], ...] = (
    ("OUT_FP32",),
    ("OUT_BYTES",),
    ("OUT_BYTES", "OUT_INT64"),
    ("OUT_BOOL", "OUT_FP32", "OUT_BYTES"),
    ("OUT_FP32", "OUT_BYTES", "OUT_BOOL", "OUT_INT64"),
)


@check("json.listed-outputs-come-alone", answers="OIP-OUT", role="multi")
@rows(
    *[("-".join(listed), listed, asking(outputs=listed)) for listed in _LISTED],
    *[Row(f"{'-'.join(o)}-binary", (o, asking(outputs=o, want="binary")), needs=BINARY) for o in _LISTED],
    *[
        Row(f"{'-'.join(o)}-binary-by-default", (o, asking(outputs=o, binary_data_output=True)), needs=BINARY)
        for o in _LISTED
    ],
)
def listed_outputs_come_alone(target: Target, multi: Model, listed: tuple[str, ...], make: Make) -> None:
    """An answer has exactly the outputs that the request lists."""
    _has_outputs(target.infer(make(multi)), listed)


@check("json.all-outputs-come-unasked", answers="OIP-OUT-ALL")
@rows(
    *[Row(role, (asking(),), role=role) for role in ("multi", "add_sub", "raw_two_outputs", "emit")],
    Row("multi-binary-by-default", (asking(binary_data_output=True),), role="multi", needs=BINARY),
    Row("raw_two_outputs-binary-in", (lambda m: m.request(),), role="raw_two_outputs", needs=BINARY),
)
def all_outputs_come_unasked(target: Target, model: Model, make: Make) -> None:
    """An answer has all outputs of the model when the request lists none."""
    _has_outputs(target.infer(make(model)), [spec.name for spec in model.role.outputs])


def _has_outputs(reply: Reply, names: Sequence[str]) -> None:
    """Expect exactly these outputs, in any order."""
    expect(reply).answered()
    found = list(reply.answer.names())
    if sorted(found) != sorted(names):
        missing = [name for name in names if name not in found]
        requirement = blame.of_output(reply, missing[0]) if missing else None
        raise Unmet(f"outputs {shown(list(names))}", f"outputs {shown(found)}", reply, requirement=requirement)


# --- the id ------------------------------------------------------------------------------------------------------------

_IDS = {
    "letters": "first-Request_7",
    "digits": "0042",
    "blanks": " a  b ",
    "escapes": 'a"b\\c/d\n\te',
    "accents": "größe-é",
    "beyond-16-bits": "猫😀",
    "long": "id-" + "0123456789" * 30,
}


@check("json.id-comes-back", answers="OIP-ID", role="identity_int32")
@rows(
    *[(name, identity, "json", None) for name, identity in _IDS.items()],
    *[
        Row(f"{name}-{send}-in-{want}-out", (_IDS[name], send, want), needs=BINARY)
        for name in ("letters", "accents")
        for send, want in (("binary", "json"), ("json", "binary"), ("binary", "binary"))
    ],
)
def id_comes_back(target: Target, model: Model, identity: str, send: Form, want: Form | None) -> None:
    """The id of a request comes back unchanged."""
    reply = target.infer(model.request(send=send, want=want, request_id=identity))
    if not reply.succeeded and target.infer(model.request(send="json", request_id=identity)).succeeded:
        raise Blocked("only with binary data is a request with this id not answered")
    _has_id(reply, identity)


@check("json.escaped-id-comes-back", answers="OIP-ID", role="identity_int32")
@rows(*[(name, _IDS[name]) for name in ("escapes", "accents", "beyond-16-bits")])
def escaped_id_comes_back(target: Target, model: Model, identity: str) -> None:
    r"""An id written with \u escapes comes back as the text that it stands for."""
    request = model.request(send="json", request_id=identity)
    escaped = "".join(f"\\u{unit:04x}" for unit in _utf_16(identity))
    text = json.dumps({**request.written(), "id": "@"}, separators=(",", ":")).replace('"@"', f'"{escaped}"')
    _has_id(target.infer(request.message().with_body(text.encode())), identity)


def _utf_16(text: str) -> list[int]:
    octets = text.encode("utf-16-be")
    return [int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2)]


def _has_id(reply: Reply, identity: str) -> None:
    expect(reply).answered()
    found = (reply.answer.document or {}).get("id")
    if found != identity:
        _is_json(reply)
        raise Unmet(f"id {shown(identity)}", "no id" if found is None else f"id {shown(found)}", reply)


# --- data --------------------------------------------------------------------------------------------------------------

_SHAPED = ("rank2", "rank3", "rank4", "rank2_bytes", "batching", "fixed")
_UNCARRIED = "binary data of these elements are wrong by themselves"


@check("json.data-is-flat-or-nested", answers="OIP-DATA")
@rows(
    *[
        Row(f"{role}-{form}", (form, None), role=role)
        for role in ("weighted_sum", *_SHAPED)
        for form in ("flat", "nested")
    ],
    *[
        Row(f"{role}-{form}-seen-as-binary", (form, "binary"), role=role, needs=BINARY)
        for role in _SHAPED
        for form in ("flat", "nested")
    ],
)
def data_is_flat_or_nested(target: Target, model: Model, form: str, want: Form | None) -> None:
    """JSON data are read in row-major order, whether they are flat or nested."""
    tensors = [counted(model, model.sample()[0].shape)]
    reply = target.infer(model.request(tensors, send="json", want=want, nested=form == "nested"))
    with blocked_where(lambda: want == "binary" and not carries(target, model, tensors, "written"), _UNCARRIED):
        expect(reply).tensors(model.expected(tensors), through_json=True)


@check("json.data-is-returned-flat-or-nested", answers="OIP-DATA")
@rows(*[Row(role, role=role, needs=BINARY) for role in _SHAPED])
def data_is_returned_flat_or_nested(target: Target, model: Model) -> None:
    """JSON data in answers are flat, or nested as the shape says, in row-major order."""
    tensors = [counted(model, model.sample()[0].shape)]
    reply = target.infer(model.request(tensors))
    with blocked_where(lambda: not carries(target, model, tensors, "read"), _UNCARRIED):
        expect(reply).tensors(model.expected(tensors))
    for output in reply.answer.outputs:
        data = (reply.answer.document or {})["outputs"][output.index].get("data")
        flat = isinstance(data, list) and not any(isinstance(item, list) for item in data)
        if not (output.binary or flat or _is_nested(data, output.shape or ())):
            nested = f"data of {output.name}, flat or nested as its shape {list(output.shape or ())}"
            raise Unmet(nested, f"other arrays inside each other: {_nesting(data)}", reply)


def _nesting(data: Any) -> str:
    """Return the lengths of the arrays that begin an array, from the outermost on."""
    lengths = []
    while isinstance(data, list):
        lengths.append(len(data))
        data = data[0] if data else None
    return " of ".join(map(str, lengths)) or "no array"


def _is_nested(data: Any, shape: Sequence[int]) -> bool:
    """Whether arrays stand inside each other as the dimensions say."""
    if not shape:
        return not isinstance(data, list)
    return isinstance(data, list) and len(data) == shape[0] and all(_is_nested(item, shape[1:]) for item in data)


# --- the text ----------------------------------------------------------------------------------------------------------

_TEXTS: dict[str, bytes] = {
    "quotes-and-backslashes": b'"\\"\\\\"',
    "line-ends": b"a\r\nb\tc",
    "control-characters": b"\x01\x1b\x1f\x7f",
    "nul": b"a\x00b",
    "beyond-16-bits": "猫😀\u2028".encode(),
}
_NO_TEXTS: dict[str, bytes] = {
    "a-byte-that-is-never-utf-8": b"a\xffb",
    "a-sequence-cut-short": b"a\xe2\x82",
    "a-lone-surrogate": b"\xed\xa0\x80",
}


@check("json.strings-are-escaped", answers="OIP-JSON", role="identity_bytes")
@rows(
    *[Row(name, (text, "json")) for name, text in _TEXTS.items()],
    *[Row(name, (text, "binary"), needs=BINARY) for name, text in _NO_TEXTS.items()],
)
def strings_are_escaped(target: Target, model: Model, text: bytes, send: Form) -> None:
    """An answer with any bytes in a JSON string is valid JSON in UTF-8, or the request is refused."""
    reply = target.infer(model.request([model.tensor([text])], send=send, want="json" if send == "binary" else None))
    if reply.succeeded:
        _is_json(reply)


@check("json.nan-and-infinities", answers=("OIP-JSON-NAN", "BIN-EQ-O"))
@rows(*[Row(role, role=role, needs=BINARY) for role in ("identity_fp32", "identity_fp64")])
def nan_and_infinities(target: Target, model: Model) -> str:
    """NaN and infinities in a JSON answer are refused, or written in some way that no document gives."""
    reply = target.infer(model.request([model.tensor([float("nan"), float("inf"), float("-inf")])]))
    if not reply.succeeded:
        return f"refused: {safe(reply.outcome(), 120)}"
    if reply.answer.of_kind("json-non-finite"):
        return "bare words: NaN, Infinity"
    document = reply.answer.document
    if document is None:
        return "text that is no JSON"
    output = expect(reply, "BIN-EQ-O").output(model.role.outputs[0].name)
    if output.binary:
        return "binary data"
    data = document["outputs"][output.index].get("data")
    if isinstance(data, list) and all(map(_is_no_number, data)):
        return f"data {shown(data)}"
    if not is_right(target, model, [model.tensor([1.5, -2.25])], "read"):
        raise Blocked("1.5 and -2.25 are read wrong from binary data, too")
    raise Unmet("NaN, Infinity and -Infinity", f"data {shown(data)}", reply, requirement="BIN-EQ-O")


def _is_no_number(value: Any) -> bool:
    """Whether a JSON value can stand for NaN or an infinity: null, a text, or a number beyond all floats."""
    return value is None or isinstance(value, str) or (type(value) is int and abs(value) > 2**1024)
