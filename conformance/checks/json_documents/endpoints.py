"""The endpoints of the protocol, with and without a version in their paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from conformance.checks.support.classes import read_texts
from conformance.checks.support.deployed_models import expect_or_attribute_to_isolation
from conformance.checks.support.documents import ABSENT_STATUSES, expect_health, expect_while_serving, list_versions
from conformance.checks.support.versions import find_default_version, may_be_alias, read_named_version
from conformance.discovery.deployed_model import DeployedModel
from conformance.expect.expectation import expect
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.roles.roles import load
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import BINARY, CLASSES, RAW
from conformance.spec.fit import ANY, JSON
from conformance.spec.text import escape_text
from conformance.transport.broken_request import UNAVAILABLE
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.finding import format_value
from conformance.wire.json_text import parse_json
from conformance.wire.request import Message, RequestedOutput

# --- paths with a version ---------------------------------------------------------------------------------------------

Expectation = Callable[[Reply, Model], object]


def _build_raw_request(model: Model) -> Message:
    """Return a raw binary request with the sample input of the model."""
    return model.raw(bytes(model.sample(batch=1)[0].to_bytes()))


def _request_classes(model: Model) -> Message:
    """Return a JSON request for two classes of the first output."""
    return model.request(send="json", outputs=[RequestedOutput(model.role.outputs[0].name, classification=2)]).message()


def _expect_tensors(reply: Reply, model: Model) -> None:
    """Expect the outputs that the model computes for sample inputs."""
    expect(reply).tensors(
        model.expected(model.sample(batch=1) if reply.exchange.message.json_length == 0 else model.sample())
    )


def _expect_classes(reply: Reply, model: Model) -> None:
    """Expect the first output to consist of classes."""
    read_texts(reply, model.role.outputs[0].name)


ROWS: tuple[Row, ...] = (
    Row("json-of-four", (lambda m: m.request(send="json").message(), _expect_tensors), role="multi"),
    Row("json-with-id", (lambda m: m.request(send="json", request_id="1").message(), _expect_tensors), role="add_sub"),
    Row("binary-in", (lambda m: m.request(send="binary").message(), _expect_tensors), role="add_sub", needs=BINARY),
    Row(
        "binary-out",
        (lambda m: m.request(send="json", want="binary").message(), _expect_tensors),
        role="add_sub",
        needs=BINARY,
    ),
    Row(
        "binary-by-default",
        (lambda m: m.request(send="json", binary_data_output=True).message(), _expect_tensors),
        role="add_sub",
        needs=BINARY,
    ),
    Row(
        "binary-in-and-out",
        (lambda m: m.request(want="binary").message(), _expect_tensors),
        role="identity_fp32",
        needs=BINARY,
    ),
    Row("raw", (_build_raw_request, _expect_tensors), role="raw_fixed", needs=RAW),
    Row("raw-of-a-batch", (_build_raw_request, _expect_tensors), role="raw_batching", needs=RAW),
    Row("classes", (_request_classes, _expect_classes), role="scores", needs=CLASSES),
    Row("own-json", (lambda m: m.request(send="json").message(), _expect_tensors), fit=JSON),
    Row("own-binary", (lambda m: m.request(want="binary").message(), _expect_tensors), needs=BINARY, fit=ANY),
)


@check("json.path-with-a-version-does-the-same", answers="OIP-VERSIONED")
@rows(*ROWS)
def path_with_a_version_does_the_same(
    target: Target, model: Model, build_message: MessageBuilder, expect_right: Expectation
) -> None:
    """The server answers every kind of request at a path that names a listed version."""
    versioned, listed = _choose_version(target, model)
    reply = target.infer(build_message(versioned))
    plain = replace(model, version="")

    def is_wrong_without_version() -> bool:
        return not is_met(lambda: expect_right(target.send(build_message(plain), fresh=True), plain))

    with (
        block_if(is_wrong_without_version, "the request is also answered wrongly at the path without a version"),
        attribute_to(None),
    ):
        expect_right(reply, versioned)
    named = read_named_version(reply)
    # Another check judges the type of `model_version`. A configured version that is not listed may be an alias.
    if versioned.version not in listed or not isinstance(named, str) or named in ("", versioned.version):
        return
    if named in listed and may_be_alias(target, model, named):
        return
    # Answers that always name the model's version by the same word, which metadata do not list, are reported elsewhere.
    if named in listed or named != read_named_version(target.send(build_message(plain), fresh=True)):
        raise UnmetError(f"model_version {format_value(versioned.version)}, or none", format_value(named), reply)


def _choose_version(target: Target, model: Model) -> tuple[Model, list[str]]:
    """Return the model with its default version, and the versions that its metadata list.

    Raises:
        NotApplicable: the default version is unknown, or the optional path with that version gives no answer.
    """
    versions = list_versions(target, model)
    own = model.version or find_default_version(target, model, versions)
    if not own:
        raise NotApplicableError(
            f"the default version of {model.name} is unknown: its metadata list {format_value(versions)}"
        )
    versioned = replace(model, version=own)
    if not target.send(versioned.request(send="json").message(), fresh=True).succeeded:
        raise NotApplicableError(f"a plain request to {versioned.infer_path} is not answered")
    return versioned, versions


# --- escaped paths ----------------------------------------------------------------------------------------------------


@check("json.escaped-path-is-the-same", answers="OIP-PATH-ESCAPED", role="identity_int32", fit=JSON)
@rows("inference", "metadata")
def escaped_path_is_the_same(target: Target, model: Model, subject: str) -> None:
    """The server answers at a path that writes a letter of the model's name as a percent escape."""
    path = f"/v2/models/{model.name}"
    if not re.fullmatch("[A-Za-z0-9._~-]+", model.name) or not model.path.startswith(path):
        raise NotApplicableError(f"the path already needs escapes for the name {model.name}")
    message = model.request(send="json").message() if subject == "inference" else Message(model.path, method="GET")
    escaped = message.path.replace(path, f"/v2/models/%{ord(model.name[0]):02X}{model.name[1:]}", 1)
    usual, reply = target.send(message), target.send(replace(message, path=escaped))
    if not usual.succeeded:
        raise BlockedError(
            f"the server does not answer at the unescaped path {message.path}: {escape_text(usual.outcome())}"
        )
    expect(reply).answered()
    if subject == "inference":
        expect(reply).tensors(model.find_outputs(model.sample()))


