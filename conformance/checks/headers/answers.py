"""Headers of answers and errors: the inference header, Content-Type and Content-Length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance.checks.headers.requests import LETTERS, MULTIBYTE_TEXT
from conformance.checks.support.controls import NO_BINARY_REQUEST, is_binary_refused
from conformance.checks.support.deployed_models import find_output_sizes, list_half_binary_outputs, require_json
from conformance.checks.support.framing import WRONG_LENGTH, expect_length_fits, expect_length_given, is_body_incomplete
from conformance.checks.support.inputs import make_empty_inputs
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.expect.unmet import NotApplicableError, block_if
from conformance.roles.model import MessageBuilder, Model, RequestBuilder
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES, RAW
from conformance.spec.fit import ANY, SEVERAL_OUTPUTS, Fit
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.send_options import SendOptions
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json
from conformance.wire.request import (
    ABSENT,
    INFERENCE_HEADER,
    JSON,
    OCTET_STREAM,
    InferRequest,
    Message,
    RequestedOutput,
)
from conformance.wire.tensor import Tensor

VARIABLE = Fit(is_variable=True)

# --- answers -----------------------------------------------------------------------------------------------------


def _request_mixed_encodings(*strings: str) -> RequestBuilder:
    """Return a builder of a request to `multi` whose answer has these strings as JSON between binary outputs."""

    def build_request(model: Model) -> InferRequest:
        tensors = [*model.sample()[:-1], Tensor.from_values("IN_BYTES", "BYTES", strings)]
        wanted = [
            RequestedOutput("OUT_INT64", True),
            RequestedOutput("OUT_BYTES", False),
            RequestedOutput("OUT_BOOL", True),
        ]
        return model.request(tensors, send="json", outputs=wanted)

    return build_request


def _request_with_id(letters: str) -> RequestBuilder:
    """Return a builder of a request for binary outputs with an id."""
    return lambda model: model.request(send=model.binary_inputs, want="binary", request_id=letters)


def _request_long_json(count: int) -> RequestBuilder:
    """Return a builder of a request to `multi` whose answer has `count` strings as JSON beside binary outputs."""

    def build_request(model: Model) -> InferRequest:
        tensors = [*model.sample()[:-1], Tensor.from_values("IN_BYTES", "BYTES", [f"text {k}" for k in range(count)])]
        outputs = [RequestedOutput(spec.name, spec.datatype != "BYTES") for spec in model.role.outputs]
        return model.request(tensors, send="json", outputs=outputs)

    return build_request


def _request_16_kib(model: Model) -> InferRequest:
    """Return a request that sends and returns 16,384 UINT8 elements as binary data."""
    return model.request([model.tensor(list(range(256)) * 64)], want="binary")


def _request_half_binary(model: Model) -> InferRequest:
    """Return a request for every other output as binary data and the rest as JSON, with an id beyond ASCII."""
    return model.request(send=model.binary_inputs, outputs=list_half_binary_outputs(model), request_id=MULTIBYTE_TEXT)


def _request_many_elements(model: Model) -> InferRequest:
    """Return a request with at least 4096 elements in each input, and with every other output as binary data."""
    each = max(1, *(tensor.elements for tensor in model.build_salted_inputs(1, model.salt)))
    tensors = model.build_salted_inputs(-(-4096 // each), model.salt)
    model.expected(tensors)  # raises if the model does not accept so many elements
    return model.request(tensors, send=model.binary_inputs, outputs=list_half_binary_outputs(model))


BINARY_ANSWER_ROWS = (
    Row("one-output", (lambda model: model.request(send="json", want="binary"),), role="identity_uint8"),
    Row("bytes-output", (lambda model: model.request(send="json", want="binary"),), role="identity_bytes"),
    Row("all-outputs", (lambda model: model.request(send="json", binary_data_output=True),), role="multi"),
    Row("beside-json-outputs", (_request_mixed_encodings(MULTIBYTE_TEXT, "ß" * 50, "a"),), role="multi"),
    Row(
        "beside-strings-of-four-bytes-a-letter",
        (_request_mixed_encodings(LETTERS["four-bytes"] * 9, "a"),),
        role="multi",
    ),
    Row("id-beyond-ascii", (_request_with_id(MULTIBYTE_TEXT),), role="identity_uint8"),
    *[
        Row(
            f"id-of-{size}",
            (_request_with_id(letters),),
            role="identity_uint8",
            fit=ANY if size == "every-size" else None,
        )
        for size, letters in LETTERS.items()
    ],
    Row("binary-request", (lambda model: model.request(want="binary"),), role="identity_uint8"),
    Row("json-over-1000-bytes", (_request_long_json(100),), role="multi"),
    Row("json-over-64-KiB", (_request_long_json(6000),), role="multi"),
    Row("16-KiB-output", (_request_16_kib,), role="identity_uint8"),
    Row("every-other-output", (_request_half_binary,), fit=SEVERAL_OUTPUTS),
    Row("4096-elements", (_request_many_elements,), fit=VARIABLE),
)


def _override_encodings(default: Any, *settings: Any) -> RequestBuilder:
    """Return a builder of a request to `multi` with `binary_data_output` and one `binary_data` for each output."""

    def build_request(model: Model) -> InferRequest:
        outputs = [
            RequestedOutput(spec.name, setting) for spec, setting in zip(model.role.outputs, settings, strict=True)
        ]
        return model.request(send="json", outputs=outputs, binary_data_output=default)

    return build_request


def _request_if_json_capable(**arguments: Any) -> RequestBuilder:
    """Return a builder of a request with these arguments, for models whose tensors JSON can represent."""

    def build_request(model: Model) -> InferRequest:
        require_json(model)
        return model.request(**arguments)

    return build_request


def _request_classes(model: Model) -> InferRequest:
    """Return a request for two classes as JSON."""
    return model.request(outputs=[RequestedOutput(model.role.outputs[0].name, False, classification=2)])


JSON_ANSWER_ROWS = (
    Row("json-request", (_request_if_json_capable(send="json"),), role="identity_int32", fit=JSON_ALONE),
    Row("binary-request", (lambda model: model.request(),), role="identity_int32"),
    Row("json-asked-for", (lambda model: model.request(send="json", want="json"),), role="multi"),
    Row("json-by-default", (lambda model: model.request(binary_data_output=False),), role="identity_int32"),
    Row("each-output-overridden", (_override_encodings(True, False, False, False, False),), role="multi"),
    Row("json-asked-for-by-each", (_request_if_json_capable(want="json", binary_data_output=True),), fit=JSON_ALONE),
    Row("some-outputs-overridden", (_override_encodings(False, ABSENT, False, ABSENT, False),), role="multi"),
    Row("without-elements", (lambda m: m.request([m.tensor([0, 0])], send="json"),), role="emit"),
    Row("classes", (_request_classes,), role="scores", needs=CLASSES),
)


def has_binary_data(reply: Reply) -> bool:
    """Say whether an output of the answer is binary data."""
    return any(output.binary or output.span for output in reply.answer.outputs)


def find_media_type(reply: Reply) -> str:
    """Return the media type of the answer in lower case; empty if the answer has no media type."""
    return (reply.header("Content-Type") or "").partition(";")[0].strip().lower()


# --- the inference header and the content type ------------------------------------------------------------------------


def _describe_content_type(reply: Reply) -> str:
    """Describe the content type of an answer."""
    content_type = reply.header("Content-Type")
    return "no Content-Type" if content_type is None else f"Content-Type: {escape_text(content_type, 60)}"


@check("headers.binary-answer-has-inference-header", requirements="BIN-HEADER-O")
@rows(*BINARY_ANSWER_ROWS)
def binary_answer_has_inference_header(target: Target, model: Model, build_request: RequestBuilder) -> None:
    """The server sends the inference header with binary data."""
    reply = target.infer(build_request(model))
    if not is_body_incomplete(reply):
        expect(reply).free_of("inference-header-missing")


@check("headers.answer-header-counts-the-bytes-of-the-json", requirements="BIN-HEADER-IN-BYTES")
@rows(*BINARY_ANSWER_ROWS)
def answer_header_counts_the_bytes_of_the_json(target: Target, model: Model, build_request: RequestBuilder) -> None:
    """The inference header of an answer counts the bytes of its JSON, not the characters."""
    reply = target.infer(build_request(model))
    if not is_body_incomplete(reply) and expect(reply).answered().reply.answer.document is not None:
        expect(reply).free_of(*WRONG_LENGTH)


@check("headers.json-answer-has-no-inference-header", requirements="BIN-HEADER-ON-JSON-O")
@rows(*JSON_ANSWER_ROWS)
def json_answer_has_no_inference_header(target: Target, model: Model, build_request: RequestBuilder) -> None:
    """The server sends no inference header with JSON alone, or one that equals the length of the body."""
    reply = target.infer(build_request(model))
    with block_if(lambda: is_binary_refused(target, model), NO_BINARY_REQUEST):
        expectation = expect(reply).answered()
    header = reply.header(INFERENCE_HEADER)
    if header in (None, str(len(reply.body))) or has_binary_data(reply):
        return
    raise expectation.unmet(f"no {INFERENCE_HEADER}, or {len(reply.body)}", escape_text(str(header), 60))


@check("headers.binary-answer-is-an-octet-stream", requirements="BIN-CONTENT-TYPE-O")
@rows(*BINARY_ANSWER_ROWS)
def binary_answer_is_an_octet_stream(target: Target, model: Model, build_request: RequestBuilder) -> None:
    """The server sends binary data with Content-Type application/octet-stream."""
    reply = target.infer(build_request(model))
    expectation = expect(reply) if is_body_incomplete(reply) else expect(reply).answered()
    if has_binary_data(reply) and find_media_type(reply) != OCTET_STREAM:
        raise expectation.unmet(f"Content-Type: {OCTET_STREAM}", _describe_content_type(reply))


@check("headers.json-answer-is-application-json", requirements="BIN-CONTENT-TYPE-OF-JSON")
@rows(*JSON_ANSWER_ROWS)
def json_answer_is_application_json(target: Target, model: Model, build_request: RequestBuilder) -> None:
    """The server sends JSON alone with Content-Type application/json."""
    reply = target.infer(build_request(model))
    with block_if(lambda: is_binary_refused(target, model), NO_BINARY_REQUEST):
        expectation = expect(reply).answered()
    if not has_binary_data(reply) and find_media_type(reply) != JSON:
        raise expectation.unmet(f"Content-Type: {JSON}", _describe_content_type(reply))


@check("headers.empty-outputs-have-a-right-header-or-none", requirements=("BIN-HEADER-ON-EMPTY", "BIN-HEADER-IN-BYTES"))
@rows(
    Row("no-elements", ((0,),), role="identity_int32"),
    Row("two-empty-outputs", ((2,),), role="emit"),
    Row("deployed", (None,), fit=JSON_ALONE),
)
def empty_outputs_have_a_right_header_or_none(target: Target, model: Model, shape: tuple[int, ...] | None) -> str:
    """The server sends a correct inference header, or none, when all binary outputs are empty."""
    tensors = make_empty_inputs(target, model) if shape is None else [model.tensor([0] * shape[0], shape)]
    if any(output.elements for output in model.find_outputs(tensors)):
        raise NotApplicableError(f"{model.name} has outputs with elements for inputs without any")
    reply = target.infer(model.request(tensors, send="json", want="binary"))
    if not reply.succeeded:
        return f"not answered: {reply.outcome()}"
    expect(reply, "BIN-HEADER-IN-BYTES").free_of(*WRONG_LENGTH)
    header = "no inference header" if reply.header(INFERENCE_HEADER) is None else "inference header"
    return f"{header}, {find_media_type(reply) or 'no Content-Type'}"


# --- errors contain no binary data ------------------------------------------------------------------------------------

# Media types with this suffix are JSON formats (RFC 6839, 3.1).
JSON_SUFFIX = "+json"


def _build_request_to_unknown_model(model: Model) -> Message:
    """Return a valid request to a model that does not exist."""
    return replace(model.request(send="json").message(), path="/v2/models/no_model_of_this_name/infer")


def _build_cut_json_request(model: Model) -> Message:
    """Return a JSON request without its last byte."""
    require_json(model)
    message = model.request(send="json").message()
    return message.with_body(message.body[:-1])


def _build_request_with_unknown_input(model: Model) -> Message:
    """Return a request whose first input has an unknown name."""
    return model.request(want="binary").encode_with(lambda document: document["inputs"][0].update(name="NO_SUCH_INPUT"))


def _build_request_for_unknown_output(model: Model) -> Message:
    """Return a request for an unknown output."""
    return model.request(send="json", outputs=["NO_SUCH_OUTPUT"], binary_data_output=True).message()


def _build_cut_binary_request(model: Model) -> Message:
    """Return a binary request without its last byte."""
    message = model.request(want="binary").message()
    return message.with_body(message.body[:-1])


def _build_request_with_header_beyond_body(model: Model) -> Message:
    """Return a binary request whose inference header exceeds its body."""
    message = model.request().message()
    return message.with_header(INFERENCE_HEADER, str(len(message.body) + 1))


# Refused at different stages (path, JSON, bytes, header), with and without a request for binary data.
ERROR_ROWS = (
    Row("unknown-model", (_build_request_to_unknown_model,), role="identity_int32", fit=JSON_ALONE),
    Row("no-json", (_build_cut_json_request,), role="identity_int32", fit=JSON_ALONE),
    Row("unknown-input-of-a-binary-request", (_build_request_with_unknown_input,), role="identity_int32", fit=ANY),
    Row("unknown-output-as-binary-data", (_build_request_for_unknown_output,), role="identity_int32"),
    Row("bytes-missing", (_build_cut_binary_request,), role="identity_int32"),
    Row("inference-header-beyond-the-body", (_build_request_with_header_beyond_body,), role="identity_int32"),
    Row("raw-body-too-short", (lambda model: model.raw(b"\1\2\3"),), role="raw_fixed", needs=RAW),
)


@check("headers.error-has-no-inference-header", requirements="BIN-HEADER-ON-JSON-O")
@rows(*ERROR_ROWS)
def error_has_no_inference_header(target: Target, model: Model, build_message: MessageBuilder) -> None:
    """The server sends no inference header with an error, or one that equals the length of the body."""
    reply = target.send(build_message(model), fresh=True)
    header = reply.header(INFERENCE_HEADER)
    if is_refused(target, model, reply) and header not in (None, str(len(reply.body))):
        raise expect(reply).unmet(f"no {INFERENCE_HEADER}, or {len(reply.body)}", escape_text(str(header), 60))


@check("headers.error-is-application-json", requirements="BIN-CONTENT-TYPE-OF-JSON")
@rows(*ERROR_ROWS)
def error_is_application_json(target: Target, model: Model, build_message: MessageBuilder) -> None:
    """The server sends an error with Content-Type application/json, or with a media type that ends in +json."""
    reply = target.send(build_message(model), fresh=True)
    found = find_media_type(reply)
    if not isinstance(parse_json(reply.body).value, dict):  # the media type of other bodies is not judged
        return
    if is_refused(target, model, reply) and found != JSON and not found.endswith(JSON_SUFFIX):
        raise expect(reply).unmet(
            f"Content-Type: {JSON}", escape_text(f"Content-Type: {found}" if found else "none", 60)
        )


# --- the length of the whole body -------------------------------------------------------------------------------------


@check("headers.content-length-is-that-of-the-whole-body", requirements="BIN-CONTENT-LENGTH")
@rows(*BINARY_ANSWER_ROWS)
def content_length_is_that_of_the_whole_body(target: Target, model: Model, build_request: RequestBuilder) -> None:
    """The Content-Length of an answer counts JSON and binary data together."""
    request = build_request(model)
    reply = target.infer(request)
    if reply.status is None or reply.status >= 300:
        expect(reply).answered()
    least = _compute_min_length(reply, find_output_sizes(model, [item.tensor for item in request.inputs]))
    if least is not None:
        expect_length_fits(reply, least)


def _compute_min_length(reply: Reply, sizes: Mapping[str, int]) -> int | None:
    """Return the minimum length of the body; None if the body has no binary data.

    Each output counts with its declared or its expected size, whichever is smaller: a wrong size is another fault. If
    the expected tensor is unknown, its shape and datatype give the size. If the body ends inside its
    JSON, the minimum is the value of the inference header.
    """
    header = reply.header(INFERENCE_HEADER) or ""
    if reply.answer.document is None:
        return int(header) if header.isdecimal() else None
    both = {finding.field for finding in reply.answer.find_by_kind("data-and-size")}  # size without bytes
    binary = [o for o in reply.answer.outputs if o.binary and f"outputs[{o.index}]" not in both]
    least = [min(sizes.get(o.name, o.native_size or 0), o.declared_size or 0) for o in binary]
    return reply.answer.json_end + sum(least) if binary else None


@check("headers.answer-ends-where-its-framing-says", requirements="HTTP-LENGTH", role="identity_int32")
@rows(Row("json", ("1.1",), fit=JSON_ALONE), Row("json-in-http-1.0-to-who-keeps-connections", ("1.0",), fit=JSON_ALONE))
def answer_ends_where_its_framing_says(target: Target, model: Model, version: str) -> None:
    """An answer has as many bytes as its Content-Length, or ends with its last chunk or its connection."""
    message = model.request(send="json").message().with_header("Connection", "keep-alive")
    reply = target.send_with(SendOptions(version), message, fresh=True)
    if is_body_incomplete(reply):
        expect(reply).answered()
    if attribution.attribute_json_text(reply) == attribution.LENGTH:
        raise expect(reply).unmet(
            "the JSON to end with the answer", f"{reply.exchange.surplus} more bytes after Content-Length"
        )


@check("headers.binary-answer-is-not-chunked", requirements="BIN-NOT-CHUNKED")
@rows(*BINARY_ANSWER_ROWS)
def binary_answer_is_not_chunked(target: Target, model: Model, build_request: RequestBuilder) -> None:
    """The server states the length of a binary answer in Content-Length."""
    reply = target.infer(build_request(model))
    if not is_body_incomplete(reply):
        expect(reply).answered()
    if has_binary_data(reply):
        expect_length_given(reply)
