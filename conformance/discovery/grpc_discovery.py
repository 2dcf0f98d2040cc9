"""What a target offers over gRPC: its metadata, and a request for classes.

Where HTTP is judged, too, the roles are those that were found there: a model that is served over HTTP alone shows as
one that answers no plain request. Source: Open Inference Protocol, gRPC, "Server Metadata" and "Model Metadata".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from conformance.discovery.probe import is_answered, send_probe
from conformance.roles.model import Model
from conformance.spec.fit import SCORE_DATATYPES
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import make_grpc_call, make_infer_message
from conformance.wire.request import RequestedOutput

if TYPE_CHECKING:
    from conformance.discovery.discovery_result import DiscoveryResult

EXTENSION, LISTED_AS = "classification_grpc", "classification"


def read_server_metadata(target: Target, survey: DiscoveryResult) -> None:
    """Note what ServerMetadata says; name and version are HTTP's where that has them."""
    reply = target.send(make_grpc_call("ServerMetadata"))
    message = parse_message(reply.body, "ServerMetadata") if reply.succeeded else None
    if message is None:
        survey.silence = survey.silence or reply.outcome()
        return
    survey.name = survey.name or message.name
    survey.version = survey.version or message.version
    survey.listed_grpc = list(message.extensions)


def find_absence(target: Target, role: str) -> Reply | None:
    """Return what shows that a role's model is not there: no metadata, and no answer to a plain request."""
    model = target.model(role)
    if model is None:
        return None
    reply = target.send(make_grpc_call("ModelMetadata", name=model.name, version=model.version))
    if reply.succeeded or (model.role.is_json_capable and _plain(target, model).succeeded):
        return None
    return reply


def _plain(target: Target, model: Model) -> Reply:
    return target.send(make_infer_message(model.request(send="json")))


def record_classification(
    target: Target, survey: DiscoveryResult, wanted: Sequence[str], models: Iterable[Model]
) -> None:
    """Note whether classification over gRPC is offered; `models` have scores, and are asked for a class if need be."""
    if wanted:
        if EXTENSION in wanted:
            survey.offered[EXTENSION] = "asked for"
        return
    if LISTED_AS in survey.listed_grpc:
        survey.offered[EXTENSION] = "listed"
        return
    refusal = ""
    for model in models:
        name = next(spec.name for spec in model.role.outputs if spec.datatype in SCORE_DATATYPES)
        asking = model.request(send=model.plain_send, outputs=[RequestedOutput(name, classification=1)])
        plain = model.request(send=model.plain_send, outputs=[name])
        probe = send_probe(target, make_infer_message(asking), make_infer_message(plain))
        if probe.is_recognized:
            survey.offered[EXTENSION] = "works"
            return
        refusal = "its parameter is ignored" if is_answered(probe.reply) else probe.reply.outcome()
    survey.refusals[EXTENSION] = refusal
