"""Finds the extensions that a target offers, by its metadata and by probe requests.

Source: Open Inference Protocol, "Server Metadata" and "Model Metadata", REST and gRPC.

If the server refuses the probe of an extension, the extension is not offered. If the server answers, even wrongly, the
extension is offered. There is one exception: a server may ignore unknown parameters. So the answer to an option that is
a parameter counts only if it differs from the answer without that option. A request that broke the server is not a
refusal; `Target.broken` records it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import chain

from conformance.discovery.control_answers import as_tensor
from conformance.discovery.deployed_model import DeployedModel, encode_raw_body, is_classifiable
from conformance.discovery.discovery_result import DiscoveryResult
from conformance.expect.attribution import SERVER_FAULTS
from conformance.roles.model import Model
from conformance.roles.roles import load as load_roles
from conformance.spec.extensions import EXTENSIONS, GRPC, HTTP, OVER_GRPC, PROTOCOL, TABLE, TRANSPORTS
from conformance.spec.fit import SCORE_DATATYPES
from conformance.spec.text import escape_text
from conformance.transport.exchange import FailureKind, Reply
from conformance.transport.target import SERVER_PATH, Target
from conformance.transport.target_client import READY_PATH
from conformance.transport.unreachable import TargetLostError
from conformance.wire.grpc_answer import parse_message
from conformance.wire.grpc_request import make_grpc_call, make_infer_message
from conformance.wire.json_text import parse_json
from conformance.wire.request import INFERENCE_HEADER, InferRequest, Message, RequestedOutput

# Roles whose models can probe an extension, in order of preference.
_BINARY_PROBE_ROLES = ("identity_int32", "identity_fp32", "identity_int64", "identity_uint8", "fixed", "multi")
_RAW_PROBE_ROLES = ("raw_fixed", "raw_variable", "raw_batching", "identity_int32", "identity_fp32")
_CLASS_PROBE_ROLES = ("scores", "scores_labelled", "scores_batching", "identity_fp32", "identity_int32")
# Statuses that say nothing about a request: no such path or method, or an exception.
_DEAD_STATUSES = (404, 405, 500, 501)
# Methods of which a server over gRPC answers or refuses some.
_METHODS = ("ServerLive", "ServerMetadata", "ModelInfer")


# --- metadata ---------------------------------------------------------------------------------------------------------


def read_server_metadata(target: Target, result: DiscoveryResult, models: Iterable[str]) -> None:
    """Read the server metadata over each transport, and set `target.live_transports`.

    `models` are the names of the models that the server may serve.

    Raises TargetLostError: no gRPC server answers at the gRPC address.
    """
    judged = target.live_transports = target.settings.transports
    if HTTP in judged:
        _read_http_metadata(target, result)
    if GRPC in judged:
        _read_grpc_metadata(target, result)
    if judged == TRANSPORTS and result.silence:
        is_alive = target.send(make_grpc_call("ServerLive")).succeeded
        result.is_dead_over_http = is_alive and _answers_nothing_over_http(target, models)
        target.live_transports = (GRPC,) if result.is_dead_over_http else judged


def _answers_nothing_over_http(target: Target, models: Iterable[str]) -> bool:
    """Whether the server answers no request over HTTP, nor refuses one: neither metadata, health, nor inference."""
    roles = load_roles()
    named = [Model(roles.get(name, next(iter(roles.values()))), name) for name in models]
    paths = (SERVER_PATH, "/v2/health/live", READY_PATH, *(model.path for model in named))
    answers = chain(map(target.get, paths), (send_plain_request(target, model) for model in named))
    return all(reply.status in _DEAD_STATUSES for reply in answers)


def find_missing_service(target: Target) -> str:
    """Return the answer to ServerLive, if the server answers no method over gRPC and refuses none; else empty."""
    replies = [target.send(make_grpc_call(method), fresh=True) for method in _METHODS]
    is_missing = all(reply.exchange.code in SERVER_FAULTS for reply in replies)
    return escape_text(replies[0].outcome()) if is_missing else ""


def _read_http_metadata(target: Target, result: DiscoveryResult) -> None:
    """Request GET /v2, and store the server's name, version and extensions in the result."""
    reply = target.get(SERVER_PATH)
    document, _ = parse_json(reply.body)
    if not reply.succeeded or not isinstance(document, dict):
        result.silence = escape_text(reply.outcome()) + _suggest_other_url(target.settings.url, reply)
        result.coding = reply.unrequested_coding
        return
    result.name = _read_string(document.get("name"))
    result.version = _read_string(document.get("version"))
    listed = document.get("extensions")
    result.listed = [str(entry) for entry in listed] if isinstance(listed, list) else []


