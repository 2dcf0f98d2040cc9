"""Binary requests whose inference header is wrong, each by one fault.

All go to models that would take them if the fault went unseen: an input of UINT8 takes any number of bytes, also as a
raw request, and the binary bytes are neither JSON white space nor UTF-8, so that no place but one ends the JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.checks.support.deployed_models import require_json, spare_tables
from conformance.checks.support.refusals import Refusal
from conformance.expect.unmet import NotApplicableError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.fit import ANY, Fit
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.wire.request import INFERENCE_HEADER, JSON, OCTET_STREAM, Message
from conformance.wire.tensor import Tensor

Carried = Callable[[Model], Sequence[Tensor]]

# Those that go to deployed models, too: a few of each requirement.
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
    return model.request(model.fill(VALUES), outputs=model.listed()).message()


def _says(value: Callable[[Message], int | str]) -> MessageBuilder:
    """Return what makes the good request with another value in its header."""

    def make(model: Model) -> Message:
        message = _good(model)
        return message.with_header(INFERENCE_HEADER, str(value(message)))

    return make


def _text(value: str) -> MessageBuilder:
    return _says(lambda _: value)


def _like_zero(value: Callable[[Message], str]) -> MessageBuilder:
    """Return what makes the good request under a header that reads as 0 to some servers, for which it is a raw one."""

    def make(model: Model) -> Message:
        spare_tables(model)
        return _says(value)(model)

    return make


def _as_octal(model: Model) -> Message:
    """Return the good request under a header that exceeds the body, and is right to whoever reads it as C does."""
    message = _good(model)
    header = f"0{message.json_length:o}"
    if int(header) <= len(message.body):
        raise NotApplicableError(f"{header} is within the request's {len(message.body)} bytes")
    return message.with_header(INFERENCE_HEADER, header)


def _headless(message: Message) -> Message:
    return message.with_header(INFERENCE_HEADER, None)


def _raw(header: str | None) -> MessageBuilder:
    """Return what makes a good raw request, but with another header than 0."""
    return lambda model: model.raw(bytes(model.sample()[0].to_bytes())).with_header(INFERENCE_HEADER, header)


def _json_alone(by: int) -> MessageBuilder:
    """Return what makes a good request of JSON alone with a header that is so many bytes off the length of its body.

    It is of the type of binary requests: a server may tell JSON by its type, and not look at the header then.
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
REFUSALS: tuple[Refusal, ...] = (*LENGTH_REFUSALS, *MISSING_REFUSALS, *SPELLING_REFUSALS, *JSON_ALONE_REFUSALS)
