"""Errors: they hold no binary data, and their headers say so."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.headers.requested_answers import find_media_type
from conformance.checks.support.deployed_models import require_json
from conformance.expect.expectation import expect
from conformance.expect.refusals import is_refused
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import RAW
from conformance.spec.fit import ANY
from conformance.spec.fit import JSON as JSON_ALONE
from conformance.spec.text import escape_text
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json
from conformance.wire.request import INFERENCE_HEADER, JSON, Message

# A type that ends in this is JSON of a narrower kind (RFC 6839, 3.1).
SUFFIX = "+json"


def _unknown_model(model: Model) -> Message:
    return replace(model.request(send="json").message(), path="/v2/models/no_model_of_this_name/infer")


def _no_json(model: Model) -> Message:
    require_json(model)
    message = model.request(send="json").message()
    return message.with_body(message.body[:-1])


def _unknown_input(model: Model) -> Message:
    return model.request(want="binary").edited(lambda document: document["inputs"][0].update(name="NO_SUCH_INPUT"))


def _unknown_output(model: Model) -> Message:
    return model.request(send="json", outputs=["NO_SUCH_OUTPUT"], binary_data_output=True).message()


def _wrong_size(model: Model) -> Message:
    message = model.request(want="binary").message()
    return message.with_body(message.body[:-1])


def _header_beyond_the_body(model: Model) -> Message:
    message = model.request().message()
    return message.with_header(INFERENCE_HEADER, str(len(message.body) + 1))


# Refused on the way to the model, in its JSON, for its bytes and for its header, whether binary data were asked for or not.
ERRORS = (
    Row("unknown-model", (_unknown_model,), role="identity_int32", fit=JSON_ALONE),
    Row("no-json", (_no_json,), role="identity_int32", fit=JSON_ALONE),
    Row("unknown-input-of-a-binary-request", (_unknown_input,), role="identity_int32", fit=ANY),
    Row("unknown-output-as-binary-data", (_unknown_output,), role="identity_int32"),
    Row("bytes-missing", (_wrong_size,), role="identity_int32"),
    Row("inference-header-beyond-the-body", (_header_beyond_the_body,), role="identity_int32"),
    Row("raw-body-too-short", (lambda model: model.raw(b"\1\2\3"),), role="raw_fixed", needs=RAW),
)


@check("headers.error-has-no-inference-header", answers="BIN-HEADER-ON-JSON-O")
@rows(*ERRORS)
def error_has_no_inference_header(target: Target, model: Model, make: MessageBuilder) -> None:
    """An error has no inference header, or one that equals the length of its body."""
    reply = target.send(make(model), fresh=True)
    header = reply.header(INFERENCE_HEADER)
    if is_refused(target, model, reply) and header not in (None, str(len(reply.body))):
        raise expect(reply).unmet(f"no {INFERENCE_HEADER}, or {len(reply.body)}", escape_text(str(header), 60))


@check("headers.error-is-application-json", answers="BIN-CONTENT-TYPE-OF-JSON")
@rows(*ERRORS)
def error_is_application_json(target: Target, model: Model, make: MessageBuilder) -> None:
    """An error has Content-Type application/json, or a narrower one."""
    reply = target.send(make(model), fresh=True)
    found = find_media_type(reply)
    if not isinstance(parse_json(reply.body).value, dict):  # what is no error object is called by its own type
        return
    if is_refused(target, model, reply) and found != JSON and not found.endswith(SUFFIX):
        raise expect(reply).unmet(
            f"Content-Type: {JSON}", escape_text(f"Content-Type: {found}" if found else "none", 60)
        )