# --- versions in answers and metadata ---------------------------------------------------------------------------------


@check("json.version-named-and-versions-listed", answers="OIP-MODEL-VERSION-LISTED", role="identity_int32")
def version_named_and_versions_listed(target: Target, model: Model) -> str:
    """The suite records whether answers name a version and whether metadata list versions."""
    found = (expect(target.infer(model.request(send="json"))).answered().reply.answer.document or {}).get(
        "model_version"
    )
    listed = (target.get(model.path).answer.document or {}).get("versions")
    named = "no model_version" if found is None else f"model_version {format_value(found)}"
    return f"{named}, {'no versions' if listed is None else f'versions {format_value(listed)}'} in the metadata"


# --- a plain request ---------------------------------------------------------------------------------------------------


@check("json.plain-request-is-answered", answers=("OIP-ENDPOINTS", "OIP-ANSWER", "OIP-ISOLATION"), infers=False)
@rows(
    *[Row(name, role=name, needs=() if role.is_json_capable else BINARY) for name, role in load().items()],
    Row("own", fit=ANY),
)
def plain_request_is_answered(target: Target, model: Model) -> None:
    """The server answers a plain inference request with status 200 and the correct outputs."""
    if isinstance(model, DeployedModel) and model.tensors and (model.trouble or model.demands):
        _expect_any_answer(target.infer(model.build_plain_json_request()), model)
    request = model.request(send="json") if model.is_json_capable else model.request(want="binary")
    reply = target.infer(request)
    if reply.status == UNAVAILABLE:  # the model may have to be loaded first
        reply = target.infer(request)
    if reply.status not in ABSENT_STATUSES:
        expect(reply, "OIP-ANSWER").answered()
    if expect(reply).answered().reply.status != 200:
        raise UnmetError("status 200 for an inference request", f"status {reply.status}", reply)
    expect_or_attribute_to_isolation(target, reply, lambda found: _expect_outputs(found, model))


def _expect_any_answer(reply: Reply, model: DeployedModel) -> None:
    """Expect an answer with every declared output, whatever its values are."""
    if model.demands and not reply.succeeded:
        expected = f"an answer, as to the same request with {model.demands}"
        raise UnmetError(expected, escape_text(reply.outcome()), reply, requirement="OIP-ANSWER")
    for name in model.declared_outputs:
        expect(reply, "OIP-ANSWER").output(name)


def _expect_outputs(reply: Reply, model: Model) -> None:
    """Expect the correct outputs; if JSON cannot represent them all, expect only that the outputs are present."""
    for tensor in model.find_outputs(model.sample()):
        if model.is_json_capable:
            expect(reply, "OIP-ANSWER").tensors([tensor])
        else:  # the checks of datatypes judge the values of binary data
            expect(reply, "OIP-ANSWER").output(tensor.name)


@check("json.metadata-have-status-200", answers="OIP-ENDPOINTS", role="identity_int32", infers=False, fit=ANY)
@rows("server", "model")
def metadata_have_status_200(target: Target, model: Model, subject: str) -> str:
    """The server answers GET v2 (or v2/) and GET v2/models/NAME with status 200."""
    reply = target.get(model.path if subject == "model" else "/v2")
    if expect(reply).answered().reply.status != 200:
        raise UnmetError(f"status 200 for {subject} metadata", f"status {reply.status}", reply)
    return f"at {reply.exchange.message.path}"


# --- health ------------------------------------------------------------------------------------------------------------


@check("json.health-is-told", answers="OIP-HEALTH", role="identity_int32", infers=False, fit=ANY)
@rows("live", "ready", "model")
def health_is_told(target: Target, model: Model, subject: str) -> str:
    """The server does not deny that it is live, or that a model is ready, while it answers inference requests."""
    return expect_while_serving(target, model, lambda: expect_health(target, model, subject), target.pause).outcome()


@check("json.unknown-model-is-not-ready", answers="OIP-HEALTH", role="identity_int32", infers=False, fit=ANY)
def unknown_model_is_not_ready(target: Target, model: Model) -> None:
    """The server refuses an unknown model, or says that it is not ready."""
    target.get(f"{model.path}/ready")
    reply = target.get("/v2/models/there-is-no-such-model/ready")
    document, _ = parse_json(reply.body)
    if not (reply.succeeded and isinstance(document, dict) and document.get("ready") is False):
        expect(reply).refused("a model that does not exist")