def _suggest_other_url(url: str, reply: Reply) -> str:
    """Return a hint for the end of a message if the answer to the request for server metadata suits a wrong URL."""
    if reply.status == HTTPStatus.NOT_FOUND and url.endswith(SERVER_PATH):
        return f"; leave out {SERVER_PATH} at the end of the URL"
    return "; try https://, if it speaks TLS" if not url.startswith("https:") and _may_speak_tls(reply) else ""


def _may_speak_tls(reply: Reply) -> bool:
    """Whether the answer to a request without TLS is what servers that speak TLS send."""
    return reply.has_failed(FailureKind.CLOSED, FailureKind.BROKEN, FailureKind.MALFORMED)


def _read_string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _read_grpc_metadata(target: Target, result: DiscoveryResult) -> None:
    """Call ServerMetadata; store the server's extensions in the result, and name and version if still unknown."""
    reply = target.send(make_grpc_call("ServerMetadata"))
    if reply.status is None and all(target.send(make_grpc_call(name), fresh=True).status is None for name in _METHODS):
        address = target.settings.grpc_address
        hint = "; try grpcs://, if it speaks TLS" if not address.tls and _may_speak_tls(reply) else ""
        raise TargetLostError(f"{address.url} answers no gRPC call ({reply.outcome()}){hint}")
    message = parse_message(reply.body, "ServerMetadata") if reply.succeeded else None
    if message is None:
        result.silence = result.silence or escape_text(reply.outcome())
        return
    result.name = result.name or message.name
    result.version = result.version or message.version
    result.listed_grpc = list(message.extensions)


def request_model_metadata(target: Target, model: Model) -> Reply:
    """Request the metadata of a model over HTTP, or over gRPC if only gRPC is judged or answers.

    A model may be served only over HTTP, so this decides whether it exists.
    """
    if HTTP in target.live_transports:
        return target.get(model.path)
    return target.send(make_grpc_call("ModelMetadata", name=model.name, version=model.version))


def send_plain_request(target: Target, model: Model) -> Reply:
    """Send a plain request with sample values to the model of a role: see `send_request`.

    Tensors that JSON cannot represent are binary data, even before it is known whether the target accepts these.
    """
    return send_request(target, model.request(send=model.plain_input_form, want=model.plain_output_form))


def read_versions(reply: Reply) -> list[str]:
    """Return the versions in the metadata of a model; an empty list if there are none."""
    document = reply.answer.document if reply.is_over_grpc else parse_json(reply.body).value
    listed = document.get("versions") if isinstance(document, dict) else None
    return [version for version in listed if isinstance(version, str)] if isinstance(listed, list) else []


def send_over(target: Target, model: Model, transport: str) -> Reply:
    """Send a plain request with sample values to the model of a role over this transport."""
    request = model.request(send=model.plain_input_form, want=model.plain_output_form)
    return target.infer(request if transport == HTTP else make_infer_message(request))


def send_request(target: Target, request: InferRequest) -> Reply:
    """Send an inference request over HTTP, or over gRPC if only gRPC is judged or answers."""
    return target.infer(request if HTTP in target.live_transports else make_infer_message(request))


