"""Versions of a model: those that ModelMetadata lists are served, others are not."""

from __future__ import annotations

from dataclasses import replace

from conformance.checks.grpc_calls.methods import expect_answer, expect_name_asked, expect_undescribed
from conformance.checks.support.over_grpc import expect_right
from conformance.checks.support.versions import find_default_version
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import BlockedError, NotApplicableError, UnmetError, block_if, is_met
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import CLASSES_OVER_GRPC, GRPC
from conformance.spec.fit import ANY
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.finding import format_value
from conformance.wire.grpc_answer import parse_message
from conformance.wire.request import Form, RequestedOutput

UNLISTED = "no-such-version"
UNLISTED_NUMBER = "4711"  # for servers whose versions are numbers
MODEL_METHODS = ("ModelReady", "ModelMetadata")


def _listed(target: GrpcTarget, model: Model) -> list[str]:
    """Return the versions of a model.

    Raises:
        NotApplicable: metadata list none.
        Blocked: there are no metadata.
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
    """A call that names a version which metadata list is answered by that version; one with other inputs may refuse it."""
    versions = _listed(target, model)
    own = model.version or find_default_version(target, model, versions)
    wanted = [RequestedOutput(model.role.outputs[0].name, classification=count)] if count else None
    for version in dict.fromkeys([*filter(None, [own]), *versions[:3]]):
        named = replace(model, version=version)
        reply = target.infer(named.request(send=send, outputs=wanted))
        if version != own and reply.is_refusal:
            continue
        with block_if(
            lambda: not _is_answered(target, model, send, wanted), "the call is wrong without a version, too"
        ):
            message = expect_answer(reply, "ModelInfer")
            if count is None and version == own:  # another one may compute something else
                expect_right(reply, model, model.sample())
        if message.model_version not in ("", version):
            raise UnmetError(
                f"model_version {format_value(version)}, or none", f"{format_value(message.model_version)}", reply
            )


def _is_answered(target: GrpcTarget, model: Model, send: Form, wanted: list[RequestedOutput] | None) -> bool:
    """Say whether the call is answered where it names no version, and right where it asks for no classes."""
    reply = target.infer(model.request(send=send, outputs=wanted))
    return reply.succeeded if wanted else is_met(lambda: expect_right(reply, model, model.sample()))


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
    """A version that metadata list is ready, and has metadata of its own."""
    version = _listed(target, model)[0]
    message = expect_answer(reply := target.call(method, name=model.name, version=version), method)
    if method == "ModelReady" and not message.ready and _is_ready(target, model):
        raise UnmetError("ready: true, as without a version", "ready: false", reply)
    if method == "ModelMetadata" and message.name:
        expect_name_asked(reply, "name", message.name, model)


def _is_ready(target: GrpcTarget, model: Model) -> bool:
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
    """A call that names a version which metadata do not list is refused, or says that it is not ready."""
    if version in _listed(target, model):
        raise NotApplicableError(f"{model.name} has a version {version}")
    named = replace(model, version=version)
    if method == "ModelInfer":
        expect(target.infer(named.request(send="json"))).refused("a version that there is not")
    else:
        expect_undescribed(target.call(method, name=model.name, version=version), method, "a version that there is not")
    expect_alive(target, model)
