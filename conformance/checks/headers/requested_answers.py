"""Answers with binary data and without, asked for in many ways, and what their headers say."""

from __future__ import annotations

from typing import Any

from conformance.checks.headers.request_headers import LETTERS, MULTIBYTE_TEXT
from conformance.checks.support.deployed_models import list_half_binary, require_json
from conformance.roles.model import Model, RequestBuilder
from conformance.spec.check import Row
from conformance.spec.extensions import CLASSES
from conformance.spec.fit import ANY, JSON, SEVERAL_OUTPUTS, Fit
from conformance.transport.exchange import Reply
from conformance.wire.request import ABSENT, InferRequest, RequestedOutput
from conformance.wire.tensor import Tensor

VARIABLE = Fit(is_variable=True)

# --- answers -----------------------------------------------------------------------------------------------------


def _mixed(*strings: str) -> RequestBuilder:
    """Return what asks `multi` for strings beyond ASCII as JSON between two binary outputs."""

    def ask(model: Model) -> InferRequest:
        tensors = [*model.sample()[:-1], Tensor.of("IN_BYTES", "BYTES", strings)]
        wanted = [
            RequestedOutput("OUT_INT64", True),
            RequestedOutput("OUT_BYTES", False),
            RequestedOutput("OUT_BOOL", True),
        ]
        return model.request(tensors, send="json", outputs=wanted)

    return ask


def _with_id(letters: str) -> RequestBuilder:
    return lambda model: model.request(send=model.sends, want="binary", request_id=letters)


def _long_json(count: int) -> RequestBuilder:
    """Return what asks `multi` for so many strings as JSON beside binary outputs."""

    def ask(model: Model) -> InferRequest:
        tensors = [*model.sample()[:-1], Tensor.of("IN_BYTES", "BYTES", [f"text {k}" for k in range(count)])]
        outputs = [RequestedOutput(spec.name, spec.datatype != "BYTES") for spec in model.role.outputs]
        return model.request(tensors, send="json", outputs=outputs)

    return ask


def _large(model: Model) -> InferRequest:
    return model.request([model.tensor(list(range(256)) * 64)], want="binary")


def _half(model: Model) -> InferRequest:
    """Ask for every other output as binary data and the rest as JSON, under an id beyond ASCII."""
    return model.request(send=model.sends, outputs=list_half_binary(model), request_id=MULTIBYTE_TEXT)


def _many(model: Model) -> InferRequest:
    """Ask for outputs that are long, where their lengths are those of the inputs: every other one as binary data."""
    each = max(1, *(tensor.elements for tensor in model.salted(1, model.salt)))
    tensors = model.salted(-(-4096 // each), model.salt)
    model.expected(tensors)  # so many may be too many for it
    return model.request(tensors, send=model.sends, outputs=list_half_binary(model))


BINARY_ANSWERS = (
    Row("one-output", (lambda model: model.request(send="json", want="binary"),), role="identity_uint8"),
    Row("bytes-output", (lambda model: model.request(send="json", want="binary"),), role="identity_bytes"),
    Row("all-outputs", (lambda model: model.request(send="json", binary_data_output=True),), role="multi"),
    Row("beside-json-outputs", (_mixed(MULTIBYTE_TEXT, "ß" * 50, "a"),), role="multi"),
    Row("beside-strings-of-four-bytes-a-letter", (_mixed(LETTERS["four-bytes"] * 9, "a"),), role="multi"),
    Row("id-beyond-ascii", (_with_id(MULTIBYTE_TEXT),), role="identity_uint8"),
    *[
        Row(f"id-of-{size}", (_with_id(letters),), role="identity_uint8", fit=ANY if size == "every-size" else None)
        for size, letters in LETTERS.items()
    ],
    Row("binary-request", (lambda model: model.request(want="binary"),), role="identity_uint8"),
    Row("json-over-1000-bytes", (_long_json(100),), role="multi"),
    Row("json-over-64-KiB", (_long_json(6000),), role="multi", thorough=True),
    Row("16-KiB-output", (_large,), role="identity_uint8"),
    Row("every-other-output", (_half,), fit=SEVERAL_OUTPUTS),
    Row("4096-elements", (_many,), fit=VARIABLE),
)


def _overridden(default: Any, *settings: Any) -> RequestBuilder:
    """Return what asks `multi` for JSON alone by a default and a setting for each output."""

    def ask(model: Model) -> InferRequest:
        outputs = [
            RequestedOutput(spec.name, setting) for spec, setting in zip(model.role.outputs, settings, strict=True)
        ]
        return model.request(send="json", outputs=outputs, binary_data_output=default)

    return ask


def _json_alone(**arguments: Any) -> RequestBuilder:
    """Return what asks a model that answers in JSON for JSON, in one way or another."""

    def ask(model: Model) -> InferRequest:
        require_json(model)
        return model.request(**arguments)

    return ask


def _classes(model: Model) -> InferRequest:
    return model.request(outputs=[RequestedOutput(model.role.outputs[0].name, False, classification=2)])


JSON_ANSWERS = (
    Row("json-request", (_json_alone(send="json"),), role="identity_int32", fit=JSON),
    Row("binary-request", (lambda model: model.request(),), role="identity_int32"),
    Row("json-asked-for", (lambda model: model.request(send="json", want="json"),), role="multi"),
    Row("json-by-default", (lambda model: model.request(binary_data_output=False),), role="identity_int32"),
    Row("each-output-overridden", (_overridden(True, False, False, False, False),), role="multi"),
    Row("json-asked-for-by-each", (_json_alone(want="json", binary_data_output=True),), fit=JSON),
    Row("some-outputs-overridden", (_overridden(False, ABSENT, False, ABSENT, False),), role="multi"),
    Row("without-elements", (lambda m: m.request([m.tensor([0, 0])], send="json"),), role="emit"),
    Row("classes", (_classes,), role="scores", needs=CLASSES),
)


def has_binary_data(reply: Reply) -> bool:
    """Say whether an output of the answer is binary data."""
    return any(output.binary or output.span for output in reply.answer.outputs)


def find_media_type(reply: Reply) -> str:
    """Return the media type of the answer in small letters; empty where it has none."""
    return (reply.header("Content-Type") or "").partition(";")[0].strip().lower()
