"""The gRPC methods for the metadata and health of a server and its models, and calls that name a version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformance.checks.support.documents import (
    expect_listed_once,
    expect_requested_name,
    expect_while_serving,
    is_declared_shape,
)
from conformance.checks.support.over_grpc import expect_correct_outputs
from conformance.checks.support.versions import UNLISTED_NUMBER, find_default_version, may_be_alias, read_named_version
from conformance.expect.attribution import SERVER_FAULTS
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec, load
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES_OVER_GRPC, GRPC, HTTP
from conformance.spec.fit import ANY
from conformance.spec.text import escape_text
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.finding import format_value
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import Pb
from conformance.wire.request import Form, RequestedOutput


def expect_answer(reply: Reply, method: str) -> Pb:
    """Expect a call to succeed; return its response message."""
    expect(reply).answered()
    message = parse_message(reply.body, method)
    if message is None:
        raise UnmetError(f"a {method}Response", f"{len(reply.body)} bytes that are no {method}Response", reply)
    return message


def expect_no_description(reply: Reply, method: str, fault: str) -> None:
    """Expect a refusal; ModelReady may also answer that an unknown model is not ready."""
    if reply.succeeded and method == "ModelReady":
        if getattr(parse_message(reply.body, method), "ready", False):
            raise UnmetError(f"ready: false for {fault}, or a status other than OK", "ready: true", reply)
        return
    expect(reply).refused(fault)


# --- methods and metadata ----------------------------------------------------------------------------------------------


@check("grpc.methods-are-served", answers="OIP-ENDPOINTS/grpc", infers=False, over=(GRPC,))
@rows(
    ("ServerLive", "ServerLive", "live"),
    ("ServerReady", "ServerReady", "ready"),
    ("ServerMetadata", "ServerMetadata", ""),
)
def methods_are_served(target: GrpcTarget, method: str, flag: str) -> str | None:
    """The server answers ServerLive, ServerReady and ServerMetadata, whatever the values of live and ready are."""
    message = expect_answer(target.call(method), method)
    return f"{flag}: {str(getattr(message, flag)).lower()}" if flag else None


@check(
    "grpc.model-is-ready",
    answers=("OIP-ENDPOINTS/grpc", "OIP-HEALTH/grpc"),
    role="identity_int32",
    infers=False,
    over=(GRPC,),
    fit=ANY,
)
def model_is_ready(target: GrpcTarget, model: Model) -> str:
    """The server answers ModelReady and ServerLive; both are true while the model answers calls."""
    named = {"name": model.name, "version": model.version}

    def expect_health() -> str:
        for method, flag, fields in (("ServerLive", "live", {}), ("ModelReady", "ready", named)):
            reply = target.call(method, **fields)
            if not getattr(expect_answer(reply, method), flag):
                raise UnmetError(f"{flag}: true in {method}", f"{flag}: false", reply, requirement="OIP-HEALTH/grpc")
        return "live: true, ready: true"

    try:
        return expect_health()
    except UnmetError as unmet:
        if unmet.requirement is None:  # no answer, whatever the model does
            raise
    return expect_while_serving(target, model, expect_health, target.over_http.pause)


@check(
    "grpc.inference-over-http-is-one-over-grpc",
    answers="OIP-ENDPOINTS/grpc",
    role="identity_int32",
    infers=False,
    over=(GRPC, HTTP),
    fit=ANY,
)
def inference_over_http_is_one_over_grpc(target: GrpcTarget, model: Model) -> None:
    """The server answers ModelInfer for a model with which it infers over HTTP."""
    for request in target.build_good_requests(model):
        reply = target.infer(request)
        if reply.exchange.code not in SERVER_FAULTS:
            return
    if over_http := target.over_http.find_plain_refusal(model):
        raise BlockedError(f"{model.name} answers no plain request over HTTP either: {over_http.outcome()}")
    hint = " (is the service registered under another name?)" if reply.exchange.code == "UNIMPLEMENTED" else ""
    raise expect(reply).unmet("an answer to a plain call, as over HTTP", f"{escape_text(reply.outcome())}{hint}")


@check(
    "grpc.unknown-model-is-not-described", answers="OIP-REFUSAL/grpc", role="identity_int32", infers=False, over=(GRPC,)
)
@rows(
    Row("ModelReady", ("ModelReady", "there-is-no-such-model"), fit=ANY),
    Row("ModelMetadata", ("ModelMetadata", "there-is-no-such-model"), fit=ANY),
    Row("ModelReady-no-name", ("ModelReady", "")),
    Row("ModelMetadata-no-name", ("ModelMetadata", "")),
)
def unknown_model_is_not_described(target: GrpcTarget, model: Model, method: str, name: str) -> None:
    """The server has no metadata for an unknown model and does not call it ready.

    A call without a name may concern a default model: in proto3, an empty string means that the field is not given.
    """
    target.call(method, name=model.name, version=model.version)
    reply = target.call(method, name=name)
    if name or not reply.succeeded:
        expect_no_description(reply, method, "a model that does not exist")
    expect_alive(target, model)


@check("grpc.classification-is-listed", answers="CLS-LISTED/grpc", infers=False, over=(GRPC,))
def classification_is_listed(target: GrpcTarget) -> None:
    """ServerMetadata lists the extension classification."""
    reply = target.call("ServerMetadata")
    listed = list(expect_answer(reply, "ServerMetadata").extensions)
    if "classification" not in listed:
        raise UnmetError(
            "classification among the extensions of ServerMetadata", f"extensions {format_value(listed)}", reply
        )


@check(
    "grpc.model-metadata-describes-the-model",
    answers=("OIP-MODEL-METADATA/grpc", "OIP-MODEL-NAME-ASKED/grpc"),
    infers=False,
    over=(GRPC,),
)
@rows(*[Row(name, role=name) for name in load()], Row("own", fit=ANY))
def model_metadata_describes_the_model(target: GrpcTarget, model: Model) -> None:
    """ModelMetadata gives name, datatype and shape of each input and output, in repeated calls, too."""
    target.call("ModelMetadata", name=model.name, version=model.version)
    reply = target.call("ModelMetadata", name=model.name, version=model.version)
    message = expect_answer(reply, "ModelMetadata")
    if not message.name:
        raise UnmetError("the name of the model in ModelMetadata", "no name", reply)
    for entries in (message.inputs, message.outputs):
        expect_listed_once(reply, [entry.name for entry in entries])
    if model.is_own_oracle:
        _expect_own_metadata(reply, message, model)
    else:
        _expect_role_metadata(reply, message, model)
    _expect_requested_name(target, reply, message.name, model)


def _expect_role_metadata(reply: Reply, message: Pb, model: Model) -> None:
    """Expect the metadata of a model to describe the tensors of its role."""
    for entries, specs, names in (
        (message.inputs, model.role.inputs, model.names.inputs),
        (message.outputs, model.role.outputs, model.names.outputs),
    ):
        described = {entry.name: entry for entry in entries}
        for spec in specs:
            _expect_tensor_described(
                reply, spec, names.get(spec.name, spec.name), described, batching=model.role.batching
            )


def _expect_own_metadata(reply: Reply, message: Pb, model: Model) -> None:
    """Expect the metadata of a deployed model to describe the inputs that it accepts; another check has the outputs."""
    if not message.inputs and not message.outputs:
        raise NotApplicableError(f"the metadata of {model.name} list no tensors")
    described = {entry.name: entry for entry in message.inputs}
    for tensor in model.sample():
        entry = described.get(tensor.name)
        if entry is None:
            raise UnmetError(f"{tensor.name} in ModelMetadata", f"the tensors {format_value(list(described))}", reply)
        if entry.datatype != tensor.datatype:
            wanted = f"{tensor.name} with datatype {tensor.datatype}, as in inference with the model"
            raise UnmetError(wanted, f"datatype {format_value(entry.datatype)}", reply)
        if 0 in entry.shape and tensor.elements:
            wanted = f"{tensor.name} with a shape of {tensor.elements} elements, as in inference with the model"
            raise UnmetError(wanted, f"shape {list(entry.shape)}", reply)


def _expect_requested_name(target: GrpcTarget, reply: Reply, name: str, model: Model) -> None:
    """Expect ModelMetadata to contain the model name of the request."""

    def ask(other: Model) -> str | None:
        message = parse_message(target.call("ModelMetadata", name=other.name).body, "ModelMetadata")
        return message and str(message.name)

    expect_requested_name(target, reply, name, model, "OIP-MODEL-METADATA", ask)


def _expect_tensor_described(
    reply: Reply, spec: TensorSpec, name: str, described: dict[str, Any], *, batching: bool
) -> None:
    """Expect ModelMetadata to give the datatype and a possible shape of a tensor of a role."""
    if name not in described:
        raise UnmetError(f"{name} in ModelMetadata", f"the tensors {format_value(list(described))}", reply)
    entry = described[name]
    if entry.datatype != spec.datatype:
        raise UnmetError(
            f"{name} with datatype {spec.datatype} in ModelMetadata", f"datatype {format_value(entry.datatype)}", reply
        )
    shape = list(entry.shape)
    if not (is_declared_shape(spec.shape, shape) or (batching and shape and is_declared_shape(spec.shape, shape[1:]))):
        wanted = f"{list(spec.shape)}" + (f" or {[-1, *spec.shape]}" if batching else "")
        raise UnmetError(f"{name} with shape {wanted} in ModelMetadata", f"shape {shape}", reply)


# --- versions ---------------------------------------------------------------------------------------------------------

UNLISTED = "no-such-version"
MODEL_METHODS = ("ModelReady", "ModelMetadata")


def _list_versions(target: GrpcTarget, model: Model) -> list[str]:
    """Return the versions of a model.

    Raises:
        NotApplicable: the metadata list no versions.
        Blocked: the call for metadata fails.
    """
    reply = target.call("ModelMetadata", name=model.name, version=model.version)
    message = parse_message(reply.body, "ModelMetadata") if reply.succeeded else None
    if message is None:
        raise BlockedError(f"no metadata of {model.name}: {reply.outcome()}")
    if not any(message.versions):
        raise NotApplicableError(f"the metadata of {model.name} list no versions")
    return [str(version) for version in message.versions if version]


@check("grpc.listed-version-is-served", answers="OIP-VERSIONED/grpc", over=(GRPC,))
@rows(
    Row("typed", ("json",), role="identity_int32", fit=ANY),
    Row("raw", ("binary",), role="identity_int32"),
    Row("several-inputs", ("binary",), role="multi"),
    Row("batching", ("json",), role="batching"),
    Row("classes", ("json", 2), role="scores", needs=CLASSES_OVER_GRPC),
)
def listed_version_is_served(target: GrpcTarget, model: Model, send: Form, count: int | None = None) -> None:
    """The server answers a call that names a listed version; a version other than the default may refuse the inputs."""
    versions = _list_versions(target, model)
    own = model.version or find_default_version(target, model, versions)
    wanted = [RequestedOutput(model.role.outputs[0].name, classification=count)] if count else None
    for version in dict.fromkeys([*filter(None, [own]), *versions[:3]]):
        named = replace(model, version=version)
        reply = target.infer(named.request(send=send, outputs=wanted))
        if version != own and reply.is_refusal:
            continue
        with block_if(
            lambda: not _is_right_without_version(target, model, send, wanted),
            "the answer without a version is also wrong",
        ):
            message = expect_answer(reply, "ModelInfer")
            if count is None and version == own:  # another version may compute something else
                expect_correct_outputs(reply, model, model.sample())
        name = message.model_version
        if version not in versions or name in ("", version):  # a configured version that is not listed may be an alias
            continue
        if name in versions and may_be_alias(target, model, name):
            continue
        # A word that the metadata do not list may be another name of the version, if answers always name it so.
        plain = replace(model, version="").request(send=send, outputs=wanted)
        if name in versions or (version == own and name != read_named_version(target.infer(plain))):
            raise UnmetError(f"model_version {format_value(version)}, or none", f"{format_value(name)}", reply)


def _is_right_without_version(
    target: GrpcTarget, model: Model, send: Form, wanted: list[RequestedOutput] | None
) -> bool:
    """Say whether the call succeeds without a version; if no classes are requested, the answer must be correct."""
    reply = target.infer(model.request(send=send, outputs=wanted))
    return reply.succeeded if wanted else is_met(lambda: expect_correct_outputs(reply, model, model.sample()))


@check(
    "grpc.listed-version-is-described",
    answers=("OIP-VERSIONED/grpc", "OIP-MODEL-NAME-ASKED/grpc"),
    role="identity_int32",
    infers=False,
    fit=ANY,
    over=(GRPC,),
)
@rows(*MODEL_METHODS)
def listed_version_is_described(target: GrpcTarget, model: Model, method: str) -> None:
    """The server calls the default version ready and has metadata for it; other listed versions may not be loaded.

    Raises:
        NotApplicable: the metadata list no versions, or the default version is unknown.
    """
    versions = _list_versions(target, model)
    version = model.version or find_default_version(target, model, versions)
    if not version:
        raise NotApplicableError(f"the default version of {model.name} is unknown")
    message = expect_answer(reply := target.call(method, name=model.name, version=version), method)
    if method == "ModelReady" and not message.ready and _is_ready(target, model):
        raise UnmetError("ready: true, as without a version", "ready: false", reply)
    if method == "ModelMetadata" and message.name:
        _expect_requested_name(target, reply, message.name, model)


def _is_ready(target: GrpcTarget, model: Model) -> bool:
    """Say whether the server reports a model as ready if the call names no version."""
    reply = target.call("ModelReady", name=model.name)
    message = parse_message(reply.body, "ModelReady") if reply.succeeded else None
    return message is not None and bool(message.ready)


@check("grpc.unlisted-version-is-refused", answers="GRPC-VERSION-UNKNOWN", role="identity_int32", over=(GRPC,))
@rows(
    *[
        Row(f"{method}-{kind}", (method, version), fit=ANY if (method, kind) == ("ModelInfer", "number") else None)
        for method in ("ModelInfer", *MODEL_METHODS)
        for kind, version in (("text", UNLISTED), ("number", UNLISTED_NUMBER))
    ]
)
def unlisted_version_is_refused(target: GrpcTarget, model: Model, method: str, version: str) -> None:
    """The server refuses a call to an unlisted version; ModelReady may answer that the version is not ready."""
    if version in _list_versions(target, model):
        raise NotApplicableError(f"{model.name} has a version {version}")
    named = replace(model, version=version)
    if method == "ModelInfer":
        expect(target.infer(named.request(send="json"))).refused("a version that does not exist")
    else:
        expect_no_description(
            target.call(method, name=model.name, version=version), method, "a version that does not exist"
        )
    expect_alive(target, model)