# --- probes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """The reply to a request that uses an extension.

    `plain`: the reply to the same request without the extension; None if no server may ignore the extension.
    """

    reply: Reply
    plain: Reply | None = None

    @property
    def is_recognized(self) -> bool:
        """Whether the server answered the request, and did not ignore the extension."""
        return is_answered(self.reply) and (
            self.plain is None or _describe_answer_form(self.reply) != _describe_answer_form(self.plain)
        )


def send_probe(target: Target, request: InferRequest | Message, plain: InferRequest | Message) -> Probe:
    """Send a request with an option of an extension; after an answer, also send `plain`, which lacks the option."""
    reply = target.infer(request)
    return Probe(reply, target.infer(plain) if is_answered(reply) else None)


def is_answered(reply: Reply) -> bool:
    """Whether a reply has a 2xx status; its body may be incomplete."""
    return reply.status is not None and 200 <= reply.status < 300


def _describe_answer_form(reply: Reply) -> tuple[object, ...]:
    """Return the status, header, outputs and findings of a reply for a comparison, without values, which may vary."""
    answer = reply.answer
    outputs = [(output.name, output.datatype, output.shape, output.binary) for output in answer.outputs]
    outputs.sort(key=str)
    kinds = sorted({finding.kind for finding in answer.findings})
    return reply.status, reply.header(INFERENCE_HEADER), outputs, kinds, reply.exchange.failure


def record_extensions(
    target: Target,
    result: DiscoveryResult,
    wanted: Sequence[str],
    transports: Sequence[str],
    models: Sequence[DeployedModel] | None = None,
) -> None:
    """Store in the result which extensions over these transports are offered, and the base protocol.

    `models` are deployed models to probe; without them, the models of roles are probed.
    """
    for extension, (probe_roles, probe_model) in PROBES.items():
        if (GRPC if extension in OVER_GRPC else HTTP) in transports:
            of_models = (probe for model in models or () for probe in probe_model(target, model))
            probes = probe_roles(target) if models is None else of_models
            record_extension(result, extension, wanted, probes)
    record_extension(result, PROTOCOL, wanted or EXTENSIONS, ())


def record_extension(result: DiscoveryResult, extension: str, wanted: Sequence[str], probes: Iterable[Probe]) -> None:
    """Store in the result whether an extension is offered: asked for by the user, listed, or working in a probe.

    `wanted`: the extensions that the user wants to judge; empty: those that the target offers.
    `probes`: an iterator that sends a probe of the extension at each step; it is stopped at the first recognized
    probe.
    """
    if wanted:
        if extension in wanted:
            result.offered[extension] = "asked for"
        return
    listed_as = TABLE[extension].listed_as
    if listed_as and listed_as in (result.listed_grpc if extension in OVER_GRPC else result.listed):
        result.offered[extension] = "listed"
        return
    ignored = "the server ignores its parameter" if extension in OVER_GRPC else "the server ignores its parameters"
    refusal = ""
    for probe in probes:
        if probe.is_recognized:
            result.offered[extension] = "works"
            return
        refusal = ignored if is_answered(probe.reply) else probe.reply.outcome()
        result.coding = result.coding or probe.reply.unrequested_coding
    result.refusals[extension] = refusal


def _find_models(target: Target, roles: Sequence[str]) -> Iterator[Model]:
    """Yield the target's models for these roles; skip roles without a model."""
    for role in roles:
        model = target.model(role)
        if model is not None:
            yield model


def _probe_binary(target: Target) -> Iterator[Probe]:
    """Probe binary inputs with and without binary outputs, then only binary outputs. A server may support only some."""
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


def _probe_classes_over_grpc(target: Target) -> Iterator[Probe]:
    for model in _find_models(target, _CLASS_PROBE_ROLES):
        yield from _probe_model_over_grpc(target, model)


def _probe_model_over_grpc(target: Target, model: Model) -> Iterator[Probe]:
    """Probe classification over gRPC with a model, if it has a numeric output."""
    name = next((spec.name for spec in model.role.outputs if spec.datatype in SCORE_DATATYPES), None)
    if name is None:
        return
    asking = model.request(send=model.plain_input_form, outputs=[RequestedOutput(name, classification=1)])
    plain = model.request(send=model.plain_input_form, outputs=[name])
    yield send_probe(target, make_infer_message(asking), make_infer_message(plain))


# --- probes of deployed models ----------------------------------------------------------------------------------------


def _probe_deployed_binary(target: Target, model: DeployedModel) -> Iterator[Probe]:
    """Probe binary outputs, then binary inputs, with a deployed model."""
    if model.is_json_capable:
        yield send_probe(target, model.build_binary_outputs_request(), model.build_plain_request())
    else:
        yield Probe(target.infer(model.build_binary_outputs_request()))
    yield Probe(target.infer(model.request(send="binary", outputs=model.build_outputs_member())))


def _probe_deployed_raw(target: Target, model: DeployedModel) -> Iterator[Probe]:
    if len(model.tensors) == 1:
        tensors = [tensor for tensor in model.items() if tensor.elements]
        yield from (Probe(target.infer(model.raw(encode_raw_body(tensor)))) for tensor in tensors)


def _probe_deployed_classes(target: Target, model: DeployedModel) -> Iterator[Probe]:
    """Probe classification with a deployed model: request one class of the first output that can be classified."""
    for output in target.infer(model.build_plain_request()).answer.outputs:
        tensor = as_tensor(output)
        if tensor is not None and is_classifiable(tensor):
            wanted = model.request(send=model.binary_inputs, outputs=[RequestedOutput(tensor.name, classification=1)])
            yield send_probe(target, wanted, model.request(send=model.binary_inputs, outputs=[tensor.name]))
            return


# Extension -> a function that sends its probes to the models of roles, and one that sends them to a deployed model.
PROBES: Mapping[str, tuple[Callable[[Target], Iterator[Probe]], Callable[[Target, DeployedModel], Iterator[Probe]]]] = {
    "binary_tensor_data": (_probe_binary, _probe_deployed_binary),
    "raw": (_probe_raw, _probe_deployed_raw),
    "classification": (_probe_classification, _probe_deployed_classes),
    "classification_grpc": (_probe_classes_over_grpc, _probe_model_over_grpc),
}
