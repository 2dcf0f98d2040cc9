"""The inference header, Content-Length and Content-Type, on both sides.

Where values are looked at they are UINT8 or BOOL: what a server thinks of byte order is not the header's fault. The
requests that have to be refused stand in `_header_refusals.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.check import Row, check, rows
from conformance.checks._framing import WRONG_LENGTH
from conformance.checks._header_refusals import LAX, PLAIN, REFUSALS, VALUES
from conformance.checks._refusals import Refusal, refusal_rows
from conformance.checks._values import blocked_where
from conformance.expect import expect, refuses, still_answers
from conformance.outcome import Unmet
from conformance.roles import Model
from conformance.target.exchange import Reply
from conformance.target.target import Target
from conformance.text import safe
from conformance.wire.request import ABSENT, INFERENCE_HEADER, JSON, OCTET_STREAM, InferRequest, Message, Output
from conformance.wire.tensor import Tensor

__all__ = ["REFUSALS"]

FAR = "é猫"  # two characters, five bytes

# --- requests: where the JSON ends -------------------------------------------------------------------------------


def _text(document: Mapping[str, Any], **options: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, **options).encode()


SPELLINGS: Mapping[str, Callable[[Mapping[str, Any]], bytes]] = {
    "compact": lambda document: _text(document, separators=(",", ":")),
    "characters-beyond-ascii": lambda document: _text({"id": FAR, **document}),
    "escaped-characters": lambda document: json.dumps({"id": FAR, **document}).encode(),
    "indented": lambda document: _text(document, indent=2),
    "line-end-after-it": lambda document: _text(document) + b"\n",
    "blanks-around-it": lambda document: b"\r\n\t " + _text(document) + b" \t\r\n",
    "64-KiB-of-blanks": lambda document: _text(document)[:-1] + b" " * 65536 + b"}",
}


@check("headers.request-json-is-as-long-as-the-header-says", answers="BIN-IHCL-I", role="identity_uint8")
@rows(*[Row(name, (spell,), thorough="KiB" in name) for name, spell in SPELLINGS.items()])
def request_json_is_as_long_as_the_header_says(
    target: Target, model: Model, spell: Callable[[Mapping[str, Any]], bytes]
) -> None:
    """The binary data of a request begin where the inference header says that the JSON ends."""
    tensors = [model.tensor(VALUES)]
    request = model.request(tensors)
    head = spell(request.written())
    message = Message(
        request.path,
        (("Content-Type", OCTET_STREAM), (INFERENCE_HEADER, str(len(head)))),
        head + bytes(VALUES),
        json_length=len(head),
        names=request.names.of_outputs,
    )
    expect(target.infer(message)).tensors(model.expected(tensors))


@check("headers.request-header-counts-json-data-in-bytes", answers="BIN-IHCL-I", role="multi")
def request_header_counts_json_data_in_bytes(target: Target, multi: Model) -> None:
    """Binary data behind JSON strings beyond ASCII begin where the inference header says, counted in bytes."""
    with blocked_where(lambda: not _is_right_behind(target, multi, ["a", "b"]), "behind ASCII they are wrong, too"):
        _expect_behind(target, multi, [FAR, "ß" * 50, "a"])


def _expect_behind(target: Target, multi: Model, strings: Sequence[str]) -> None:
    """Expect the right BOOL elements from binary data behind these strings as JSON."""
    sample = {tensor.name: tensor for tensor in multi.sample()}
    sample["IN_BYTES"] = Tensor.of("IN_BYTES", "BYTES", strings)
    sample["IN_BOOL"] = Tensor.of("IN_BOOL", "BOOL", [True, False, True, True, False])
    tensors = tuple(sample.values())
    reply = target.infer(multi.request(tensors, send={"IN_BOOL"}))
    expect(reply).tensors([tensor for tensor in multi.expected(tensors) if tensor.name == "OUT_BOOL"])


def _is_right_behind(target: Target, multi: Model, strings: Sequence[str]) -> bool:
    try:
        _expect_behind(target, multi, strings)
    except Unmet:
        return False
    return True


@check("headers.inference-header-in-any-case", answers="BIN-HDR-CASE", role="identity_uint8")
@rows("inference-header-content-length", "INFERENCE-HEADER-CONTENT-LENGTH", "iNfErEnCe-HeAdEr-CoNtEnT-lEnGtH")
def inference_header_in_any_case(target: Target, model: Model, name: str) -> None:
    """The inference header of a request is recognised in any mix of upper and lower case."""
    message = model.request().message()
    expect(
        target.infer(message.with_header(INFERENCE_HEADER, None).with_header(name, str(message.json_length)))
    ).answered()


@check("headers.json-request-needs-no-inference-header", answers="BIN-IHCL-ABSENT", role="identity_int32")
@rows(
    ("nothing-asked", None, ABSENT),
    ("json-outputs", "json", ABSENT),
    ("binary-outputs", "binary", ABSENT),
    ("all-outputs-binary", None, True),
)
def json_request_needs_no_inference_header(target: Target, model: Model, want: Any, all_binary: Any) -> None:
    """A request without binary data is accepted without the inference header, whatever form its outputs shall have."""
    expect(target.infer(model.request(send="json", want=want, binary_data_output=all_binary))).answered()


@check("headers.json-request-may-have-inference-header", answers="BIN-IHCL-JSON", role="identity_int32")
@rows(("as-json", JSON, None), ("as-octet-stream", OCTET_STREAM, None), ("binary-outputs", JSON, "binary"))
def json_request_may_have_inference_header(target: Target, model: Model, content_type: str, want: Any) -> None:
    """A request without binary data is accepted with an inference header that equals the length of its body."""
    message = model.request(send="json", want=want).message()
    headed = message.with_header("Content-Type", content_type).with_header(INFERENCE_HEADER, str(len(message.body)))
    expect(target.infer(headed)).answered()


# --- requests: the content type ----------------------------------------------------------------------------------


@check("headers.octet-stream-request-is-accepted", answers="BIN-CT-REQ", role="identity_int32")
@rows(
    ("json-outputs", None),
    ("binary-outputs", "binary"),
    Row("two-inputs", (None,), role="documented_binary"),
)
def octet_stream_request_is_accepted(target: Target, model: Model, want: Any) -> None:
    """A binary request with Content-Type application/octet-stream is accepted."""
    expect(target.infer(model.request(want=want))).answered()


@check("headers.binary-request-of-another-type-is-accepted", answers="BIN-CT-REQ-OTHER", role="identity_int32")
@rows(("as-json", JSON), ("without-content-type", None))
def binary_request_of_another_type_is_accepted(target: Target, model: Model, content_type: str | None) -> None:
    """A binary request with Content-Type application/json, or without any, is accepted."""
    expect(target.infer(model.request().message().with_header("Content-Type", content_type))).answered()


# --- answers -----------------------------------------------------------------------------------------------------


Ask = Callable[[Model], InferRequest]


def _mixed(model: Model) -> InferRequest:
    """Ask `multi` for strings beyond ASCII as JSON between two binary outputs."""
    tensors = [*model.sample()[:-1], Tensor.of("IN_BYTES", "BYTES", [FAR, "ß" * 50, "a"])]
    wanted = [Output("OUT_INT64", True), Output("OUT_BYTES", False), Output("OUT_BOOL", True)]
    return model.request(tensors, send="json", outputs=wanted)


def _long_json(count: int) -> Ask:
    """Return what asks `multi` for so many strings as JSON beside binary outputs."""

    def ask(model: Model) -> InferRequest:
        tensors = [*model.sample()[:-1], Tensor.of("IN_BYTES", "BYTES", [f"text {k}" for k in range(count)])]
        outputs = [Output(spec.name, spec.datatype != "BYTES") for spec in model.role.outputs]
        return model.request(tensors, send="json", outputs=outputs)

    return ask


def _large(model: Model) -> InferRequest:
    return model.request([model.tensor(list(range(256)) * 64)], want="binary")


BINARY_ANSWERS = (
    Row("one-output", (lambda model: model.request(send="json", want="binary"),), role="identity_uint8"),
    Row("bytes-output", (lambda model: model.request(send="json", want="binary"),), role="identity_bytes"),
    Row("all-outputs", (lambda model: model.request(send="json", binary_data_output=True),), role="multi"),
    Row("beside-json-outputs", (_mixed,), role="multi"),
    Row(
        "id-beyond-ascii",
        (lambda model: model.request(send="json", want="binary", request_id=FAR),),
        role="identity_uint8",
    ),
    Row("binary-request", (lambda model: model.request(want="binary"),), role="identity_uint8"),
    Row("json-over-1000-bytes", (_long_json(100),), role="multi"),
    Row("json-over-64-KiB", (_long_json(6000),), role="multi", thorough=True),
    Row("16-KiB-output", (_large,), role="identity_uint8"),
)
JSON_ANSWERS = (
    Row("json-request", (lambda model: model.request(send="json"),), role="identity_int32"),
    Row("binary-request", (lambda model: model.request(),), role="identity_int32"),
    Row("json-asked-for", (lambda model: model.request(send="json", want="json"),), role="multi"),
)


def _has_binary_data(reply: Reply) -> bool:
    return any(output.binary or output.span for output in reply.answer.outputs)


def _is_cut(reply: Reply) -> bool:
    """Whether the head of a good answer came but not its whole body, which is a matter of its length alone."""
    return reply.exchange.failure is not None and reply.status is not None and 200 <= reply.status < 300


def _media_type(reply: Reply) -> str:
    return (reply.header("Content-Type") or "").partition(";")[0].strip().lower()


def _content_type(reply: Reply) -> str:
    given = reply.header("Content-Type")
    return "no Content-Type" if given is None else f"Content-Type: {safe(given, 60)}"


@check("headers.binary-answer-has-inference-header", answers="BIN-IHCL-O")
@rows(*BINARY_ANSWERS)
def binary_answer_has_inference_header(target: Target, model: Model, ask: Ask) -> None:
    """An answer with binary data carries the inference header."""
    reply = target.infer(ask(model))
    if not _is_cut(reply):
        expect(reply).free_of("inference-header-missing")


@check("headers.answer-header-counts-the-bytes-of-the-json", answers="BIN-IHCL-LEN")
@rows(*BINARY_ANSWERS)
def answer_header_counts_the_bytes_of_the_json(target: Target, model: Model, ask: Ask) -> None:
    """The inference header of an answer counts the bytes of its JSON, not the characters."""
    reply = target.infer(ask(model))
    if not _is_cut(reply) and expect(reply).answered().reply.answer.document is not None:
        expect(reply).free_of(*WRONG_LENGTH)


@check("headers.json-answer-has-no-inference-header", answers="BIN-IHCL-NONE")
@rows(*JSON_ANSWERS)
def json_answer_has_no_inference_header(target: Target, model: Model, ask: Ask) -> None:
    """An answer without binary data has no inference header, or one that equals the length of its body."""
    reply = target.infer(ask(model))
    expectation = expect(reply).answered()
    header = reply.header(INFERENCE_HEADER)
    if header in (None, str(len(reply.body))) or _has_binary_data(reply):
        return
    raise expectation.unmet(f"no {INFERENCE_HEADER}, or {len(reply.body)}", safe(str(header), 60))


@check("headers.content-length-is-that-of-the-whole-body", answers="BIN-CL")
@rows(*BINARY_ANSWERS)
def content_length_is_that_of_the_whole_body(target: Target, model: Model, ask: Ask) -> None:
    """An answer with binary data that is not chunked gives the length of JSON and binary data in Content-Length."""
    request = ask(model)
    reply = target.infer(request)
    expectation = expect(reply)
    if reply.status is None or reply.status >= 300:
        expectation.answered()
    least = _least_length(reply, model.expected([item.tensor for item in request.inputs]))
    given = reply.header("Content-Length")
    if least is None or _is_chunked(reply):
        return
    if given is None:
        raise expectation.unmet(f"Content-Length: {len(reply.body)}", "neither Content-Length nor chunks")
    if len(reply.body) < least:  # a length that is too small cuts the body, one that is too large breaks the reading
        raise expectation.unmet(f"Content-Length: {least}", safe(given, 60))
    expectation.answered()


def _is_chunked(reply: Reply) -> bool:
    return "chunked" in (reply.header("Transfer-Encoding") or "").lower()


def _least_length(reply: Reply, expected: Sequence[Tensor]) -> int | None:
    """Return how long the body is at least, None for one without binary data.

    The declared sizes or those of the right tensors, whichever are smaller: a wrong size is another fault. Of a body
    that was cut inside its JSON the inference header alone tells something.
    """
    header = reply.header(INFERENCE_HEADER) or ""
    if reply.answer.document is None:
        return int(header) if header.isdecimal() else None
    sizes = {tensor.name: tensor.size for tensor in expected}
    both = {finding.field for finding in reply.answer.of_kind("data-and-size")}  # a size too many has no bytes
    binary = [o for o in reply.answer.outputs if o.binary and f"outputs[{o.index}]" not in both]
    least = [min(sizes.get(o.name, 0), o.declared_size or 0) for o in binary]
    return reply.answer.json_end + sum(least) if binary else None


@check("headers.binary-answer-is-not-chunked", answers="BIN-CL-CHUNKED")
@rows(*BINARY_ANSWERS)
def binary_answer_is_not_chunked(target: Target, model: Model, ask: Ask) -> None:
    """An answer with binary data states its length in Content-Length rather than being chunked."""
    reply = target.infer(ask(model))
    expectation = expect(reply) if _is_cut(reply) else expect(reply).answered()
    if _has_binary_data(reply) and _is_chunked(reply):
        raise expectation.unmet(f"Content-Length: {len(reply.body)}", "Transfer-Encoding: chunked")


@check("headers.binary-answer-is-an-octet-stream", answers="BIN-CT-RES")
@rows(*BINARY_ANSWERS)
def binary_answer_is_an_octet_stream(target: Target, model: Model, ask: Ask) -> None:
    """An answer with binary data has Content-Type application/octet-stream."""
    reply = target.infer(ask(model))
    expectation = expect(reply) if _is_cut(reply) else expect(reply).answered()
    if _has_binary_data(reply) and _media_type(reply) != OCTET_STREAM:
        raise expectation.unmet(f"Content-Type: {OCTET_STREAM}", _content_type(reply))


@check("headers.json-answer-is-application-json", answers="BIN-CT-JSON")
@rows(*JSON_ANSWERS)
def json_answer_is_application_json(target: Target, model: Model, ask: Ask) -> None:
    """An answer without binary data has Content-Type application/json."""
    reply = target.infer(ask(model))
    expectation = expect(reply).answered()
    if not _has_binary_data(reply) and _media_type(reply) != JSON:
        raise expectation.unmet(f"Content-Type: {JSON}", _content_type(reply))


@check("headers.empty-outputs-have-a-right-header-or-none", answers=("BIN-EMPTY-IHCL", "BIN-IHCL-LEN"))
@rows(Row("no-elements", ((0,),), role="identity_int32"), Row("two-empty-outputs", ((2,),), role="emit"))
def empty_outputs_have_a_right_header_or_none(target: Target, model: Model, shape: tuple[int, ...]) -> str:
    """Binary outputs that are all empty come with an inference header of the right length, or without one."""
    tensor = model.tensor([0] * shape[0], shape)
    reply = target.infer(model.request([tensor], send="json", want="binary"))
    if not reply.succeeded:
        return f"not answered: {reply.outcome()}"
    expect(reply, "BIN-IHCL-LEN").free_of(*WRONG_LENGTH)
    header = "no inference header" if reply.header(INFERENCE_HEADER) is None else "inference header"
    return f"{header}, {_media_type(reply) or 'no Content-Type'}"


# --- refusals ----------------------------------------------------------------------------------------------------


@check("headers.impossible-length-is-refused", answers=tuple({refusal.requirement: None for refusal in PLAIN}))
@rows(*refusal_rows(PLAIN))
def impossible_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """A binary request whose inference header is missing, or is no place where its JSON ends, is refused."""
    refuses(target, model, refusal.message(model), refusal.told)


@check("headers.odd-spelling-of-the-length-is-refused", answers=("BIN-NEG-IHCL-LAX", "BIN-NEG-IHCL-TEXT"))
@rows(*[Row(refusal.fault, (refusal,), role=refusal.role) for refusal in LAX])
def odd_spelling_of_the_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """An inference header that is not spelled in plain digits is refused, and at the least never shifts a tensor."""
    reply = target.send(refusal.message(model), fresh=True)
    if reply.succeeded:
        expect(reply, "BIN-NEG-IHCL-TEXT").tensors(model.expected([model.tensor(VALUES)]))
    expect(reply).refused(refusal.told)
    still_answers(target, model)
