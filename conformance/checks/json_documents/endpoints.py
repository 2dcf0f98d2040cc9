"""The endpoints of the protocol, with and without a version in their paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.checks.support.classes import read_texts
from conformance.checks.support.controls import expect_or_attribute_to_isolation, expect_outputs
from conformance.checks.support.datatypes import make_role_rows
from conformance.checks.support.documents import (
    ABSENT_STATUSES,
    expect_answered_call,
    expect_described,
    expect_fits_schema,
    expect_health,
    expect_while_serving,
    list_versions,
    make_requester,
    require_answered_call,
    require_permission,
)
from conformance.checks.support.versions import find_default_version, may_be_alias, read_named_version
from conformance.discovery.deployed_model import NESTED_DATA, DeployedModel
from conformance.expect import attribution
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, attribute_to, block_if, is_met
from conformance.roles.model import MessageBuilder, Model
from conformance.spec.check import Only, Row, check, claim, rows
from conformance.spec.extensions import BINARY, CLASSES, GRPC, HTTP, RAW
from conformance.spec.fit import ANY, JSON
from conformance.spec.text import escape_text
from conformance.transport.any_target import AnyTarget
from conformance.transport.broken_request import UNAVAILABLE
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target
from conformance.wire.datatypes import DATATYPES
from conformance.wire.finding import format_value
from conformance.wire.request import InferRequest, Message, RequestedOutput

# --- paths with a version ---------------------------------------------------------------------------------------------

Expectation = Callable[[Reply, Model], object]
UNKNOWN_NAME = "there-is-no-such-model"


def _build_raw_request(model: Model) -> Message:
    """Return a raw binary request with the sample input of the model."""
    return model.raw(bytes(model.sample(batch=1)[0].to_bytes()))


def _request_classes(model: Model) -> InferRequest:
    """Return a JSON request for two classes of the first output."""
    return model.request(send="json", outputs=[RequestedOutput(model.role.outputs[0].name, classification=2)])


def _expect_tensors(reply: Reply, model: Model) -> None:
    """Expect the outputs that the model computes for sample inputs."""
    is_raw = not reply.is_over_grpc and reply.exchange.message.json_length == 0
    tensors = model.sample(batch=1) if is_raw else model.sample()
    expect(reply).tensors(model.find_outputs(tensors), through_json=False if reply.is_over_grpc else None)


def _expect_classes(reply: Reply, model: Model) -> None:
    """Expect the first output to consist of classes."""
    read_texts(reply, model.role.outputs[0].name)


_FORM = Only(HTTP, "calls cannot ask for the form of an output")


@claim("json.path-with-a-version-does-the-same", requirements="OIP-VERSIONED")
@rows(
    Row("json-of-four", (make_requester(), _expect_tensors), role="multi"),
    Row("json-with-id", (make_requester(request_id="1"), _expect_tensors), role="add_sub"),
    Row("binary-in", (lambda m: m.request(send="binary"), _expect_tensors), role="add_sub", needs=BINARY),
    Row("binary-out", (make_requester(want="binary"), _expect_tensors), role="add_sub", needs=BINARY, only=_FORM),
    Row(
        "binary-by-default",
        (make_requester(binary_data_output=True), _expect_tensors),
        role="add_sub",
        needs=BINARY,
        only=_FORM,
    ),
    Row("binary-in-and-out", (lambda m: m.request(want="binary"), _expect_tensors), role="identity_fp32", needs=BINARY),
    Row("batch", (make_requester(), _expect_tensors), role="batching"),
    Row("raw", (_build_raw_request, _expect_tensors), role="raw_fixed", needs=RAW),
    Row("raw-of-a-batch", (_build_raw_request, _expect_tensors), role="raw_batching", needs=RAW),
    Row("classes", (_request_classes, _expect_classes), role="scores", needs=CLASSES),
    Row("deployed-json", (make_requester(), _expect_tensors), fit=JSON),
    Row("deployed-binary", (lambda m: m.request(want="binary"), _expect_tensors), needs=BINARY, fit=ANY),
)
def path_with_a_version_does_the_same(
    target: AnyTarget, model: Model, build_request: MessageBuilder, expect_right: Expectation
) -> None:
    """The server answers every kind of request that names a listed version; versions but the default may refuse it."""
    versions = list_versions(target, model)
    own = _find_own_version(target, model, versions)
    for version in dict.fromkeys([*filter(None, [own]), *versions[:MAX_VERSIONS]]):
        named = replace(model, version=version)
        reply = target.infer(build_request(named))
        if version == own:
            _expect_right_with_version(target, named, reply, build_request, expect_right)
        elif not reply.succeeded:
            continue
        _expect_version_named(target, named, reply, versions, is_own=version == own)


MAX_VERSIONS = 3  # listed versions that a row requests besides the default


def _find_own_version(target: AnyTarget, model: Model, versions: Sequence[str]) -> str:
    """Return the default version of a model, or an empty string if only its other versions are known.

    Raises:
        NotApplicableError: no version is known, or a plain request to the optional path of the default version fails.
    """
    own = model.version or find_default_version(target, model, versions)
    if not own and not versions:
        raise NotApplicableError(f"the default version of {model.name} is unknown: its metadata list no versions")
    versioned = replace(model, version=own)
    if (
        own
        and isinstance(target, Target)
        and not target.send(versioned.request(send="json").message(), fresh=True).succeeded
    ):
        raise NotApplicableError(f"a plain request to {versioned.infer_path} is not answered")
    return own


def _expect_right_with_version(
    target: AnyTarget, named: Model, reply: Reply, build_request: MessageBuilder, expect_right: Expectation
) -> None:
    """Expect a right answer to a request for the default version, unless the same request without it gets none."""
    plain = replace(named, version="")

    def is_wrong_without_version() -> bool:
        return not is_met(lambda: expect_right(_send_fresh(target, build_request(plain)), plain))

    with (
        block_if(is_wrong_without_version, "the request is also answered wrongly without a version"),
        attribute_to(None),
    ):
        expect_right(reply, named)


def _send_fresh(target: AnyTarget, request: InferRequest | Message) -> Reply:
    return target.send(request if isinstance(request, Message) else target.message(request), fresh=True)


def _expect_version_named(
    target: AnyTarget, model: Model, reply: Reply, listed: Sequence[str], *, is_own: bool
) -> None:
    """Expect an answer to name the requested version, another name of it, or none.

    A configured version that is not listed may be an alias.
    """
    expect_fits_schema(reply, "OIP-MODEL-VERSION")
    named = read_named_version(reply)
    if model.version not in listed or named in (None, "", model.version):
        return
    if named in listed and may_be_alias(target, model, named):
        return
    # Answers that always name the model's version by the same word, which metadata do not list, are reported elsewhere.
    plain = target.message(replace(model, version="").request(send="json"))
    if named in listed or (is_own and named != read_named_version(target.send(plain, fresh=True))):
        raise UnmetError(f"model_version {format_value(model.version)}, or none", format_value(named), reply)


@check(
    "grpc.listed-version-is-described",
    requirements="OIP-VERSIONED/grpc",
    role="identity_int32",
    infers=False,
    fit=ANY,
    over=(GRPC,),
    only=Only(GRPC, "paths with a version are optional over HTTP"),
)
@rows("readiness", "metadata")
def listed_version_is_described(target: GrpcTarget, model: Model, subject: str) -> None:
    """The server calls the default version ready and has metadata for it; other listed versions may not be loaded.

    Raises:
        NotApplicableError: the metadata list no versions, or the default version is unknown.
    """
    version = model.version or find_default_version(target, model, list_versions(target, model))
    if not version:
        raise NotApplicableError(f"the default version of {model.name} is unknown")

    def ask(one: Model) -> Reply:
        return target.describe(one) if subject == "metadata" else target.ask_health("model", one)

    reply, plain = (ask(replace(model, version=one)) for one in (version, ""))
    require_answered_call(plain)
    expect_answered_call(reply)
    if (reply.answer.document or {}).get("ready") is False and (plain.answer.document or {}).get("ready"):
        raise UnmetError("ready: true, as without a version", "ready: false", reply)


# --- escaped paths ----------------------------------------------------------------------------------------------------


@check("json.escaped-path-is-the-same", requirements="OIP-PATH-ESCAPED", role="identity_int32", fit=JSON)
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
        with block_if(
            lambda: not is_met(lambda: expect_outputs(usual, model, model.sample())),
            "the answer at the unescaped path is also wrong",
        ):
            expect_outputs(reply, model, model.sample())


# --- versions in answers and metadata ---------------------------------------------------------------------------------


@check("json.version-named-and-versions-listed", requirements="OIP-MODEL-VERSION-LISTED", role="identity_int32")
def version_named_and_versions_listed(target: Target, model: Model) -> str:
    """The suite records whether answers name a version and whether metadata list versions."""
    found = (expect(target.infer(model.request(send="json"))).answered().reply.answer.document or {}).get(
        "model_version"
    )
    listed = (target.get(model.path).answer.document or {}).get("versions")
    named = "no model_version" if found is None else f"model_version {format_value(found)}"
    return f"{named}, {'no versions' if listed is None else f'versions {format_value(listed)}'} in the metadata"


# --- a plain request ---------------------------------------------------------------------------------------------------


@claim("json.plain-request-is-answered", requirements=("OIP-ENDPOINTS", "OIP-ANSWER", "OIP-ISOLATION"), infers=False)
@rows(*make_role_rows(), Row("deployed", fit=ANY))
def plain_request_is_answered(target: AnyTarget, model: Model) -> None:
    """The server answers a plain inference request with status 200 and the correct outputs.

    Raises:
        BlockedError: the model is not served to this client.
    """
    if isinstance(target, GrpcTarget):
        _expect_answered_plain_call(target, model)
        return
    if isinstance(model, DeployedModel) and model.tensors and (model.trouble or model.demands):
        _expect_any_answer(target.infer(model.build_plain_json_request()), model)
    request = model.request(send="json") if model.is_json_capable else model.request(want="binary")
    reply = target.infer(request)
    if reply.status == UNAVAILABLE:  # the model may have to be loaded first
        reply = target.infer(request)
    require_permission(reply, model.name)
    if reply.status not in ABSENT_STATUSES:
        expect(reply, "OIP-ANSWER").answered()
    if expect(reply).answered().reply.status != 200:
        raise UnmetError("status 200 for an inference request", f"status {reply.status}", reply)
    expect_or_attribute_to_isolation(target, reply, lambda found: _expect_outputs(found, model))


# Codes of gRPC for a client that may not use a model, and for a model that is not there. No document forbids either.
_NOT_SERVED = ("NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED")


def _expect_answered_plain_call(target: GrpcTarget, model: Model) -> None:
    """Expect an answer to a plain call in typed or in raw contents; GRPC-TYPED and GRPC-RAW are about its tensors.

    Raises:
        BlockedError: the model is not served to this client, or no control shows that its inputs are right.
    """
    for request in target.build_good_requests(model):
        if (reply := target.infer(request)).succeeded:
            return
    outcome, is_http_judged = escape_text(reply.outcome()), HTTP in target.over_http.settings.transports
    if reply.exchange.code in _NOT_SERVED:
        raise BlockedError(f"{model.name} is not served over gRPC: {outcome}")
    if is_http_judged and (refusal := target.over_http.find_plain_refusal(model)):
        raise BlockedError(f"{model.name} answers no plain request over HTTP either: {escape_text(refusal.outcome())}")
    if model.is_deployed and not is_http_judged:
        raise BlockedError(f"{model.name} may need other inputs: {outcome}")
    expect(reply, "OIP-ENDPOINTS" if reply.status in ABSENT_STATUSES else "OIP-ANSWER").answered()


def _expect_any_answer(reply: Reply, model: DeployedModel) -> None:
    """Expect an answer with every declared output, whatever its values are."""
    if model.demands and not reply.succeeded:
        expected = f"an answer, as to the same request with {model.demands}"
        requirement = "OIP-DATA" if model.demands == NESTED_DATA else "OIP-ANSWER"
        raise UnmetError(expected, escape_text(reply.outcome()), reply, requirement=requirement)
    for name in model.declared_outputs:
        expect(reply, "OIP-ANSWER").output(name)
    if reply.succeeded and not reply.answer.outputs:
        about = attribution.attribute_unreadable_output(reply, "") or "OIP-ANSWER"
        raise UnmetError("an answer with outputs", escape_text(reply.outcome()), reply, requirement=about)


def _expect_outputs(reply: Reply, model: Model) -> None:
    """Expect the correct outputs; if JSON cannot represent them all, expect only that the outputs are present."""
    for spec in model.role.outputs if model.is_deployed else ():
        if spec.datatype not in DATATYPES:  # as in the answer that discovery has seen
            about = attribution.attribute_unreadable_output(reply, spec.name)
            expect(reply, about).free_of("datatype-unknown")
    for tensor in model.find_outputs(model.sample()):
        if model.is_json_capable:
            expect(reply, "OIP-ANSWER").tensors([tensor])
        else:  # the checks of datatypes judge the values of binary data
            expect(reply, "OIP-ANSWER").output(tensor.name)


@claim("json.metadata-have-status-200", requirements="OIP-ENDPOINTS", role="identity_int32", infers=False, fit=ANY)
@rows("server", "model")
def metadata_have_status_200(target: AnyTarget, model: Model, subject: str) -> str:
    """The server answers a request for its metadata, or for those of a model, with status 200."""
    reply = target.describe(model if subject == "model" else None)
    expect_described(reply)
    if reply.status != 200:
        raise UnmetError(f"status 200 for {subject} metadata", f"status {reply.status}", reply)
    return f"at {reply.exchange.message.path}"


# --- health ------------------------------------------------------------------------------------------------------------


@claim(
    "json.health-is-told",
    requirements="OIP-HEALTH",
    over_grpc=("OIP-ENDPOINTS/grpc",),
    role="identity_int32",
    infers=False,
    fit=ANY,
)
@rows("live", "ready", "model")
def health_is_told(target: AnyTarget, model: Model, subject: str) -> str:
    """The server does not deny that it is live, or that a model is ready, while it answers inference requests."""
    if isinstance(target, GrpcTarget):  # a call is answered whatever the server and its models are
        expect_described(target.ask_health(subject, model))
    return expect_while_serving(target, model, lambda: expect_health(target, model, subject)).outcome()


_NAMELESS = Only(GRPC, "a path over HTTP always has a name")


@claim(
    "json.unknown-model-is-not-ready",
    requirements="OIP-HEALTH",
    over_grpc=("OIP-REFUSAL/grpc",),
    role="identity_int32",
    infers=False,
    fit=ANY,
)
@rows(
    Row("", ("model", UNKNOWN_NAME)),
    Row("metadata", ("metadata", UNKNOWN_NAME), only=Only(GRPC, "`errors` has this request among its refusals")),
    Row("no-name", ("model", ""), only=_NAMELESS),
    Row("metadata-of-no-name", ("metadata", ""), only=_NAMELESS),
)
def unknown_model_is_not_ready(target: AnyTarget, model: Model, subject: str, name: str) -> None:
    """The server refuses an unknown model, or says that it is not ready.

    A call without a name may concern a default model: in proto3, an empty string means that the field is not given.
    """

    def ask(other: Model) -> Reply:
        return target.describe(other) if subject == "metadata" else target.ask_health(subject, other)

    ask(model)
    reply = ask(replace(model, name=name, version=""))
    is_denied = reply.succeeded and (reply.answer.document or {}).get("ready") is False
    if not is_denied and (name or not reply.succeeded):
        expect(reply).refused("a model that does not exist")
    if isinstance(target, GrpcTarget):  # over HTTP, the area `errors` infers after such a request
        expect_alive(target, model)
