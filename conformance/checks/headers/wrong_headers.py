"""Requests whose inference header is wrong, or comes twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.deployed_models import require_json, spare_tables
from conformance.checks.support.refusals import Refusal, expect_refused, make_refusal_rows
from conformance.discovery.control_oracle import as_tensor
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_refusal, is_refused
from conformance.expect.unmet import NotApplicableError, is_met
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

Carried = Callable[[Model], Sequence[Tensor]]

# Faults that also go to deployed models: a few for each requirement.
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


def _good(model: Model) -> Message:
    return model.request(model.fill(VALUES), outputs=model.build_outputs_member()).message()


def _says(value: Callable[[Message], int | str]) -> MessageBuilder:
    """Return a builder of the good request with another value of the inference header."""

    def make(model: Model) -> Message:
        message = _good(model)
        return message.with_header(INFERENCE_HEADER, str(value(message)))

    return make


def _text(value: str) -> MessageBuilder:
    return _says(lambda _: value)


def _like_zero(value: Callable[[Message], str]) -> MessageBuilder:
    """Return a builder of the good request with a header that some servers parse as 0, which means a raw request."""

    def make(model: Model) -> Message:
        spare_tables(model)
        return _says(value)(model)

    return make


def _as_octal(model: Model) -> Message:
    """Return the good request with a header that exceeds the body, but is right if parsed as octal, as in C."""
    message = _good(model)
    header = f"0{message.json_length:o}"
    if int(header) <= len(message.body):
        raise NotApplicableError(f"{header} is within the request's {len(message.body)} bytes")
    return message.with_header(INFERENCE_HEADER, header)


def _headless(message: Message) -> Message:
    return message.with_header(INFERENCE_HEADER, None)


def _raw(header: str | None) -> MessageBuilder:
    """Return a builder of a raw request that is good except for its inference header."""
    return lambda model: model.raw(bytes(model.sample()[0].to_bytes())).with_header(INFERENCE_HEADER, header)


def _json_alone(by: int) -> MessageBuilder:
    """Return a builder of a JSON request with an inference header that differs by `by` from the length of its body.

    It has the media type of binary requests: a server may ignore the inference header of application/json.
    """

    def make(model: Model) -> Message:
        require_json(model)
        message = model.request(send="json").message().with_header("Content-Type", OCTET_STREAM)
        return message.with_header(INFERENCE_HEADER, str(len(message.body) + by))

    return make


def _inside_a_character(model: Model) -> Message:
    message = model.request(model.fill(VALUES), request_id="é猫").message()
    return message.with_header(INFERENCE_HEADER, str(message.body.index("猫".encode()) + 1))


def _refusal(
    requirement: str, fault: str, message: MessageBuilder, role: str = "identity_uint8", tensors: Carried | None = None
) -> Refusal:
    return Refusal(fault, requirement, role, message, tensors=tensors, fit=FITS.get(fault))


def _values(model: Model) -> Sequence[Tensor]:
    return model.fill(VALUES)


def _blanks(model: Model) -> Sequence[Tensor]:
    return [model.tensor(BLANKS)]


def _sample(model: Model) -> Sequence[Tensor]:
    return model.sample()


MISSING_HEADER: tuple[tuple[str, MessageBuilder, str, Carried], ...] = (
    ("no-header", lambda model: _headless(_good(model)), "identity_uint8", _values),
    (
        "no-header-as-json",
        lambda model: _headless(_good(model)).with_header("Content-Type", JSON),
        "identity_uint8",
        _values,
    ),
    (
        "no-header-before-blank-bytes",
        lambda model: _headless(model.request(_blanks(model)).message()),
        "identity_uint8",
        _blanks,
    ),
    (
        "no-header-with-one-binary-input",
        lambda model: _headless(model.request(send={"IN_BOOL"}).message()),
        "multi",
        _sample,
    ),
    ("raw-body-without-header", _raw(None), "raw_fixed", _sample),
)
BEYOND_BODY: tuple[tuple[str, MessageBuilder], ...] = (
    ("one-beyond-the-body", _says(lambda message: len(message.body) + 1)),
    ("twice-the-body", _says(lambda message: 2 * len(message.body))),
    ("2-to-the-31", _text(str(2**31))),
    ("right-in-32-bits", _says(lambda message: message.json_length + 2**32)),
    ("2-to-the-63", _text(str(2**63))),
    ("right-in-64-bits", _says(lambda message: message.json_length + 2**64)),
    ("right-as-an-octal-number", _as_octal),
)
NOT_NUMBERS: tuple[tuple[str, MessageBuilder, str, Carried], ...] = (
    ("letters", _like_zero(lambda _: "abc"), "identity_uint8", _values),
    ("empty-header", _like_zero(lambda _: ""), "identity_uint8", _values),
    ("not-a-number", _text("NaN"), "identity_uint8", _values),
    ("raw-body-under-letters", _raw("abc"), "raw_fixed", _sample),
    ("raw-body-under-empty-header", _raw(""), "raw_fixed", _sample),
)
CUTTING_JSON: tuple[tuple[str, MessageBuilder], ...] = (
    ("one-byte-short", _says(lambda message: message.json_length - 1)),
    ("half-of-the-json", _says(lambda message: message.json_length // 2)),
    ("one-byte-of-json", _text("1")),
    ("inside-a-character", _inside_a_character),
    ("one-byte-of-binary-data", _says(lambda message: message.json_length + 1)),
    ("the-whole-body", _says(lambda message: len(message.body))),
)
WITHOUT_BINARY = (
    ("json-alone-one-beyond-the-body", _json_alone(1)),
    ("json-alone-far-beyond-the-body", _json_alone(1000)),
    ("json-alone-right-in-32-bits", _json_alone(2**32)),
    ("json-alone-right-in-64-bits", _json_alone(2**64)),
    ("json-alone-one-byte-short", _json_alone(-1)),
)
ODD_SPELLINGS = (
    ("minus-one", _text("-1")),
    ("minus-the-length", _like_zero(lambda message: str(-message.json_length))),
    ("negative-and-right-in-32-bits", _says(lambda message: message.json_length - 2**32)),
    ("plus-sign", _says(lambda message: f"+{message.json_length}")),
    ("letters-behind", _says(lambda message: f"{message.json_length}abc")),
    ("hexadecimal", _says(lambda message: hex(message.json_length))),
    ("fraction", _says(lambda message: f"{message.json_length}.5")),
    ("underscore", _says(lambda message: f"{message.json_length // 10}_{message.json_length % 10}")),
)

LENGTH_REFUSALS = (
    *[_refusal("BIN-HEADER-TOO-LONG", *entry) for entry in BEYOND_BODY],
    *[_refusal("BIN-HEADER-WRONG", *entry) for entry in CUTTING_JSON],
)
MISSING_REFUSALS = tuple(_refusal("BIN-HEADER-MISSING", *entry) for entry in MISSING_HEADER)
SPELLING_REFUSALS = (
    *[_refusal("BIN-HEADER-SPELLING", *entry) for entry in NOT_NUMBERS],
    *[_refusal("BIN-HEADER-SPELLING", *entry, tensors=_values) for entry in ODD_SPELLINGS],
)
JSON_ALONE_REFUSALS = tuple(
    _refusal("BIN-HEADER-WRONG-ON-JSON", *entry, "identity_int32", _sample) for entry in WITHOUT_BINARY
)


# --- refusals ----------------------------------------------------------------------------------------------------


@check(
    "headers.impossible-length-is-refused", answers=tuple({refusal.requirement: None for refusal in LENGTH_REFUSALS})
)
@rows(*make_refusal_rows(LENGTH_REFUSALS))
def impossible_length_is_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a binary request whose inference header does not mark the end of its JSON."""
    expect_refused(target, model, refusal)


