"""Requests whose inference header is wrong or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.checks.support.deployed_models import require_json, require_no_lookup_table
from conformance.checks.support.inputs import sample_inputs
from conformance.checks.support.refusals import Refusal, expect_fault_refused, make_refusal_rows
from conformance.checks.support.wrong_requests import Fault, WrongRequest, make_refusals, send_json, send_raw
from conformance.discovery.control_answers import find_differing_outputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal, is_refused
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.edits import plus, times, written
from conformance.wire.message_edits import Header, measure_body, measure_json, set_length
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM, InferRequest, Message
from conformance.wire.tensor import Tensor

# --- requests ---------------------------------------------------------------------------------------------------------
# All go to models that would accept them if the fault were ignored: a UINT8 input accepts any number of bytes, also in
# a raw request. The binary bytes are neither JSON white space nor UTF-8, so the JSON can end at one offset only.

VALUES = [200, 201, 202, 203]
BLANKS = [0x20, 0x0A, 0x0D, 0x09]
ROLE = "identity_uint8"


def send_values(model: Model) -> InferRequest:
    """Return the valid binary request whose inference header the tables change."""
    return model.request(model.fill(VALUES), outputs=model.build_outputs_member())


def make_values(model: Model) -> Sequence[Tensor]:
    """Return the inputs of `send_values`."""
    return model.fill(VALUES)


def _send_values_unless_index(model: Model) -> InferRequest:
    """Return `send_values` for a header that some servers parse as 0 (a raw request)."""
    require_no_lookup_table(model)
    return send_values(model)


def _send_blanks(model: Model) -> InferRequest:
    """Return a request with an input that consists of JSON white space."""
    return model.request(_make_blanks(model))


def _make_blanks(model: Model) -> Sequence[Tensor]:
    """Return the inputs of `_send_blanks`."""
    return [model.tensor(BLANKS)]


def _send_one_binary_input(model: Model) -> InferRequest:
    """Return a request with one binary input; the others are JSON."""
    return model.request(send={"IN_BOOL"})


def _send_long_characters(model: Model) -> InferRequest:
    """Return a request whose JSON has characters of several bytes."""
    return model.request(model.fill(VALUES), request_id="é猫")


def _send_json_with_header(model: Model) -> Message:
    """Return a JSON request with an inference header.

    The request has the media type of binary requests: a server may ignore the inference header of application/json.
    """
    require_json(model)
    message = send_json(model).message().with_header("Content-Type", OCTET_STREAM)
    return message.with_header(INFERENCE_HEADER, str(len(message.body)))


def _write_octal(message: Message) -> str:
    """Return a header that exceeds the body unless it is parsed as octal.

    Raises NotApplicableError: the number is within the body.
    """
    header = f"0{message.json_length:o}"
    if int(header) <= len(message.body):
        raise NotApplicableError(f"{header} is within the request's {len(message.body)} bytes")
    return header


def _end_inside_character(message: Message) -> int:
    """Return a length that ends in the middle of a character of `_send_long_characters`."""
    return message.body.index("猫".encode()) + 1


def _underscore(length: int) -> str:
    """Return a number with an underscore before its last digit."""
    return f"{length // 10}_{length % 10}"


MISSING_HEADER = (
    Fault("no-header", ROLE, set_length(), ANY),
    Fault("no-header-as-json", ROLE, (set_length(), Header("Content-Type", JSON)), ANY),
    Fault("no-header-before-blank-bytes", ROLE, set_length(), start=_send_blanks, tensors=_make_blanks),
    Fault(
        "no-header-with-one-binary-input", "multi", set_length(), start=_send_one_binary_input, tensors=sample_inputs
    ),
    Fault("raw-body-without-header", "raw_fixed", set_length(), start=send_raw, tensors=sample_inputs),
)
BEYOND_BODY = (
    Fault("one-beyond-the-body", ROLE, set_length(measure_body(plus(1))), ANY),
    Fault("twice-the-body", ROLE, set_length(measure_body(times(2)))),
    Fault("2-to-the-31", ROLE, set_length(2**31)),
    Fault("right-in-32-bits", ROLE, set_length(measure_json(plus(2**32))), ANY),
    Fault("2-to-the-63", ROLE, set_length(2**63)),
    Fault("right-in-64-bits", ROLE, set_length(measure_json(plus(2**64))), ANY),
    Fault("right-as-an-octal-number", ROLE, set_length(_write_octal), ANY),
)
CUTTING_JSON = (
    Fault("one-byte-short", ROLE, set_length(measure_json(plus(-1))), ANY),
    Fault("half-of-the-json", ROLE, set_length(lambda message: message.json_length // 2)),
    Fault("one-byte-of-json", ROLE, set_length(1)),
    Fault("inside-a-character", ROLE, set_length(_end_inside_character), start=_send_long_characters),
    Fault("one-byte-of-binary-data", ROLE, set_length(measure_json(plus(1))), ANY),
    Fault("the-whole-body", ROLE, set_length(measure_body())),
)
WITHOUT_BINARY = (
    Fault("json-alone-one-beyond-the-body", "identity_int32", set_length(measure_body(plus(1))), JSON_ALONE),
    Fault("json-alone-far-beyond-the-body", "identity_int32", set_length(measure_body(plus(1000)))),
    Fault("json-alone-right-in-32-bits", "identity_int32", set_length(measure_body(plus(2**32)))),
    Fault("json-alone-right-in-64-bits", "identity_int32", set_length(measure_body(plus(2**64)))),
    Fault("json-alone-one-byte-short", "identity_int32", set_length(measure_body(plus(-1))), JSON_ALONE),
)
ODD_SPELLINGS = (
    Fault("letters", ROLE, set_length("abc"), ANY, start=_send_values_unless_index),
    Fault("empty-header", ROLE, set_length(""), ANY, start=_send_values_unless_index),
    Fault("not-a-number", ROLE, set_length("NaN")),
    Fault("raw-body-under-letters", "raw_fixed", set_length("abc"), start=send_raw, tensors=sample_inputs),
    Fault("raw-body-under-empty-header", "raw_fixed", set_length(""), start=send_raw, tensors=sample_inputs),
    Fault("minus-one", ROLE, set_length(-1)),
    Fault("minus-the-length", ROLE, set_length(measure_json(times(-1))), ANY, start=_send_values_unless_index),
    Fault("negative-and-right-in-32-bits", ROLE, set_length(measure_json(plus(-(2**32))))),
    Fault("plus-sign", ROLE, set_length(measure_json(written("+{}"))), ANY),
    Fault("letters-behind", ROLE, set_length(measure_json(written("{}abc"))), ANY),
    Fault("hexadecimal", ROLE, set_length(measure_json(hex))),
    Fault("fraction", ROLE, set_length(measure_json(written("{}.5"))), ANY),
    Fault("underscore", ROLE, set_length(measure_json(_underscore))),
)

LENGTH_REFUSALS = (
    *make_refusals("BIN-HEADER-TOO-LONG", send_values, BEYOND_BODY, make_values),
    *make_refusals("BIN-HEADER-WRONG", send_values, CUTTING_JSON, make_values),
)
MISSING_REFUSALS = make_refusals("BIN-HEADER-MISSING", send_values, MISSING_HEADER, make_values)
SPELLING_REFUSALS = make_refusals("BIN-HEADER-SPELLING", send_values, ODD_SPELLINGS, make_values)
JSON_ALONE_REFUSALS = make_refusals("BIN-HEADER-WRONG-ON-JSON", _send_json_with_header, WITHOUT_BINARY, sample_inputs)


# --- refusals ----------------------------------------------------------------------------------------------------


@check(
    "headers.impossible-length-is-refused",
    requirements=("BIN-HEADER-TOO-LONG-SAFE", "BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-SAFE", "BIN-HEADER-WRONG"),
)
@rows(*make_refusal_rows(LENGTH_REFUSALS))
def impossible_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads a binary request whose inference header does not mark the end of its JSON."""
    expect_fault_refused(target, model, refusal)


