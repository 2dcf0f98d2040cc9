"""Headers of requests: the inference header, which states the length of the JSON, and Content-Type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

from conformance.checks.headers.wrong_headers import VALUES
from conformance.checks.support.changed_tensors import fill_floats_with_lookalike
from conformance.checks.support.controls import is_binary_misread, is_binary_refused
from conformance.checks.support.deployed_models import require_json
from conformance.checks.support.refusals import require_client_served
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import attribute_to, block_if, is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, claim, rows, rows_for_role
from conformance.spec.extensions import BINARY, RAW
from conformance.spec.fit import ANY, RAW_FLOATS, Fit
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.transport.any_target import AnyTarget
from conformance.transport.client_names import COMMON_NAMES, OWN_CLIENT, ClientName
from conformance.transport.target import Target
from conformance.wire.request import ABSENT, INFERENCE_HEADER, JSON, OCTET_STREAM, Form, Message
from conformance.wire.tensor import Tensor

MULTIBYTE_TEXT = "é猫"  # two characters, five bytes
# Characters of two, three and four bytes: they reveal servers that count characters, UTF-16 units or escapes.
LETTERS: Mapping[str, str] = {"two-bytes": "éß", "three-bytes": "猫犬", "four-bytes": "😀🐈", "every-size": "aé猫😀z"}


DocumentWriter = Callable[[Mapping[str, Any]], bytes]


# --- requests: where the JSON ends -------------------------------------------------------------------------------


def _format_json(document: Mapping[str, Any], **options: Any) -> bytes:
    """Return a document as JSON with unescaped characters."""
    return json.dumps(document, ensure_ascii=False, **options).encode()


def _add_id(letters: str) -> DocumentWriter:
    """Return a function that writes a document with an id."""
    return lambda document: _format_json({"id": letters, **document})


SPELLINGS: Mapping[str, DocumentWriter] = {
    "compact": lambda document: _format_json(document, separators=(",", ":")),
    "characters-beyond-ascii": lambda document: _format_json({"id": MULTIBYTE_TEXT, **document}),
    **{f"id-of-{size}": _add_id(letters) for size, letters in LETTERS.items()},
    "escaped-characters": lambda document: json.dumps({"id": MULTIBYTE_TEXT, **document}).encode(),
    "indented": lambda document: _format_json(document, indent=2),
    "line-end-after-it": lambda document: _format_json(document) + b"\n",
    "blanks-around-it": lambda document: b"\r\n\t " + _format_json(document) + b" \t\r\n",
    "64-KiB-of-blanks": lambda document: _format_json(document)[:-1] + b" " * 65536 + b"}",
}
_PLAINLY_WRONG = "the binary data after JSON in the usual spelling are also wrong"
FOR_ANY_MODEL = ("id-of-every-size", "escaped-characters", "blanks-around-it", "64-KiB-of-blanks")


@check("headers.request-json-is-as-long-as-the-header-says", requirements="BIN-HEADER-I", role="identity_uint8")
@rows(*[Row(name, (spell,), fit=ANY if name in FOR_ANY_MODEL else None) for name, spell in SPELLINGS.items()])
def request_json_is_as_long_as_the_header_says(target: Target, model: Model, spell: DocumentWriter) -> None:
    """The server reads binary data from where the inference header says that the JSON ends."""
    tensors = model.fill(VALUES)
    request = model.request(tensors, outputs=model.build_outputs_member())
    message = request.message().with_json(spell(request.build_sent_document()))
    with block_if(lambda: is_binary_misread(target, model, tensors), _PLAINLY_WRONG):
        expect(target.infer(message)).tensors(model.expected(tensors))


@check("headers.request-header-counts-json-data-in-bytes", requirements="BIN-HEADER-I", role="multi")
@rows(
    ("", [MULTIBYTE_TEXT, "ß" * 50, "a"]), *[(size, [letters * 7, "a", letters]) for size, letters in LETTERS.items()]
)
def request_header_counts_json_data_in_bytes(target: Target, multi: Model, strings: Sequence[str]) -> None:
    """The server reads the inference header as a number of bytes, not of characters."""
    with block_if(
        lambda: not is_met(lambda: _expect_right_after_strings(target, multi, ["a", "b"])), _WRONG_AFTER_ASCII
    ):
        _expect_right_after_strings(target, multi, strings)


@check("headers.leading-zeros-are-decimal", requirements="BIN-HEADER-I", role="identity_uint8")
@rows(Row("one", (1,), fit=ANY), ("two", 2), ("sixteen", 16))
def leading_zeros_are_decimal(target: Target, model: Model, zeros: int) -> str:
    """The server reads an inference header with leading zeros as decimal, or refuses it."""
    tensors = model.fill(VALUES)
    request = model.request(tensors, outputs=model.build_outputs_member())
    message = request.message().with_json(_pad_to_octal_length(_format_json(request.build_sent_document())))
    padded = message.with_header(INFERENCE_HEADER, "0" * zeros + str(message.json_length))
    reply = target.send(padded, fresh=True)
    if not reply.succeeded:
        expect(reply).refused()
        return "refused"
    with block_if(lambda: is_binary_misread(target, model, tensors), _PLAINLY_WRONG):
        expect(reply).tensors(model.expected(tensors))
    return "taken for the decimal number"


def _pad_to_octal_length(head: bytes) -> bytes:
    """Pad JSON with blanks until its length has no digit 8 or 9 and, read as octal, still covers the JSON."""
    lengths = (length for length in count(len(head)) if not set(str(length)) & {"8", "9"})
    return head.ljust(next(length for length in lengths if int(str(length), 8) >= len(head)))


def _expect_right_after_strings(target: Target, multi: Model, strings: Sequence[str]) -> None:
    """Expect the correct BOOL elements if their binary data follow JSON with these strings."""
    sample = {tensor.name: tensor for tensor in multi.sample()}
    sample["IN_BYTES"] = Tensor.from_values("IN_BYTES", "BYTES", strings)
    sample["IN_BOOL"] = Tensor.from_values("IN_BOOL", "BOOL", [True, False, True, True, False])
    tensors = tuple(sample.values())
    reply = target.infer(multi.request(tensors, send={"IN_BOOL"}))
    expect(reply).tensors([tensor for tensor in multi.expected(tensors) if tensor.name == "OUT_BOOL"])


_WRONG_AFTER_ASCII = "the tensors after ASCII strings are also wrong"


HEADER_SPELLINGS = (
    "inference-header-content-length",
    "INFERENCE-HEADER-CONTENT-LENGTH",
    "iNfErEnCe-HeAdEr-CoNtEnT-lEnGtH",
)


@check("headers.inference-header-in-any-case", requirements="BIN-HEADER-CASE", role="identity_uint8")
@rows(
    *[
        Row(
            name,
            (name, lambda m: m.request(outputs=m.build_outputs_member()).message()),
            fit=None if name == HEADER_SPELLINGS[2] else ANY,
        )
        for name in HEADER_SPELLINGS
    ],
    *[
        Row(f"{name}-of-a-raw-request", (name, lambda model: model.raw(bytes(VALUES))), needs=RAW)
        for name in HEADER_SPELLINGS
    ],
)
def inference_header_in_any_case(target: Target, model: Model, name: str, build_message: MessageBuilder) -> None:
    """The server recognises the inference header in any mix of upper and lower case."""
    message = build_message(model)
    respelled = message.with_header(INFERENCE_HEADER, None).with_header(name, str(message.json_length))
    reply = target.infer(respelled)
    with block_if(
        lambda: not target.infer(message).succeeded,
        "the request with the header in its usual spelling is not answered either",
    ):
        expect(reply).answered()


@check("headers.json-request-needs-no-inference-header", requirements="BIN-HEADER-OPTIONAL", role="identity_int32")
@rows(
    Row("nothing-asked", (None, ABSENT), fit=JSON_ALONE),
    ("json-outputs", "json", ABSENT),
    Row("binary-outputs", ("binary", ABSENT), fit=JSON_ALONE),
    ("all-outputs-binary", None, True),
)
def json_request_needs_no_inference_header(target: Target, model: Model, want: Any, all_binary: Any) -> None:
    """The server accepts JSON alone without the inference header."""
    require_json(model)
    expect(target.infer(model.request(send="json", want=want, binary_data_output=all_binary))).answered()


@check("headers.json-request-may-have-inference-header", requirements="BIN-HEADER-ON-JSON-I", role="identity_int32")
@rows(
    Row("as-json", (JSON, None), fit=JSON_ALONE),
    Row("as-octet-stream", (OCTET_STREAM, None), fit=JSON_ALONE),
    ("binary-outputs", JSON, "binary"),
)
def json_request_may_have_inference_header(target: Target, model: Model, content_type: str, want: Any) -> None:
    """The server accepts JSON alone with an inference header that equals the length of the body."""
    require_json(model)
    message = model.request(send="json", want=want).message()
    headed = message.with_header("Content-Type", content_type).with_header(INFERENCE_HEADER, str(len(message.body)))
    expect(target.infer(headed)).answered()


# --- requests: the content type ----------------------------------------------------------------------------------


@check("headers.octet-stream-request-is-accepted", requirements="BIN-CONTENT-TYPE-I", role="identity_int32")
@rows(
    ("json-outputs", None),
    Row("binary-outputs", ("binary",), fit=ANY),
    Row("two-inputs", (None,), role="documented_binary"),
)
def octet_stream_request_is_accepted(target: Target, model: Model, want: Any) -> None:
    """The server accepts a binary request with Content-Type application/octet-stream."""
    message = model.request(want=want).message()

    def is_refused_as_json() -> bool:
        """Say whether a deployed model does not answer the same request with Content-Type application/json."""
        return model.is_deployed and not target.infer(message.with_header("Content-Type", JSON)).succeeded

    with block_if(is_refused_as_json, "the same request as application/json is not answered either"):
        expect(target.infer(message)).answered()


@check(
    "headers.binary-request-of-another-type-is-accepted",
    requirements="BIN-CONTENT-TYPE-OTHER",
    role="identity_int32",
    fit=ANY,
)
@rows(("as-json", JSON), ("without-content-type", None))
def binary_request_of_another_type_is_accepted(target: Target, model: Model, content_type: str | None) -> None:
    """The server accepts a binary request with Content-Type application/json, or without any."""
    message = model.request(outputs=model.build_outputs_member()).message()
    with block_if(
        lambda: is_binary_refused(target, model),
        "the same request with its correct Content-Type is not answered either",
    ):
        expect(target.infer(message.with_header("Content-Type", content_type))).answered()


# RFC 8259, 11: "Adding one [charset] really has no effect on compliant recipients."
@check("headers.json-request-may-state-a-charset", requirements="OIP-CONTENT-TYPE-JSON", role="identity_int32")
@rows(
    Row("charset", ("application/json; charset=utf-8",), fit=JSON_ALONE),
    ("charset-in-capitals", "application/json;charset=UTF-8"),
    ("type-in-capitals", "Application/JSON"),
)
def json_request_may_state_a_charset(target: Target, model: Model, content_type: str) -> None:
    """The server accepts a JSON request whose Content-Type has a charset or capital letters."""
    require_json(model)
    message = model.request(send="json").message()
    with block_if(
        lambda: not target.infer(message).succeeded, "the same request as plain application/json is not answered either"
    ):
        expect(target.infer(message.with_header("Content-Type", content_type))).answered()


@claim("headers.every-client-is-answered-right", requirements="OIP-CLIENT-NAME")
@rows(
    *rows_for_role(
        "identity_int32",
        *[Row(name, ([client], "json")) for name, client in COMMON_NAMES.items()],
        *[Row(f"{name}-binary", ([client], "binary"), needs=BINARY) for name, client in COMMON_NAMES.items()],
    ),
    Row("deployed", (list(COMMON_NAMES.values()), "json"), fit=JSON_ALONE),
    Row("deployed-binary", (list(COMMON_NAMES.values()), "binary"), needs=BINARY, fit=ANY),
)
def every_client_is_answered_right(target: AnyTarget, model: Model, clients: Sequence[ClientName], form: Form) -> None:
    """The server answers a request correctly under the `User-Agent` of any common client."""
    if form == "json":
        require_json(model)
    tensors = model.sample()
    message = target.message(model.request(tensors, send=form, outputs=model.build_outputs_member()))

    def expect_answer_to_client(client: ClientName) -> None:
        """Expect the correct outputs for the request with the `User-Agent` of a client."""
        reply = target.send(client.add_user_agent(message), fresh=True)
        require_client_served(target, reply, message)
        expect(reply).tensors(model.expected(tensors), through_json=target.through_json)

    def is_name_irrelevant(client: ClientName) -> bool:
        """Return whether the outcomes of requests that are cut alike do not depend on the name alone."""
        alike = (OWN_CLIENT.pad(client), client.pad(OWN_CLIENT))
        return [is_met(partial(expect_answer_to_client, one)) for one in alike * 2] != [True, False] * 2

    for client in clients:
        reason = "the answers to requests of the same length under both names do not depend on the `User-Agent`"
        with block_if(partial(is_name_irrelevant, client), reason), attribute_to("OIP-CLIENT-NAME"):
            expect_answer_to_client(client)


# --- unrelated content types ------------------------------------------------------------------------------------------
# Command-line clients send the media type of forms by default, and some libraries send none. No document specifies the
# media type of a request: a server may check or ignore it, but it may not misread the body.

OTHER_CONTENT_TYPES: Mapping[str, str | None] = {
    "form": "application/x-www-form-urlencoded",
    "multipart-form": "multipart/form-data; boundary=0123456789",
    "text": "text/plain; charset=utf-8",
    "none": None,
}
CONTENT_TYPE_ROWS_FOR_ANY_MODEL = ("json-as-multipart-form", "binary-as-form", "raw-as-form", "json-as-none")
FORM_DATA_VALUES = [123, 34, 38, 61, 200]  # `{"&=` and a byte that is not UTF-8


def _build_json_request(model: Model) -> Message:
    """Return a JSON request with elements that are special characters of HTML form data."""
    require_json(model)
    return model.request(model.fill(FORM_DATA_VALUES), send="json").message()


def _build_raw_request(model: Model) -> Message:
    """Return a raw request with elements that are special characters of HTML form data."""
    return model.raw(bytes(_make_form_data_inputs(model, is_raw=True)[0].to_bytes()))


def _make_form_data_inputs(model: Model, *, is_raw: bool) -> Sequence[Tensor]:
    """Return inputs with the bytes that separate the fields of HTML form data."""
    if is_raw and model.is_deployed:
        return fill_floats_with_lookalike(model.sample(), "ampersands")
    return model.fill(FORM_DATA_VALUES)


FORMS: Mapping[str, tuple[MessageBuilder, tuple[str, ...], Fit | None]] = {
    "json": (_build_json_request, (), JSON_ALONE),
    "binary": (
        lambda model: model.request(model.fill(FORM_DATA_VALUES), outputs=model.build_outputs_member()).message(),
        BINARY,
        ANY,
    ),
    "raw": (_build_raw_request, RAW, RAW_FLOATS),
}


@check(
    "headers.content-type-of-something-else-alters-nothing",
    requirements="OIP-CONTENT-TYPE-OTHER",
    role="identity_uint8",
)
@rows(
    *[
        Row(
            row, (build_message, content_type), needs=needs, fit=fit if row in CONTENT_TYPE_ROWS_FOR_ANY_MODEL else None
        )
        for name, content_type in OTHER_CONTENT_TYPES.items()
        for form, (build_message, needs, fit) in FORMS.items()
        for row in (f"{form}-as-{name}",)
        if content_type is not None or form == "json"  # separate advice covers the others
    ]
)
def content_type_of_something_else_alters_nothing(
    target: Target, model: Model, build_message: MessageBuilder, content_type: str | None
) -> str:
    """The server refuses a request under an unrelated content type, or answers it correctly."""
    message = build_message(model)
    expected = model.expected(_make_form_data_inputs(model, is_raw=message.json_length == 0))
    reply = target.send(message.with_header("Content-Type", content_type), fresh=True)
    if is_refused(target, model, reply, advises_status=True):
        return f"refused with {reply.status}"
    also_wrong = "the answer to the same request with its correct Content-Type is also wrong"
    with (
        block_if(lambda: not _is_answered_right(target, message, expected), also_wrong),
        attribute_to("OIP-CONTENT-TYPE-OTHER"),
    ):
        expect(reply).tensors(expected)
    return "answered"


def _is_answered_right(target: Target, message: Message, expected: tuple[Tensor, ...]) -> bool:
    """Say whether the server answers a message with these outputs."""
    return is_met(lambda: expect(target.send(message, fresh=True)).tensors(expected))