# The document requires the header of the sender only: a server that finds the binary data may answer right.
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
Values = Callable[[Message], tuple[int, int]]

EQUAL: dict[str, Values] = {"equal": lambda message: (message.json_length, message.json_length)}
DIFFERENT: dict[str, Values] = {
    "right-then-0": lambda message: (message.json_length, 0),
    "0-then-right": lambda message: (0, message.json_length),
    "right-then-one-more": lambda message: (message.json_length, message.json_length + 1),
    "whole-body-then-right": lambda message: (len(message.body), message.json_length),
}
# Rows that also run on deployed models. None has the value 0, with which JSON may be read as table indices.
REPEATED_FITS: Mapping[str, Fit] = dict.fromkeys(("equal", "right-then-one-more", "whole-body-then-right"), ANY)


def _saying(message: Message, *values: int) -> Message:
    """Return the message with one inference header for each value."""
    plain = message.with_header(INFERENCE_HEADER, None)
    return replace(plain, headers=(*plain.headers, *[(INFERENCE_HEADER, str(value)) for value in values]))


def _twice(values: Values) -> MessageBuilder:
    return lambda model: _saying(_good(model), *values(_good(model)))


REPEATED_REFUSALS: tuple[Refusal, ...] = tuple(
    Refusal(f"header-twice-{name}", "BIN-HEADER-TWICE", ROLE, _twice(values), fit=REPEATED_FITS.get(name))
    for name, values in DIFFERENT.items()
)
REFUSALS = (*REPEATED_REFUSALS, *LENGTH_REFUSALS, *MISSING_REFUSALS, *SPELLING_REFUSALS, *JSON_ALONE_REFUSALS)


