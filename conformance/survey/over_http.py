"""What a target offers over HTTP: its metadata, and whether requests that use an extension are answered.

Source: Open Inference Protocol, REST, "Server Metadata" and "Model Metadata".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from conformance.roles.model import Model
from conformance.survey.survey import Survey
from conformance.transport.exchange import Reply
from conformance.transport.target import Target
from conformance.wire.json_text import parse
from conformance.wire.request import Output

# The name under which server metadata lists an extension. Raw binary requests have none: one of the two documents of
# the binary tensor data extension does not know them, so they are offered when they work.
LISTED_AS = {"binary_tensor_data": "binary_tensor_data", "classification": "classification"}


# Roles whose models show an extension, the first of them that is there.
_SIMPLE = ("identity_int32", "identity_fp32", "identity_int64", "identity_uint8", "fixed", "multi")
_RAW = ("raw_fixed", "raw_variable", "raw_batching", "identity_int32", "identity_fp32")
SCORED = ("scores", "scores_labelled", "scores_batching", "identity_fp32", "identity_int32")


def decide(survey: Survey, extension: str, wanted: Sequence[str], probes: Iterable[Reply]) -> None:
    """Note whether an extension is offered: `probes` are answers to requests that use it, asked for when needed."""
    if wanted:
        if extension in wanted:
            survey.offered[extension] = "asked for"
        return
    if LISTED_AS.get(extension) in survey.listed:
        survey.offered[extension] = "listed"
        return
    refusal = "no model to probe it with"
    for reply in probes:
        if _WORKS[extension](reply):
            survey.offered[extension] = "works"
            return
        refusal = reply.outcome()
    survey.refusals[extension] = refusal


def read_server_metadata(reply: Reply, survey: Survey) -> None:
    """Note what the answer to GET /v2 says of the server."""
    document, _ = parse(reply.body)
    if not reply.succeeded or not isinstance(document, dict):
        survey.silence = str(reply.exchange.failure or f"HTTP {reply.status}")
        return
    survey.name = _text(document.get("name"))
    survey.version = _text(document.get("version"))
    listed = document.get("extensions")
    survey.listed = [str(entry) for entry in listed] if isinstance(listed, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def absence(target: Target, role: str) -> Reply | None:
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


def _probe_binary(target: Target) -> Iterator[Reply]:
    for model in probe_models(target, _SIMPLE):
        yield target.infer(model.request(send="binary", want="binary"))


def _probe_raw(target: Target) -> Iterator[Reply]:
    for model in probe_models(target, _RAW):
        yield target.infer(model.raw(bytes(model.sample(batch=1)[0].to_bytes())))


def _probe_classification(target: Target) -> Iterator[Reply]:
    for model in probe_models(target, SCORED):
        wanted = [Output(model.role.outputs[0].name, classification=1)]
        yield target.infer(model.request(send="json", outputs=wanted))


def _answers_binary(reply: Reply) -> bool:
    return reply.succeeded and any(output.binary for output in reply.answer.outputs)


def _answers_at_all(reply: Reply) -> bool:
    """Whether there are outputs in any form: that they have to be binary is for a check to say."""
    return reply.succeeded and bool(reply.answer.outputs)


def _answers_classes(reply: Reply) -> bool:
    return reply.succeeded and any(output.datatype in ("BYTES", "STRING") for output in reply.answer.outputs)


PROBES: dict[str, Callable[[Target], Iterator[Reply]]] = {
    "binary_tensor_data": _probe_binary,
    "raw": _probe_raw,
    "classification": _probe_classification,
}


_WORKS: dict[str, Callable[[Reply], bool]] = {
    "binary_tensor_data": _answers_binary,
    "raw": _answers_at_all,
    "classification": _answers_classes,
}
