"""Relations of the frame: what stands around the tensors of an answer has to fit them, whatever they are."""

from __future__ import annotations

from conformance.checks.relations.plain_answer import expect_json_answers
from conformance.checks.support.framing import expect_framed, expect_length_fits, expect_length_given, is_cut
from conformance.expect.expectation import Expectation, expect
from conformance.expect.unmet import NotApplicable
from conformance.survey.deployed import FULL, MIXED, PLAIN, Deployed
from conformance.terms.check import check, rows
from conformance.terms.text import safe
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM


def _answer(target: Target, model: Deployed, which: str) -> Reply:
    """Return an answer with binary data, of which at least the head came: all outputs, some beside JSON, or unlisted."""
    if which == "unlisted":
        return target.infer(model.request(send=model.sends, binary_data_output=True))
    reply = model.answer(target, which)
    if not is_cut(reply):
        expect(reply, {FULL: "BIN-OUTPUT-TRUE", MIXED: "OIP-ANSWER"}[which]).answered()
    return reply


BINARY_ANSWERS = (("all", FULL), ("beside-json", MIXED))


@check(
    "relations.binary-answer-is-framed",
    answers=("BIN-SIZE-O", "BIN-SIZE-WITHOUT-DATA", "BIN-BODY-O", "BIN-HEADER-O", "BIN-HEADER-IN-BYTES"),
)
@rows(*BINARY_ANSWERS, "unlisted")
def binary_answer_is_framed(target: Target, model: Deployed, which: str) -> None:
    """Sizes and header of an answer with binary data account for every byte of its body."""
    reply = _answer(target, model, which)
    if not is_cut(reply):
        expect(reply).free_of("data-missing")
        expect_framed(reply)


@check("relations.content-length-is-that-of-the-whole-body", answers="BIN-CONTENT-LENGTH")
@rows(*BINARY_ANSWERS)
def content_length_is_that_of_the_whole_body(target: Target, model: Deployed, which: str) -> None:
    """The Content-Length of an answer with binary data, where it has one, counts JSON and binary data together."""
    reply = _answer(target, model, which)
    declared = sum(output.declared_size or 0 for output in reply.answer.outputs if output.binary)
    expect_length_fits(reply, reply.answer.json_end + declared if reply.answer.document is not None else 0)


@check("relations.binary-answer-is-not-chunked", answers="BIN-NOT-CHUNKED")
@rows(*BINARY_ANSWERS)
def binary_answer_is_not_chunked(target: Target, model: Deployed, which: str) -> None:
    """An answer with binary data states its length in Content-Length: no chunks, and no end with the connection."""
    reply = _answer(target, model, which)
    if _is_binary(reply):
        expect_length_given(reply)


@check("relations.binary-answer-is-an-octet-stream", answers="BIN-CONTENT-TYPE-O")
@rows(*BINARY_ANSWERS)
def binary_answer_is_an_octet_stream(target: Target, model: Deployed, which: str) -> None:
    """An answer with binary data has Content-Type application/octet-stream."""
    _expect_type(expect(_answer(target, model, which)), OCTET_STREAM, binary=True)


@check("relations.json-answer-is-application-json", answers="BIN-CONTENT-TYPE-OF-JSON")
def json_answer_is_application_json(target: Target, model: Deployed) -> None:
    """An answer without binary data has Content-Type application/json."""
    _expect_type(expect(_json_answer(target, model)).answered(), JSON, binary=False)


@check("relations.json-answer-has-no-inference-header", answers="BIN-HEADER-ON-JSON-O")
def json_answer_has_no_inference_header(target: Target, model: Deployed) -> None:
    """An answer without binary data has no inference header, or one that equals the length of its body."""
    reply = _json_answer(target, model)
    header = reply.header(INFERENCE_HEADER)
    if not _is_binary(reply) and header not in (None, str(len(reply.body))):
        raise expect(reply).unmet(f"no {INFERENCE_HEADER}, or {len(reply.body)}", safe(str(header), 60))


@check("relations.json-outputs-have-data-and-no-size", answers="BIN-DATA-WITHOUT-SIZE")
def json_outputs_have_data_and_no_size(target: Target, model: Deployed) -> None:
    """An output asked for as JSON has `data` and no binary_data_size."""
    reply = _json_answer(target, model)
    expect(reply).answered().free_of("data-and-size", "data-missing")


def _json_answer(target: Target, model: Deployed) -> Reply:
    """Return the plain answer, where it is all JSON."""
    expect_json_answers(model)
    if model.binary_only:
        raise NotApplicable(f"JSON does not carry {', '.join(model.binary_only)}")
    return model.answer(target, PLAIN)


def _expect_type(expectation: Expectation, wanted: str, *, binary: bool) -> None:
    reply = expectation.reply
    found = (reply.header("Content-Type") or "").partition(";")[0].strip().lower()
    if _is_binary(reply) == binary and found != wanted:
        raise expectation.unmet(wanted, safe(found, 60) or "no Content-Type")


def _is_binary(reply: Reply) -> bool:
    """Whether there are binary data; those of no bytes may count as none."""
    return any(output.binary and output.declared_size != 0 for output in reply.answer.outputs)