@check("headers.different-inference-headers-are-refused", answers="BIN-HEADER-TWICE")
@rows(*[refusal.row() for refusal in REPEATED_REFUSALS])
def different_inference_headers_are_refused(target: Target, model: Model, refusal: Refusal) -> None:
    """The server refuses a request with two different inference headers."""
    expect_refusal(target, model, refusal.message(model), refusal.described)


@check("headers.two-inference-headers-are-no-third", answers="BIN-HEADER-TWICE-SAFE", role=ROLE)
@rows(*[Row(name, (values,), fit=REPEATED_FITS.get(name)) for name, values in {**EQUAL, **DIFFERENT}.items()])
def two_inference_headers_are_no_third(target: Target, model: Model, values: Values) -> str:
    """The server refuses two inference headers, or reads the request by one of the two."""
    message = _good(model)
    both = values(message)
    reply = target.send(_saying(message, *both), fresh=True)
    if is_refused(target, model, reply):
        return "refused"
    expect(reply).answered()
    alone = {value: target.send(_saying(message, value), fresh=True) for value in dict.fromkeys(both)}
    steady = model.list_comparable_outputs()
    taken = [value for value, other in alone.items() if _is_like(reply, other, steady)]
    if not taken:
        model.expected(model.fill(VALUES))  # repeats the control request, to check that the model is steady
        one = f"the answer that the request gets with {both[0]} alone, or with {both[1]}"
        raise expect(reply).unmet(one, f"{reply.status_line} with {_shown(reply)}")
    return f"read as with {taken[0]} of {both[0]} and {both[1]}"


def _is_like(reply: Reply, other: Reply, steady: Sequence[str]) -> bool:
    """Say whether two answers have the same outputs; elements are compared only for deterministic outputs."""
    tensors = [tensor for output in other.answer.outputs if (tensor := as_tensor(output)) and output.name in steady]
    near = [replace(tensor, is_near=True) for tensor in tensors]
    return _outline(reply) == _outline(other) and is_met(lambda: expect(reply).tensors(near))


def _outline(reply: Reply) -> Any:
    """Return the success of an answer and its outputs without their elements."""
    return reply.succeeded, [(o.name, o.datatype, o.shape, o.binary, o.array is None) for o in reply.answer.outputs]


def _shown(reply: Reply) -> str:
    return ", ".join(f"{output.name} {list(output.shape or ())}" for output in reply.answer.outputs) or "no outputs"
