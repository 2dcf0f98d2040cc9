"""The JSON of an answer: the model name, the outputs and their members, and the id of the request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from conformance.checks.support.documents import (
    ANSWERS,
    expect_described,
    expect_fits_schema,
    expect_no_null,
    expect_only_listed_outputs,
    expect_requested_name,
    make_requester,
    require_answered_call,
)
from conformance.checks.support.inputs import make_empty_inputs
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Only, Row, check, claim, rows, rows_for_role
from conformance.spec.extensions import BINARY, CLASSES, GRPC, HTTP
from conformance.spec.fit import ANY, JSON, SCORED, SEVERAL_OUTPUTS, Fit
from conformance.spec.text import escape_text, format_shape
from conformance.transport.any_target import AnyTarget
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.datatypes import INTEGERS
from conformance.wire.finding import format_value
from conformance.wire.request import Form, Message, RequestedOutput

# row -> a shape with several dimensions of 0, whose product does not tell them apart
SEVERAL_ZEROS = {"0x3x0": (0, 3, 0), "0x0x1": (0, 0, 1), "0x0x0": (0, 0, 0)}

# --- the members of an answer -----------------------------------------------------------------------------------------


@claim("json.answer-names-its-model", requirements=("OIP-MODEL-NAME", "OIP-MODEL-NAME-ASKED", "OIP-JSON"))
@rows(*ANSWERS)
def answer_names_its_model(target: AnyTarget, model: Model, build_message: MessageBuilder) -> None:
    """The answer has the string model_name, equal to the name in the request."""
    reply = target.infer(build_message(model))
    expect_fits_schema(reply, "OIP-MODEL-NAME")
    expect_requested_name(
        *(target, reply, _read_model_name(reply), model, "OIP-MODEL-NAME"),
        lambda other: _read_model_name(target.infer(other.request(send="json"))),
    )


def _read_model_name(reply: Reply) -> Any:
    return (reply.answer.document or {}).get("model_name")


@claim("json.answer-describes-its-outputs", requirements=("OIP-OUTPUT-MEMBERS", "OIP-PARAMETERS-O", "OIP-JSON"))
@rows(*ANSWERS)
def answer_describes_its_outputs(target: AnyTarget, model: Model, build_message: MessageBuilder) -> None:
    """The answer is an object with an array of outputs, each with name, shape and datatype; parameters have values."""
    reply = target.infer(build_message(model))
    for requirement in ("OIP-OUTPUT-MEMBERS", "OIP-PARAMETERS-O"):
        expect_fits_schema(reply, requirement)
    for output in reply.answer.outputs if reply.is_over_grpc else ():  # over HTTP, OIP-SHAPE has the dimensions
        if output.shape is None:
            raise UnmetError("a possible shape of each output", f"{output.name} with a negative dimension", reply)


@check("json.model-version-is-a-string", requirements=("OIP-MODEL-VERSION", "OIP-JSON"))
@rows(*ANSWERS)
def model_version_is_a_string(target: Target, model: Model, build_message: MessageBuilder) -> None:
    """The model_version of an answer, if present, is a string."""
    expect_fits_schema(target.infer(build_message(model)), "OIP-MODEL-VERSION")


@check(
    "json.shape-counts-the-elements",
    requirements=("OIP-SHAPE", "OIP-JSON"),
    only=Only(HTTP, "GRPC-TYPED and GRPC-RAW have the elements of either form of contents"),
)
@rows(
    *ANSWERS,
    *[Row(name, (None, shape), role="rank3") for name, shape in SEVERAL_ZEROS.items()],
    Row("deployed-without-elements", (None,), fit=JSON),
)
def shape_counts_the_elements(
    target: Target, model: Model, build_message: MessageBuilder | None, shape: Sequence[int] = ()
) -> None:
    """The dimensions of an output are non-negative integers, and their product is the number of elements.

    Raises:
        NotApplicableError: the server refuses tensors without elements, as it may.
    """
    tensors = [model.tensor([], shape)] if shape else () if build_message else make_empty_inputs(target, model)
    reply = target.infer(build_message(model) if build_message else model.request(tensors, send="json"))
    if shape and reply.is_refusal:
        raise NotApplicableError("the server refuses tensors without elements")
    expect_fits_schema(reply, "OIP-SHAPE")
    expect(reply).free_of("shape-no-integers", "data-count", "bytes-count")
    for output in reply.answer.outputs if shape else ():
        if output.shape != shape:
            raise UnmetError(f"shape {list(shape)}", format_shape(output.shape), reply)


@check("json.integers-are-written-as-such", requirements=("OIP-INTEGERS", "OIP-JSON"))
@rows(*ANSWERS)
def integers_are_written_as_such(target: Target, model: Model, build_message: MessageBuilder) -> None:
    """The server writes dimensions and sizes as integers: 8, not 8.0."""
    reply = target.infer(build_message(model))
    expect(reply, "OIP-ANSWER").answered()
    expect(reply).free_of("integer-with-a-point")


@check("json.absent-members-are-left-out", requirements=("OIP-NULL", "OIP-JSON"))
@rows(
    *ANSWERS,
    Row("server-metadata", (lambda _: Message("/v2", method="GET"),), role="identity_int32", fit=ANY),
    Row("model-metadata", (lambda model: Message(model.path, method="GET"),), role="identity_int32", fit=ANY),
)
def absent_members_are_left_out(target: Target, model: Model, build_message: MessageBuilder) -> None:
    """The server leaves an optional member out rather than writing null."""
    request = build_message(model)
    is_get = isinstance(request, Message) and request.method == "GET"
    reply = target.get(request.path) if is_get else target.infer(request)
    if is_get:
        expect_described(reply)
    else:
        expect(reply, "OIP-ANSWER").answered()
    expect_no_null(reply, reply.answer.document)


@check("json.bool-is-true-or-false", requirements=("OIP-BOOL", "OIP-JSON"))
@rows(
    Row("identity", role="identity_bool"),
    Row("beside-others", role="multi"),
    Row("deployed", fit=Fit(outputs=frozenset({"BOOL"}), is_json=True)),
)
def bool_is_true_or_false(target: Target, model: Model) -> None:
    """The server writes BOOL elements in JSON as true and false."""
    expect(target.infer(model.request(send="json"))).answered().free_of("bool-number")


@check("json.integer-elements-are-numbers", requirements=("OIP-INTEGER-ELEMENTS", "OIP-JSON"))
@rows(
    *[Row(role, role=role) for role in ("identity_int64", "identity_uint64", "identity_int32", "multi")],
    Row("deployed", fit=Fit(outputs=frozenset(INTEGERS), is_json=True)),
)
def integer_elements_are_numbers(target: Target, model: Model) -> None:
    """The server writes integer elements in JSON as numbers, not as strings."""
    expect(target.infer(model.request(send="json"))).answered().free_of("integer-string")


@check("json.answer-is-json-in-utf-8", requirements="OIP-JSON")
@rows(*ANSWERS)
def answer_is_json_in_utf_8(target: Target, model: Model, build_message: MessageBuilder) -> None:
    """The server's JSON is valid and in UTF-8, and only binary data follows it."""
    expect_json(target.infer(build_message(model)))


