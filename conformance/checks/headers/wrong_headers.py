"""Requests whose inference header is wrong or repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.deployed_models import require_json, require_no_lookup_table
from conformance.checks.support.refusals import Refusal, expect_refused, make_refusal_rows
from conformance.discovery.control_oracle import find_differing_outputs
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal, has_declined
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.fit import ANY, Fit
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM, Message
from conformance.wire.tensor import Tensor

# --- requests ---------------------------------------------------------------------------------------------------------
# All go to models that would accept them if the fault were ignored: a UINT8 input accepts any number of bytes, also in
# a raw request. The binary bytes are neither JSON white space nor UTF-8, so the JSON can end at one offset only.

InputsBuilder = Callable[[Model], Sequence[Tensor]]

# Faults that deployed models also receive: a few for each requirement.
FITS: Mapping[str, Fit] = {
    **dict.fromkeys(("one-beyond-the-body", "right-in-32-bits", "right-in-64-bits"), ANY),
    "right-as-an-octal-number": ANY,
    **dict.fromkeys(("one-byte-short", "one-byte-of-binary-data"), ANY),
    **dict.fromkeys(("no-header", "no-header-as-json"), ANY),
    **dict.fromkeys(("letters", "empty-header", "minus-the-length"), ANY),
    **dict.fromkeys(("plus-sign", "letters-behind", "fraction"), ANY),
    **dict.fromkeys(("json-alone-one-beyond-the-body", "json-alone-one-byte-short"), JSON_ALONE),
}

VALUES = [200, 201, 202, 203]
BLANKS = [0x20, 0x0A, 0x0D, 0x09]


def _build_good_message(model: Model) -> Message:
    """Return the valid binary request whose inference header other functions change."""
    return model.request(model.fill(VALUES), outputs=model.build_outputs_member()).message()


def _set_header(value: Callable[[Message], int | str]) -> MessageBuilder:
    """Return a builder of the valid request with another value of the inference header."""

    def build_message(model: Model) -> Message:
        message = _build_good_message(model)
        return message.with_header(INFERENCE_HEADER, str(value(message)))

    return build_message


def _set_header_text(value: str) -> MessageBuilder:
    """Return a builder of the valid request with this inference header."""
    return _set_header(lambda _: value)


def _set_header_like_zero(value: Callable[[Message], str]) -> MessageBuilder:
    """Return a builder of the valid request with a header that some servers parse as 0 (a raw request)."""

    def build_message(model: Model) -> Message:
        require_no_lookup_table(model)
        return _set_header(value)(model)

    return build_message


def _write_octal_header(model: Model) -> Message:
    """Return the valid request with a header that exceeds the body unless parsed as octal."""
    message = _build_good_message(model)
    header = f"0{message.json_length:o}"
    if int(header) <= len(message.body):
        raise NotApplicableError(f"{header} is within the request's {len(message.body)} bytes")
    return message.with_header(INFERENCE_HEADER, header)


def _remove_header(message: Message) -> Message:
    """Return the message without its inference header."""
    return message.with_header(INFERENCE_HEADER, None)


def _build_raw_request(header: str | None) -> MessageBuilder:
    """Return a builder of a raw request that is valid except for its inference header."""
    return lambda model: model.raw(bytes(model.sample()[0].to_bytes())).with_header(INFERENCE_HEADER, header)


def _build_json_request(difference: int) -> MessageBuilder:
    """Return a builder of a JSON request whose inference header differs from the correct value by `difference`.

    The request has the media type of binary requests: a server may ignore the inference header of application/json.
    """

    def build_message(model: Model) -> Message:
        require_json(model)
        message = model.request(send="json").message().with_header("Content-Type", OCTET_STREAM)
        return message.with_header(INFERENCE_HEADER, str(len(message.body) + difference))

    return build_message


def _end_json_inside_character(model: Model) -> Message:
    """Return a request whose inference header ends in the middle of a character."""
    message = model.request(model.fill(VALUES), request_id="é猫").message()
    return message.with_header(INFERENCE_HEADER, str(message.body.index("猫".encode()) + 1))


def _build_refusal(
    requirement: str,
    fault: str,
    message: MessageBuilder,
    role: str = "identity_uint8",
    tensors: InputsBuilder | None = None,
) -> Refusal:
    """Return a `Refusal`; deployed models also receive its request if `FITS` contains the fault."""
    return Refusal(fault, requirement, role, message, tensors=tensors, fit=FITS.get(fault))


def _make_valid_inputs(model: Model) -> Sequence[Tensor]:
    """Return the inputs of the valid request."""
    return model.fill(VALUES)


def _make_blank_inputs(model: Model) -> Sequence[Tensor]:
    """Return an input that consists of JSON white space."""
    return [model.tensor(BLANKS)]


def _sample_inputs(model: Model) -> Sequence[Tensor]:
    """Return the sample inputs of a model."""
    return model.sample()


MISSING_HEADER: tuple[tuple[str, MessageBuilder, str, InputsBuilder], ...] = (
    ("no-header", lambda model: _remove_header(_build_good_message(model)), "identity_uint8", _make_valid_inputs),
    (
        "no-header-as-json",
        lambda model: _remove_header(_build_good_message(model)).with_header("Content-Type", JSON),
        "identity_uint8",
        _make_valid_inputs,
    ),
    (
        "no-header-before-blank-bytes",
        lambda model: _remove_header(model.request(_make_blank_inputs(model)).message()),
        "identity_uint8",
        _make_blank_inputs,
    ),
    (
        "no-header-with-one-binary-input",
        lambda model: _remove_header(model.request(send={"IN_BOOL"}).message()),
        "multi",
        _sample_inputs,
    ),
    ("raw-body-without-header", _build_raw_request(None), "raw_fixed", _sample_inputs),
)
BEYOND_BODY: tuple[tuple[str, MessageBuilder], ...] = (
    ("one-beyond-the-body", _set_header(lambda message: len(message.body) + 1)),
    ("twice-the-body", _set_header(lambda message: 2 * len(message.body))),
    ("2-to-the-31", _set_header_text(str(2**31))),
    ("right-in-32-bits", _set_header(lambda message: message.json_length + 2**32)),
    ("2-to-the-63", _set_header_text(str(2**63))),
    ("right-in-64-bits", _set_header(lambda message: message.json_length + 2**64)),
    ("right-as-an-octal-number", _write_octal_header),
)
NOT_NUMBERS: tuple[tuple[str, MessageBuilder, str, InputsBuilder], ...] = (
    ("letters", _set_header_like_zero(lambda _: "abc"), "identity_uint8", _make_valid_inputs),
    ("empty-header", _set_header_like_zero(lambda _: ""), "identity_uint8", _make_valid_inputs),
    ("not-a-number", _set_header_text("NaN"), "identity_uint8", _make_valid_inputs),
    ("raw-body-under-letters", _build_raw_request("abc"), "raw_fixed", _sample_inputs),
    ("raw-body-under-empty-header", _build_raw_request(""), "raw_fixed", _sample_inputs),
)
CUTTING_JSON: tuple[tuple[str, MessageBuilder], ...] = (
    ("one-byte-short", _set_header(lambda message: message.json_length - 1)),
    ("half-of-the-json", _set_header(lambda message: message.json_length // 2)),
    ("one-byte-of-json", _set_header_text("1")),
    ("inside-a-character", _end_json_inside_character),
    ("one-byte-of-binary-data", _set_header(lambda message: message.json_length + 1)),
    ("the-whole-body", _set_header(lambda message: len(message.body))),
)
WITHOUT_BINARY = (
    ("json-alone-one-beyond-the-body", _build_json_request(1)),
    ("json-alone-far-beyond-the-body", _build_json_request(1000)),
    ("json-alone-right-in-32-bits", _build_json_request(2**32)),
    ("json-alone-right-in-64-bits", _build_json_request(2**64)),
    ("json-alone-one-byte-short", _build_json_request(-1)),
)
ODD_SPELLINGS = (
    ("minus-one", _set_header_text("-1")),
    ("minus-the-length", _set_header_like_zero(lambda message: str(-message.json_length))),
    ("negative-and-right-in-32-bits", _set_header(lambda message: message.json_length - 2**32)),
    ("plus-sign", _set_header(lambda message: f"+{message.json_length}")),
    ("letters-behind", _set_header(lambda message: f"{message.json_length}abc")),
    ("hexadecimal", _set_header(lambda message: hex(message.json_length))),
    ("fraction", _set_header(lambda message: f"{message.json_length}.5")),
    ("underscore", _set_header(lambda message: f"{message.json_length // 10}_{message.json_length % 10}")),
)

LENGTH_REFUSALS = (
    *[_build_refusal("BIN-HEADER-TOO-LONG", *entry, tensors=_make_valid_inputs) for entry in BEYOND_BODY],
    *[_build_refusal("BIN-HEADER-WRONG", *entry, tensors=_make_valid_inputs) for entry in CUTTING_JSON],
)
MISSING_REFUSALS = tuple(_build_refusal("BIN-HEADER-MISSING", *entry) for entry in MISSING_HEADER)
SPELLING_REFUSALS = (
    *[_build_refusal("BIN-HEADER-SPELLING", *entry) for entry in NOT_NUMBERS],
    *[_build_refusal("BIN-HEADER-SPELLING", *entry, tensors=_make_valid_inputs) for entry in ODD_SPELLINGS],
)
JSON_ALONE_REFUSALS = tuple(
    _build_refusal("BIN-HEADER-WRONG-ON-JSON", *entry, "identity_int32", _sample_inputs) for entry in WITHOUT_BINARY
)


# --- refusals ----------------------------------------------------------------------------------------------------


@check(
    "headers.impossible-length-is-refused",
    answers=("BIN-HEADER-TOO-LONG-SAFE", "BIN-HEADER-TOO-LONG", "BIN-HEADER-WRONG-SAFE", "BIN-HEADER-WRONG"),
)
@rows(*make_refusal_rows(LENGTH_REFUSALS))
def impossible_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads a binary request whose inference header does not mark the end of its JSON."""
    expect_refused(target, model, refusal)


