"""Finds the extensions that a target offers, by its metadata and by probe requests.

Source: Open Inference Protocol, "Server Metadata" and "Model Metadata", REST and gRPC.

A refused probe means not offered; an answered one means offered, however wrong the answer is. A server cannot answer
inputs in an unknown form, but may ignore an unknown option, like any parameter. So an answer proves nothing if it
equals the answer without the option. A request that broke the server is not a refusal; `Target.broken` records it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.discovery.control_oracle import as_tensor
from conformance.discovery.deployed_model import DeployedModel, encode_raw_body, has_classes
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.roles.model import Model
from conformance.spec.extensions import HTTP, OVER_GRPC
from conformance.spec.fit import SCORE_DATATYPES
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import make_grpc_call, make_infer_message
from conformance.wire.json_text import parse_json
from conformance.wire.request import INFERENCE_HEADER, InferRequest, Message, RequestedOutput

# Extensions that server metadata list by name. Raw binary requests have no name, since one of the two documents of the
# binary tensor data extension does not define them: they are offered if they work.
LISTED = ("binary_tensor_data", "classification")
LISTED_OVER_GRPC = {"classification_grpc": "classification"}

# Roles whose models can probe an extension, in order of preference.
_BINARY_PROBE_ROLES = ("identity_int32", "identity_fp32", "identity_int64", "identity_uint8", "fixed", "multi")
_RAW_PROBE_ROLES = ("raw_fixed", "raw_variable", "raw_batching", "identity_int32", "identity_fp32")
_CLASS_PROBE_ROLES = ("scores", "scores_labelled", "scores_batching", "identity_fp32", "identity_int32")


# --- metadata ---------------------------------------------------------------------------------------------------------


def read_http_metadata(target: Target, survey: DiscoveryResult) -> None:
    """Read name, version and extensions from the answer to GET /v2."""
    reply = target.get("/v2")
    document, _ = parse_json(reply.body)
    if not reply.succeeded or not isinstance(document, dict):
        survey.silence = str(reply.exchange.failure or f"HTTP {reply.status}")
        survey.coding = reply.unrequested_coding
        return
    survey.name = _keep_text(document.get("name"))
    survey.version = _keep_text(document.get("version"))
    listed = document.get("extensions")
    survey.listed = [str(entry) for entry in listed] if isinstance(listed, list) else []


def _keep_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def read_grpc_metadata(target: Target, survey: DiscoveryResult) -> None:
    """Read ServerMetadata; name and version from HTTP take precedence."""
    reply = target.send(make_grpc_call("ServerMetadata"))
    message = parse_message(reply.body, "ServerMetadata") if reply.succeeded else None
    if message is None:
        survey.silence = survey.silence or reply.outcome()
        return
    survey.name = survey.name or message.name
    survey.version = survey.version or message.version
    survey.listed_grpc = list(message.extensions)


def find_absence(target: Target, role: str) -> Reply | None:
    """Return the metadata answer that shows that a role's model is missing; None if the model exists.

    A missing model answers neither a metadata nor a plain request. Both go over HTTP if HTTP is judged, since a model
    may be served only over HTTP.
    """
    model = target.model(role)
    if model is None:
        return None
    if HTTP in target.settings.transports:
        metadata = target.get(model.path)
    else:
        metadata = target.send(make_grpc_call("ModelMetadata", name=model.name, version=model.version))
    if metadata.succeeded or (model.role.is_json_capable and ask(target, model.request(send="json")).succeeded):
        return None
    return metadata


def ask(target: Target, request: InferRequest) -> Reply:
    """Send a request over HTTP, or over gRPC if only gRPC is judged."""
    return target.infer(request if HTTP in target.settings.transports else make_infer_message(request))


# --- probes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """An answer to a request that uses an extension.

    Attributes:
        plain: the answer to the same request without the extension, if a server may ignore the extension; else None.
    """

    reply: Reply
    plain: Reply | None = None

    @property
    def is_recognized(self) -> bool:
        """Whether the extension affected the answer, correctly or not."""
        return is_answered(self.reply) and (
            self.plain is None or _extract_form(self.reply) != _extract_form(self.plain)
        )


def send_probe(target: Target, request: InferRequest | Message, plain: InferRequest | Message) -> Probe:
    """Send a request with an option, and, if that is answered, the plain request."""
    reply = target.infer(request)
    return Probe(reply, target.infer(plain) if is_answered(reply) else None)


def is_answered(reply: Reply) -> bool:
    """Whether the status is 2xx; the answer may be incomplete."""
    return reply.status is not None and 200 <= reply.status < 300


def _extract_form(reply: Reply) -> tuple[object, ...]:
    """Return the properties of an answer that are equal in answers of the same form."""
    answer = reply.answer
    outputs = [(output.name, output.datatype, output.shape, output.binary) for output in answer.outputs]
    outputs.sort(key=str)
    kinds = sorted({finding.kind for finding in answer.findings})
    return reply.status, reply.header(INFERENCE_HEADER), outputs, kinds, reply.exchange.failure


def record_extension(survey: DiscoveryResult, extension: str, wanted: Sequence[str], probes: Iterable[Probe]) -> None:
    """Record whether an extension is offered; `probes` lazily yields answers to requests that use it."""
    if wanted:
        if extension in wanted:
            survey.offered[extension] = "asked for"
        return
    if (extension in LISTED and extension in survey.listed) or LISTED_OVER_GRPC.get(extension) in survey.listed_grpc:
        survey.offered[extension] = "listed"
        return
    ignored = "its parameter is ignored" if extension in OVER_GRPC else "its parameters are ignored"
    refusal = ""
    for probe in probes:
        if probe.is_recognized:
            survey.offered[extension] = "works"
            return
        refusal = ignored if is_answered(probe.reply) else probe.reply.outcome()
        survey.coding = survey.coding or probe.reply.unrequested_coding
    survey.refusals[extension] = refusal


def _find_models(target: Target, roles: Sequence[str]) -> Iterator[Model]:
    """Yield the models of these roles that the target has."""
    for role in roles:
        model = target.model(role)
        if model is not None:
            yield model


def _probe_binary(target: Target) -> Iterator[Probe]:
    """Probe binary data in both directions, then in each alone: a server may support only inputs or only outputs."""
    for model in _find_models(target, _BINARY_PROBE_ROLES):
        for want in ("binary", None):
            yield Probe(target.infer(model.request(send="binary", want=want)))
    for model in _find_models(target, _BINARY_PROBE_ROLES):
        names = [spec.name for spec in model.role.outputs]
        yield send_probe(target, model.request(send="json", want="binary"), model.request(send="json", outputs=names))


def _probe_raw(target: Target) -> Iterator[Probe]:
    for model in _find_models(target, _RAW_PROBE_ROLES):
        yield Probe(target.infer(model.raw(bytes(model.sample(batch=1)[0].to_bytes()))))


def _probe_classification(target: Target) -> Iterator[Probe]:
    for model in _find_models(target, _CLASS_PROBE_ROLES):
        name = model.role.outputs[0].name
        wanted = model.request(send="json", outputs=[RequestedOutput(name, classification=1)])
        yield send_probe(target, wanted, model.request(send="json", outputs=[name]))


PROBES: dict[str, Callable[[Target], Iterator[Probe]]] = {
    "binary_tensor_data": _probe_binary,
    "raw": _probe_raw,
    "classification": _probe_classification,
}


def probe_scored_roles_over_grpc(target: Target) -> Iterator[Probe]:
    """Probe classification over gRPC with the models of roles that have scores."""
    return probe_classes_over_grpc(target, _find_models(target, _CLASS_PROBE_ROLES))


def probe_classes_over_grpc(target: Target, models: Iterable[Model]) -> Iterator[Probe]:
    """Probe classification over gRPC with models that have scores."""
    for model in models:
        name = next(spec.name for spec in model.role.outputs if spec.datatype in SCORE_DATATYPES)
        asking = model.request(send=model.plain_send, outputs=[RequestedOutput(name, classification=1)])
        plain = model.request(send=model.plain_send, outputs=[name])
        yield send_probe(target, make_infer_message(asking), make_infer_message(plain))


# --- probes of deployed models ----------------------------------------------------------------------------------------


def probe_models(target: Target, extension: str, models: Sequence[DeployedModel]) -> Iterator[Probe]:
    """Probe an extension with deployed models."""
    for model in models:
        if extension == "binary_tensor_data":
            yield from _probe_own_binary(target, model)
        elif extension == "raw" and len(model.tensors) == 1:
            yield from (
                Probe(target.infer(model.raw(encode_raw_body(tensor)))) for tensor in model.items() if tensor.elements
            )
        elif extension == "classification":
            yield from _probe_own_classes(target, model)


def _probe_own_binary(target: Target, model: DeployedModel) -> Iterator[Probe]:
    """Probe binary outputs, then binary inputs."""
    if model.is_json_capable:
        yield send_probe(target, model.full(), model.plain())
    else:
        yield Probe(target.infer(model.full()))
    yield Probe(target.infer(model.request(send="binary", outputs=model.build_outputs_member())))


def _probe_own_classes(target: Target, model: DeployedModel) -> Iterator[Probe]:
    """Request the top class of the first output that can be classified."""
    for output in target.infer(model.plain()).answer.outputs:
        tensor = as_tensor(output)
        if tensor is not None and has_classes(tensor):
            wanted = model.request(send=model.sends, outputs=[RequestedOutput(tensor.name, classification=1)])
            yield send_probe(target, wanted, model.request(send=model.sends, outputs=[tensor.name]))
            return