def expect_json(reply: Reply) -> None:
    """Expect an answer with a JSON document (OIP-ANSWER)."""
    expect(reply, "OIP-ANSWER").answered()
    if requirement := attribution.attribute_json_text(reply):
        findings = "; ".join(finding.described for finding in reply.answer.findings)
        raise UnmetError("JSON in UTF-8, and nothing behind it", findings, reply, requirement=requirement)


# --- which outputs ----------------------------------------------------------------------------------------------------

OutputChooser = Callable[[Model], Sequence[str]]  # the outputs that a request lists
_FORM = Only(HTTP, "calls cannot ask for the form of an output")
_CONTENTS = Only(GRPC, "over HTTP a row with binary data says the same")

_OUTPUT_LISTS: tuple[tuple[str, ...], ...] = (
    ("OUT_FP32",),
    ("OUT_BYTES",),
    ("OUT_BYTES", "OUT_INT64"),
    ("OUT_BOOL", "OUT_FP32", "OUT_BYTES"),
    ("OUT_FP32", "OUT_BYTES", "OUT_BOOL", "OUT_INT64"),
)


_BINARY_OPTIONS: Mapping[str, Any] = {"want": "binary"}
_BINARY_BY_DEFAULT: Mapping[str, Any] = {"binary_data_output": True}


def _list_these_outputs(listed: Sequence[str]) -> OutputChooser:
    """Return an `OutputChooser` that lists these outputs for any model."""
    return lambda _: listed


def _list_last_output(model: Model) -> Sequence[str]:
    """Return a list with only the last output of a model."""
    return [model.role.outputs[-1].name]