# The document requires the header of the sender only: a server that finds the binary data may answer correctly.
@check(
    "headers.request-without-a-length-is-refused-or-right", answers=("BIN-HEADER-MISSING-SAFE", "BIN-HEADER-MISSING")
)
@rows(*make_refusal_rows(MISSING_REFUSALS))
def request_without_a_length_is_refused_or_right(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads a binary request without the inference header."""
    expect_refused(target, model, refusal)


@check(
    "headers.wrong-length-of-json-alone-is-refused-or-right",
    answers=("BIN-HEADER-WRONG-ON-JSON-SAFE", "BIN-HEADER-WRONG-ON-JSON"),
)
@rows(*make_refusal_rows(JSON_ALONE_REFUSALS))
def wrong_length_of_json_alone_is_refused_or_right(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads JSON alone with a wrong inference header."""
    expect_refused(target, model, refusal)


@check("headers.odd-spelling-of-the-length-is-refused", answers=("BIN-HEADER-SPELLING-SAFE", "BIN-HEADER-SPELLING"))
@rows(*make_refusal_rows(SPELLING_REFUSALS))
def odd_spelling_of_the_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server never misreads a request whose inference header is not plain digits."""
    expect_refused(target, model, refusal)


# --- two inference headers --------------------------------------------------------------------------------------------

ROLE = "identity_uint8"
HeaderPair = Callable[[Message], tuple[int, int]]

EQUAL: dict[str, HeaderPair] = {"equal": lambda message: (message.json_length, message.json_length)}
DIFFERENT: dict[str, HeaderPair] = {
    "right-then-0": lambda message: (message.json_length, 0),
    "0-then-right": lambda message: (0, message.json_length),
    "right-then-one-more": lambda message: (message.json_length, message.json_length + 1),
    "whole-body-then-right": lambda message: (len(message.body), message.json_length),
}
# Rows that also run on deployed models. No header has the value 0, with which JSON may be read as table indices.
REPEATED_FITS: Mapping[str, Fit] = dict.fromkeys(("equal", "right-then-one-more", "whole-body-then-right"), ANY)


def _repeat_header(message: Message, *values: int) -> Message:
    """Return the message with one inference header for each value."""
    plain = message.with_header(INFERENCE_HEADER, None)
    return replace(plain, headers=(*plain.headers, *[(INFERENCE_HEADER, str(value)) for value in values]))


def _send_header_twice(values: HeaderPair) -> MessageBuilder:
    """Return a builder of the valid request with two inference headers."""
    return lambda model: _repeat_header(_build_good_message(model), *values(_build_good_message(model)))


REPEATED_REFUSALS: tuple[Refusal, ...] = tuple(
    Refusal(f"header-twice-{name}", "BIN-HEADER-TWICE", ROLE, _send_header_twice(values), fit=REPEATED_FITS.get(name))
    for name, values in DIFFERENT.items()
)
REFUSALS = (*REPEATED_REFUSALS, *LENGTH_REFUSALS, *MISSING_REFUSALS, *SPELLING_REFUSALS, *JSON_ALONE_REFUSALS)


@check("headers.different-inference-headers-are-refused", answers="BIN-HEADER-TWICE")
@rows(*[refusal.make_row() for refusal in REPEATED_REFUSALS])
def different_inference_headers_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a request with two different inference headers."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("headers.two-inference-headers-are-no-third", answers="BIN-HEADER-TWICE-SAFE", role=ROLE)
@rows(*[Row(name, (values,), fit=REPEATED_FITS.get(name)) for name, values in {**EQUAL, **DIFFERENT}.items()])
def two_inference_headers_are_no_third(target: Target, model: Model, values: HeaderPair) -> str:
    """The server refuses two inference headers, or reads the request with one of the two values."""
    message = _build_good_message(model)
    both = values(message)
    reply = target.send(_repeat_header(message, *both), fresh=True)
    if has_declined(target, model, reply):
        return "refused"
    expect(reply).answered()
    alone = {value: target.send(_repeat_header(message, value), fresh=True) for value in dict.fromkeys(both)}
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
