"""The methods about the server and its models."""

from __future__ import annotations

from typing import Any

from conformance.checks.support.documents import fits
from conformance.expect.expectation import expect
from conformance.expect.refusals import expect_alive
from conformance.expect.unmet import NotApplicableError, UnmetError
from conformance.roles.model import Model
from conformance.roles.roles import TensorSpec, load
from conformance.spec.check import Row, check, rows
from conformance.spec.extensions import GRPC
from conformance.spec.fit import ANY
from conformance.transport.exchange import Reply
from conformance.transport.grpc_target import GrpcTarget
from conformance.wire.finding import format_value
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import Pb

TYPICAL_ROLES = ("identity_int32", "identity_bytes", "multi", "fixed", "batching", "rank4")


def expect_answer(reply: Reply, method: str) -> Pb:
    """Return the response message of a call that has to be answered."""
    expect(reply).answered()
    message = parse_message(reply.body, method)
    if message is None:
        raise UnmetError(f"a {method}Response", f"{len(reply.body)} bytes that are none", reply)
    return message


def expect_undescribed(reply: Reply, method: str, fault: str) -> None:
    """Expect a refusal; ModelReady may say that what there is not is not ready, too."""
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
    """The methods about the server answer; whether it calls itself live and ready is its own affair."""
    message = expect_answer(target.call(method), method)
    return f"{flag}: {str(getattr(message, flag)).lower()}" if flag else None


@check("grpc.model-is-ready", answers="OIP-ENDPOINTS/grpc", role="identity_int32", infers=False, over=(GRPC,), fit=ANY)
def model_is_ready(target: GrpcTarget, model: Model) -> str:
    """ModelReady answers for a model that answers calls; what it says is the server's own affair."""
    message = expect_answer(target.call("ModelReady", name=model.name, version=model.version), "ModelReady")
    return f"ready: {str(message.ready).lower()}"


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
    """A model that there is not has no metadata and is not ready, also right after one that has and is."""
    target.call(method, name=model.name, version=model.version)
    reply = target.call(method, name=name)
    expect_undescribed(reply, method, "a model that there is not")
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
@rows(*[Row(name, role=name, thorough=name not in TYPICAL_ROLES) for name in load()], Row("own", fit=ANY))
def model_metadata_describes_the_model(target: GrpcTarget, model: Model) -> None:
    """ModelMetadata gives name, datatype and shape of each input and output."""
    reply = target.call("ModelMetadata", name=model.name, version=model.version)
    message = expect_answer(reply, "ModelMetadata")
    if not message.name:
        raise UnmetError("the name of the model", "no name", reply)
    if model.is_own_oracle:
        _expect_own_described(reply, message, model)
        return
    for entries, specs, names in (
        (message.inputs, model.role.inputs, model.names.inputs),
        (message.outputs, model.role.outputs, model.names.outputs),
    ):
        described = {entry.name: entry for entry in entries}
        for spec in specs:
            _expect_described(reply, spec, names.get(spec.name, spec.name), described, batching=model.role.batching)
    expect_name_asked(reply, "name", message.name, model)


def _expect_own_described(reply: Reply, message: Pb, model: Model) -> None:
    """Expect the metadata of a deployed model to describe the tensors that it takes and answers."""
    if not message.inputs and not message.outputs:
        raise NotApplicableError(f"the metadata of {model.name} list no tensors")
    tensors = model.sample()
    for entries, really in ((message.inputs, tensors), (message.outputs, model.find_outputs(tensors))):
        described = {entry.name: entry for entry in entries}
        for tensor in really:
            entry = described.get(tensor.name)
            if entry is None:
                raise UnmetError(
                    f"{tensor.name} in ModelMetadata", f"the tensors {format_value(list(described))}", reply
                )
            if entry.datatype != tensor.datatype:
                wanted = f"{tensor.name} with datatype {tensor.datatype}, as it really is"
                raise UnmetError(wanted, f"datatype {format_value(entry.datatype)}", reply)
            if 0 in entry.shape and tensor.elements:
                wanted = f"{tensor.name} with a shape of {tensor.elements} elements, as it really is"
                raise UnmetError(wanted, f"shape {list(entry.shape)}", reply)
    expect_name_asked(reply, "name", message.name, model)


def expect_name_asked(reply: Reply, member: str, found: str, model: Model) -> None:
    """Expect the name under which a model was asked for; an alias is a server's own affair, and advised against."""
    if found != model.name:
        actual = f"{member} {format_value(found)}"
        raise UnmetError(f"{member} {format_value(model.name)}", actual, reply, requirement="OIP-MODEL-NAME-ASKED/grpc")


def _expect_described(reply: Reply, spec: TensorSpec, name: str, described: dict[str, Any], *, batching: bool) -> None:
    if name not in described:
        raise UnmetError(f"{name} in ModelMetadata", f"the tensors {format_value(list(described))}", reply)
    entry = described[name]
    if entry.datatype != spec.datatype:
        raise UnmetError(f"{name} with datatype {spec.datatype}", f"datatype {format_value(entry.datatype)}", reply)
    shape = list(entry.shape)
    if not (fits(spec.shape, shape) or (batching and shape and fits(spec.shape, shape[1:]))):
        wanted = f"{list(spec.shape)}" + (f" or {[-1, *spec.shape]}" if batching else "")
        raise UnmetError(f"{name} with shape {wanted}", f"shape {shape}", reply)