def _list_last_two_reversed(model: Model) -> Sequence[str]:
    """Return a list of the last two outputs of a model in reverse order."""
    return [spec.name for spec in model.role.outputs[:-3:-1]]


def _list_all_reversed(model: Model) -> Sequence[str]:
    """Return a list of all outputs of a model in reverse order."""
    return [spec.name for spec in model.role.outputs[::-1]]


@claim("json.listed-outputs-come-alone", requirements=("OIP-OUTPUTS-LISTED", "OIP-OUTPUTS-ONLY"))
@rows(
    *[Row("-".join(o), (_list_these_outputs(o), {}), role="multi") for o in _OUTPUT_LISTS],
    *[
        Row(f"{'-'.join(o)}-{name}", (_list_these_outputs(o), options), role="multi", needs=BINARY, only=_FORM)
        for name, options in (("binary", _BINARY_OPTIONS), ("binary-by-default", _BINARY_BY_DEFAULT))
        for o in _OUTPUT_LISTS
    ],
    Row("last", (_list_last_output, {}), fit=JSON),
    Row(
        *("last-binary", (_list_last_output, {**_BINARY_OPTIONS, **_BINARY_BY_DEFAULT})),
        needs=BINARY,
        fit=JSON,
        only=_FORM,
    ),
    Row("last-raw", (_list_last_output, {}, "binary"), fit=SEVERAL_OUTPUTS, only=_CONTENTS),
    Row("last-two-backwards", (_list_last_two_reversed, {}), fit=Fit(min_outputs=2, is_json=True)),
    Row("all-backwards", (_list_all_reversed, {}), fit=Fit(min_outputs=3, is_json=True)),
)
def listed_outputs_come_alone(
    target: AnyTarget, model: Model, choose: OutputChooser, options: Mapping[str, Any], send: Form = "json"
) -> None:
    """The server returns the outputs that the request lists, and no others."""
    listed = choose(model)
    reply = target.infer(model.request(send=send, outputs=listed, **options))
    if not reply.succeeded:
        require_answered_call(target.infer(model.request(send=send)))
    _expect_outputs(reply, listed)
    expect_only_listed_outputs(reply, listed)


@claim("json.all-outputs-come-unasked", requirements="OIP-OUTPUTS-ALL")
@rows(
    *[Row(role, (make_requester(),), role=role) for role in ("multi", "add_sub", "raw_two_outputs", "emit")],
    Row("multi-raw", (lambda m: m.request(),), role="multi", only=_CONTENTS),
    Row("multi-binary-by-default", (make_requester(binary_data_output=True),), role="multi", needs=BINARY, only=_FORM),
    Row("raw_two_outputs-binary-in", (lambda m: m.request(),), role="raw_two_outputs", needs=BINARY),
    Row("deployed", (make_requester(),), fit=JSON),
    Row("deployed-binary-by-default", (lambda m: m.request(binary_data_output=True),), needs=BINARY, fit=ANY),
)
def all_outputs_come_unasked(target: AnyTarget, model: Model, build_message: MessageBuilder) -> None:
    """The server returns all outputs of the model when the request lists none."""
    reply = target.infer(build_message(model))
    require_answered_call(reply)
    if isinstance(model, DeployedModel) and set(reply.answer.names()) - set(model.declared_outputs):
        raise BlockedError(f"{model.name} returns outputs that its metadata do not declare")
    _expect_outputs(reply, model.declared_outputs)


def _expect_outputs(reply: Reply, names: Sequence[str]) -> None:
    """Expect an answer to contain at least these outputs, in any order."""
    expect(reply).answered()
    found = list(reply.answer.names())
    if missing := [name for name in names if name not in found]:
        requirement = attribution.attribute_unreadable_output(reply, missing[0])
        raise UnmetError(
            f"outputs {format_value(list(names))}", f"outputs {format_value(found)}", reply, requirement=requirement
        )


# --- the id ------------------------------------------------------------------------------------------------------------

_IDS = {
    "letters": "first-Request_7",
    "empty": "",
    "blank": " ",
    "literal": "null",
    "digits": "0042",
    "zero": "0",
    "blanks": " a  b ",
    "escapes": 'a"b\\c/d\n\te',
    "accents": "größe-é",
    "beyond-16-bits": "猫😀",
    "long": "id-" + "0123456789" * 30,
}

