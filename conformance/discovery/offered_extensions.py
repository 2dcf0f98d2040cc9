"""What a target offers: what its metadata say, and whether requests that use an extension are answered.

Source: Open Inference Protocol, "Server Metadata" and "Model Metadata", REST and gRPC.

Refused means not offered; answered means offered, and to be judged, however wrong the answer is. Inputs in a form that
a server does not know cannot be answered; an option that it does not know may be ignored, as any parameter may. So an
answer that is what the request without the option gets says nothing. What is neither refused nor answered, because the
server broke, is no refusal either: `Target.broken` has it.
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

# Extensions that server metadata list by their names. Raw binary requests have none: one of the two documents of the
# binary tensor data extension does not know them, so they are offered when they work.
LISTED = ("binary_tensor_data", "classification")
LISTED_OVER_GRPC = {"classification_grpc": "classification"}

# Roles whose models show an extension, the first of them that is there.
_SIMPLE = ("identity_int32", "identity_fp32", "identity_int64", "identity_uint8", "fixed", "multi")
_RAW = ("raw_fixed", "raw_variable", "raw_batching", "identity_int32", "identity_fp32")
_SCORED = ("scores", "scores_labelled", "scores_batching", "identity_fp32", "identity_int32")


# --- metadata ---------------------------------------------------------------------------------------------------------


def read_http_metadata(target: Target, survey: DiscoveryResult) -> None:
    """Note what the answer to GET /v2 says of the server."""
    reply = target.get("/v2")
    document, _ = parse_json(reply.body)
    if not reply.succeeded or not isinstance(document, dict):
        survey.silence = str(reply.exchange.failure or f"HTTP {reply.status}")
        survey.coding = reply.unasked_coding
        return
    survey.name = _text(document.get("name"))
    survey.version = _text(document.get("version"))
    listed = document.get("extensions")
    survey.listed = [str(entry) for entry in listed] if isinstance(listed, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def read_grpc_metadata(target: Target, survey: DiscoveryResult) -> None:
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
    """Return what shows that a role's model is not there: no metadata, and no answer to a plain request.

    Over HTTP where that is judged: a model that is served over HTTP alone then answers no plain call.
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
    """Send a request over HTTP, or over gRPC where that alone is judged."""
    return target.infer(request if HTTP in target.settings.transports else make_infer_message(request))


# --- probes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """An answer to a request that uses an extension.

    Attributes:
        plain: the answer to the same request without it, where a server might have ignored it; else None.
    """

    reply: Reply
    plain: Reply | None = None

    @property
    def is_recognized(self) -> bool:
        """Whether the server took notice of the extension, rightly or wrongly."""
        return is_answered(self.reply) and (self.plain is None or _gist(self.reply) != _gist(self.plain))


def send_probe(target: Target, request: InferRequest | Message, plain: InferRequest | Message) -> Probe:
    """Send a request with an option, and the plain one where that is answered."""
    reply = target.infer(request)
    return Probe(reply, target.infer(plain) if is_answered(reply) else None)


def is_answered(reply: Reply) -> bool:
    """Whether an answer came that is no refusal; it need not be whole."""
    return reply.status is not None and 200 <= reply.status < 300


def _gist(reply: Reply) -> tuple[object, ...]:
    """Return what of an answer is the same in two of one form."""
    answer = reply.answer
    outputs = [(output.name, output.datatype, output.shape, output.binary) for output in answer.outputs]
    outputs.sort(key=str)
    kinds = sorted({finding.kind for finding in answer.findings})
    return reply.status, reply.header(INFERENCE_HEADER), outputs, kinds, reply.exchange.failure


def record_extension(survey: DiscoveryResult, extension: str, wanted: Sequence[str], probes: Iterable[Probe]) -> None:
    """Note whether an extension is offered: `probes` are answers to requests that use it, asked for when needed."""
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
        survey.coding = survey.coding or probe.reply.unasked_coding
    survey.refusals[extension] = refusal


def _find_models(target: Target, roles: Sequence[str]) -> Iterator[Model]:
    """Yield the models of these roles that the target has."""
    for role in roles:
        model = target.model(role)
        if model is not None:
            yield model


def _probe_binary(target: Target) -> Iterator[Probe]:
    """Ask for binary data both ways, then each way alone: a server may take them, or give them, and not the other."""
    for model in _find_models(target, _SIMPLE):
        for want in ("binary", None):
            yield Probe(target.infer(model.request(send="binary", want=want)))
    for model in _find_models(target, _SIMPLE):
        names = [spec.name for spec in model.role.outputs]
        yield send_probe(target, model.request(send="json", want="binary"), model.request(send="json", outputs=names))


def _probe_raw(target: Target) -> Iterator[Probe]:
    for model in _find_models(target, _RAW):
        yield Probe(target.infer(model.raw(bytes(model.sample(batch=1)[0].to_bytes()))))


def _probe_classification(target: Target) -> Iterator[Probe]:
    for model in _find_models(target, _SCORED):
        name = model.role.outputs[0].name
        wanted = model.request(send="json", outputs=[RequestedOutput(name, classification=1)])
        yield send_probe(target, wanted, model.request(send="json", outputs=[name]))


PROBES: dict[str, Callable[[Target], Iterator[Probe]]] = {
    "binary_tensor_data": _probe_binary,
    "raw": _probe_raw,
    "classification": _probe_classification,
}


def probe_scored_roles_over_grpc(target: Target) -> Iterator[Probe]:
    """Ask the models of roles that have scores for a class, over gRPC."""
    return probe_classes_over_grpc(target, _find_models(target, _SCORED))


def probe_classes_over_grpc(target: Target, models: Iterable[Model]) -> Iterator[Probe]:
    """Ask models that have scores for a class, over gRPC."""
    for model in models:
        name = next(spec.name for spec in model.role.outputs if spec.datatype in SCORE_DATATYPES)
        asking = model.request(send=model.plain_send, outputs=[RequestedOutput(name, classification=1)])
        plain = model.request(send=model.plain_send, outputs=[name])
        yield send_probe(target, make_infer_message(asking), make_infer_message(plain))


# --- probes of deployed models ----------------------------------------------------------------------------------------


def probe_models(target: Target, extension: str, models: Sequence[DeployedModel]) -> Iterator[Probe]:
    """Send deployed models requests that use an extension."""
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
    """Look for binary data among the outputs, then send them."""
    if model.is_json_capable:
        yield send_probe(target, model.full(), model.plain())
    else:
        yield Probe(target.infer(model.full()))
    yield Probe(target.infer(model.request(send="binary", outputs=model.listed())))


def _probe_own_classes(target: Target, model: DeployedModel) -> Iterator[Probe]:
    """Ask for the highest class of the first output that has classes."""
    for output in target.infer(model.plain()).answer.outputs:
        tensor = as_tensor(output)
        if tensor is not None and has_classes(tensor):
            wanted = model.request(send=model.sends, outputs=[RequestedOutput(tensor.name, classification=1)])
            yield send_probe(target, wanted, model.request(send=model.sends, outputs=[tensor.name]))
            return