# The document requires the header of the sender only: a server that finds the binary data may answer correctly.
@check(
    "headers.request-without-a-length-is-refused-or-right",
    requirements=("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING"),
)
@rows(*make_refusal_rows(MISSING_REFUSALS))
def request_without_a_length_is_refused_or_right(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads a binary request without the inference header."""
    expect_fault_refused(target, model, refusal)


@check(
    "headers.wrong-length-of-json-alone-is-refused-or-right",
    requirements=("BIN-HEADER-WRONG-ON-JSON-SAFE", "BIN-HEADER-WRONG-ON-JSON"),
)
@rows(*make_refusal_rows(JSON_ALONE_REFUSALS))
def wrong_length_of_json_alone_is_refused_or_right(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads JSON alone with a wrong inference header."""
    expect_fault_refused(target, model, refusal)


@check(
    "headers.odd-spelling-of-the-length-is-refused", requirements=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING")
)
@rows(*make_refusal_rows(SPELLING_REFUSALS))
def odd_spelling_of_the_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads a request whose inference header is not plain digits."""
    expect_fault_refused(target, model, refusal)


# --- two inference headers --------------------------------------------------------------------------------------------

# Rows that also run on deployed models have no header of 0, with which JSON may be read as table indices.
REPEATED_EQUAL = Fault("equal", ROLE, set_length(measure_json(), measure_json()), ANY)
REPEATED = (
    Fault("header-twice-right-then-0", ROLE, set_length(measure_json(), 0)),
    Fault("header-twice-0-then-right", ROLE, set_length(0, measure_json())),
    Fault("header-twice-right-then-one-more", ROLE, set_length(measure_json(), measure_json(plus(1))), ANY),
    Fault("header-twice-whole-body-then-right", ROLE, set_length(measure_body(), measure_json()), ANY),
)
REPEATED_REFUSALS = make_refusals("BIN-HEADER-TWICE", send_values, REPEATED)
REFUSALS = (*REPEATED_REFUSALS, *LENGTH_REFUSALS, *MISSING_REFUSALS, *SPELLING_REFUSALS, *JSON_ALONE_REFUSALS)


@check("headers.different-inference-headers-are-refused", requirements="BIN-HEADER-TWICE")
@rows(*[refusal.make_row() for refusal in REPEATED_REFUSALS])
def different_inference_headers_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a request with two different inference headers."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("headers.two-inference-headers-are-no-third", requirements="BIN-HEADER-TWICE-SAFE", role=ROLE)
@rows(
    *[
        Row(fault.name.removeprefix("header-twice-"), (fault.build_request(send_values),), fit=fault.fit)
        for fault in (REPEATED_EQUAL, *REPEATED)
    ]
)
def two_inference_headers_are_no_third(target: Target, model: Model, request: WrongRequest) -> str:
    """The server refuses two inference headers, or reads the request with one of the two values."""
    message = request(model)
    both = [value for name, value in message.headers if name == INFERENCE_HEADER]
    reply = target.send(message, fresh=True)
    if is_refused(target, model, reply, advises_status=True):
        return "refused"
    expect(reply).answered()
    alone = {one: target.send(message.with_header(INFERENCE_HEADER, one), fresh=True) for one in dict.fromkeys(both)}
    taken = [value for value, other in alone.items() if _has_same_outputs(reply, other, model)]
    if not taken:
        model.expected(model.fill(VALUES))  # repeats the control request, to check that the model is steady
        one = f"the answer to the request with only the inference header {both[0]}, or only {both[1]}"
        raise expect(reply).unmet(one, f"{reply.status_line} with {_describe_outputs(reply)}")
    return f"read as with {taken[0]} of {both[0]} and {both[1]}"


def _has_same_outputs(reply: Reply, other: Reply, model: Model) -> bool:
    """Say whether two answers have the same outputs; only deterministic outputs need equal elements."""
    names = model.list_comparable_outputs()
    is_alike = _summarize_outputs(reply) == _summarize_outputs(other)
    return is_alike and not find_differing_outputs(other, reply, names, model.noise)


def _summarize_outputs(reply: Reply) -> Any:
    """Return whether a request succeeded, and the outputs of its answer without their elements."""
    return reply.succeeded, [(o.name, o.datatype, o.shape, o.binary, o.array is None) for o in reply.answer.outputs]


def _describe_outputs(reply: Reply) -> str:
    """List the outputs of an answer with their shapes."""
    return ", ".join(f"{output.name} {list(output.shape or ())}" for output in reply.answer.outputs) or "no outputs"