_REQUIREMENTS = {"empty": "OIP-ID-EMPTY"}
_NO_PRESENCE = Only(HTTP, "over gRPC an empty id is no id, and each is a string")
_LISTED = ["OUT_FP32", "OUT_INT64"]
_CLASSES = [RequestedOutput("SCORES", classification=2)]
_FOR_ANY_MODEL = ("empty", "digits", "blanks", "escapes", "accents", "long")


def _list_classified_output(model: Model) -> Sequence[RequestedOutput]:
    """Return a list with the first output that supports classes, with a request for one class."""
    return [RequestedOutput(model.find_classifiable_outputs()[0], classification=1)]


@claim("json.id-comes-back", requirements=("OIP-ID", "OIP-ID-EMPTY"))
@rows(
    *rows_for_role(
        "identity_int32",
        *[
            Row(
                name,
                (identity,),
                requirements=(_REQUIREMENTS.get(name, "OIP-ID"),),
                fit=JSON if name in _FOR_ANY_MODEL else None,
                only=_NO_PRESENCE if name == "empty" else None,
            )
            for name, identity in _IDS.items()
        ],
        *[
            Row(
                *(f"{name}-{send}-in-{want}-out", (_IDS[name], send, want)),
                requirements=(_REQUIREMENTS.get(name, "OIP-ID"),),
                needs=BINARY,
                fit=ANY if (name, send, want) == ("accents", "binary", "binary") else None,
                only=_FORM,
            )
            for name in ("letters", "empty", "accents")
            for send, want in (("binary", "json"), ("json", "binary"), ("binary", "binary"))
        ],
    ),
    Row("not-sent", (None,), role="identity_int32", fit=JSON, only=_NO_PRESENCE),
    Row("several-outputs", ("m-1",), role="multi"),
    Row("batching", ("b-1",), role="batching"),
    Row("listed", ("l-1", "json", None, lambda _: _LISTED), role="multi"),
    Row("classes", ("c-1", "json", None, lambda _: _CLASSES), role="scores", needs=CLASSES),
    Row("deployed-raw", (_IDS["accents"], "binary"), fit=ANY, only=_CONTENTS),
    Row("deployed-listed", ("l-2", "json", None, _list_last_output), fit=JSON),
    Row("deployed-classes", ("c-2", "json", None, _list_classified_output), fit=SCORED, needs=CLASSES),
)
def id_comes_back(
    target: AnyTarget,
    model: Model,
    identity: str | None,
    send: Form = "json",
    want: Form | None = None,
    choose: Callable[[Model], Sequence[RequestedOutput | str]] | None = None,
) -> None:
    """The server returns the id of a request unchanged; the id of an answer to a request without one is a string."""
    request = model.request(send=send, want=want, outputs=choose and choose(model), request_id=identity)
    reply = target.infer(request)
    if not reply.succeeded and not (plain := target.infer(replace(request, id=None))).succeeded:
        unmet = expect(plain).unmet("an answer", escape_text(plain.outcome()))
        raise BlockedError("the server does not answer the request without an id either", unmet)
    _expect_id(reply, identity)


@check(
    "json.escaped-id-comes-back",
    requirements="OIP-ID",
    role="identity_int32",
    only=Only(HTTP, "escapes are a spelling of JSON"),
)
@rows(
    *[
        Row(name, (_IDS[name],), fit=JSON if name == "accents" else None)
        for name in ("escapes", "accents", "beyond-16-bits")
    ]
)
def escaped_id_comes_back(target: Target, model: Model, identity: str) -> None:
    r"""The server returns an id written with \u escapes as the text that it stands for."""
    request = model.request(send="json", request_id=identity)
    escaped = "".join(f"\\u{unit:04x}" for unit in _list_utf_16_units(identity))
    text = json.dumps({**request.build_sent_document(), "id": "@"}, separators=(",", ":")).replace(
        '"@"', f'"{escaped}"'
    )
    _expect_id(target.infer(request.message().with_body(text.encode())), identity)


def _list_utf_16_units(text: str) -> list[int]:
    """Return the UTF-16 code units of a text."""
    octets = text.encode("utf-16-be")
    return [int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2)]


def _expect_id(reply: Reply, identity: str | None) -> None:
    """Expect an answer with this id; with None, an answer without an id, or with an id of the server's own."""
    expect(reply).answered()
    found = (reply.answer.document or {}).get("id")
    if found != identity and (identity is not None or not isinstance(found, str)):
        expect_json(reply)
        raise UnmetError(
            "no id, or a string" if identity is None else f"id {format_value(identity)}",
            "no id" if found is None else f"id {format_value(found)}",
            reply,
        )
