"""What a target offers over HTTP: its metadata, and whether requests that use an extension are answered.

Source: Open Inference Protocol, REST, "Server Metadata" and "Model Metadata".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from conformance.discovery.discovery_result import DiscoveryResult
from conformance.discovery.probe import Probe, is_answered, send_probe
from conformance.roles.model import Model
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.json_text import parse_json
from conformance.wire.request import RequestedOutput

# The name under which server metadata lists an extension. Raw binary requests have none: one of the two documents of
# the binary tensor data extension does not know them, so they are offered when they work.
LISTED_AS = {"binary_tensor_data": "binary_tensor_data", "classification": "classification"}


# Roles whose models show an extension, the first of them that is there.
_SIMPLE = ("identity_int32", "identity_fp32", "identity_int64", "identity_uint8", "fixed", "multi")
_RAW = ("raw_fixed", "raw_variable", "raw_batching", "identity_int32", "identity_fp32")
SCORED_ROLES = ("scores", "scores_labelled", "scores_batching", "identity_fp32", "identity_int32")


def record_extension(survey: DiscoveryResult, extension: str, wanted: Sequence[str], probes: Iterable[Probe]) -> None:
    """Note whether an extension is offered: `probes` are answers to requests that use it, asked for when needed."""
    if wanted:
        if extension in wanted:
            survey.offered[extension] = "asked for"
        return
    if LISTED_AS.get(extension) in survey.listed:
        survey.offered[extension] = "listed"
        return
    refusal = ""
    for probe in probes:
        if probe.is_recognized:
            survey.offered[extension] = "works"
            return
        refusal = "its parameters are ignored" if is_answered(probe.reply) else probe.reply.outcome()
        survey.coding = survey.coding or probe.reply.unasked_coding
    survey.refusals[extension] = refusal


def read_server_metadata(reply: Reply, survey: DiscoveryResult) -> None:
    """Note what the answer to GET /v2 says of the server."""
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


def find_absence(target: Target, role: str) -> Reply | None:
    """Return what shows that a role's model is not there: no metadata, and no answer to a plain request."""
    model = target.model(role)
    if model is None:
        return None
    metadata = target.get(model.path)
    if metadata.succeeded or (model.role.is_json_capable and _plain(target, model).succeeded):
        return None
    return metadata


def _plain(target: Target, model: Model) -> Reply:
    return target.infer(model.request(send="json"))


def probe_models(target: Target, names: Sequence[str]) -> Iterator[Model]:
    """Return the models of these roles that the target has."""
    for name in names:
        model = target.model(name)
        if model is not None:
            yield model


def _probe_binary(target: Target) -> Iterator[Probe]:
    """Ask for binary data both ways, then each way alone: a server may take them, or give them, and not the other."""
    for model in probe_models(target, _SIMPLE):
        for want in ("binary", None):
            yield Probe(target.infer(model.request(send="binary", want=want)))
    for model in probe_models(target, _SIMPLE):
        names = [spec.name for spec in model.role.outputs]
        yield send_probe(target, model.request(send="json", want="binary"), model.request(send="json", outputs=names))


def _probe_raw(target: Target) -> Iterator[Probe]:
    for model in probe_models(target, _RAW):
        yield Probe(target.infer(model.raw(bytes(model.sample(batch=1)[0].to_bytes()))))


def _probe_classification(target: Target) -> Iterator[Probe]:
    for model in probe_models(target, SCORED_ROLES):
        name = model.role.outputs[0].name
        wanted = model.request(send="json", outputs=[RequestedOutput(name, classification=1)])
        yield send_probe(target, wanted, model.request(send="json", outputs=[name]))


PROBES: dict[str, Callable[[Target], Iterator[Probe]]] = {
    "binary_tensor_data": _probe_binary,
    "raw": _probe_raw,
    "classification": _probe_classification,
}
