"""What a target offers: the extensions that it lists, those that a probe shows to work, and the roles it fills.

The survey decides what is judged, never how: an extension that is neither listed nor working is not applicable, and
so is a check whose role is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from conformance.options import OVER_HTTP
from conformance.roles import Model
from conformance.roles import load as load_roles
from conformance.target import grpc_survey
from conformance.target.config import Placement
from conformance.target.exchange import Reply
from conformance.target.secrets import hide
from conformance.target.settings import SettingsError
from conformance.target.target import Target
from conformance.text import safe
from conformance.wire.json_text import parse
from conformance.wire.request import Output

# The name under which server metadata lists an extension. Raw binary requests have none: one of the two documents of
# the binary tensor data extension does not know them, so they are offered when they work.
LISTED_AS = {"binary_tensor_data": "binary_tensor_data", "classification": "classification"}


# Says what shows that a role's model is not there, or None.
Absence = Callable[[Target, str], Reply | None]


@dataclass(slots=True)
class Survey:
    """What a target offers.

    Attributes:
        name: of the server, by its own metadata; likewise version.
        listed: the extensions of its metadata, as they stand there; `listed_grpc`: of those over gRPC.
        offered: extension -> how we know ("listed", "works", "asked for"); what is not offered is not here.
        refusals: extension -> what the probe of an extension that is not offered was answered.
        roles: role -> name of the model that fills it.
        models: name -> what is known of a model that is judged by relations (`conformance.deployed`), as plain data.
        silence: what a server without metadata answered instead, in a few words; else empty.
    """

    name: str | None = None
    version: str | None = None
    listed: list[str] = field(default_factory=list)
    offered: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    silence: str = ""
    listed_grpc: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as workers and reports take it."""
        return asdict(self)

    def without(self, secrets: Sequence[str]) -> Survey:
        """Return a survey whose texts of the server's hold none of these."""
        return replace(
            self,
            name=self.name and hide(self.name, secrets),
            version=self.version and hide(self.version, secrets),
            listed=[hide(entry, secrets) for entry in self.listed],
            listed_grpc=[hide(entry, secrets) for entry in self.listed_grpc],
            refusals={extension: hide(told, secrets) for extension, told in self.refusals.items()},
            silence=hide(self.silence, secrets),
        )


def take(target: Target, wanted: Sequence[str] = (), placements: Mapping[str, Placement] | None = None) -> Survey:
    """Ask the target what it offers, and note the roles in `target.roles`.

    Args:
        target: a target that has not been surveyed.
        wanted: the extensions to judge, whether offered or not; empty: those that the target offers.
        placements: role -> model; None looks for models of the roles' own names.

    Raises:
        TargetLost: nobody answers.
        SettingsError: a role is placed on a model that the target does not serve.
    """
    survey, doors = Survey(), target.settings.doors
    absence = _absence if "http" in doors else grpc_survey.absence
    if "http" in doors:
        read_server_metadata(target.get("/v2"), survey)
    if "grpc" in doors:
        grpc_survey.read_server_metadata(target, survey)
    survey.roles = _find_roles(target, absence) if placements is None else _placed_roles(target, placements, absence)
    for extension in OVER_HTTP if "http" in doors else ():
        decide(survey, extension, wanted, _PROBES[extension](target))
    if "grpc" in doors:
        grpc_survey.decide(target, survey, wanted, _probe_models(target, _SCORED))
    return survey


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
        survey.silence = reply.exchange.failure or f"HTTP {reply.status}"
        return
    survey.name = _text(document.get("name"))
    survey.version = _text(document.get("version"))
    listed = document.get("extensions")
    survey.listed = [str(entry) for entry in listed] if isinstance(listed, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _find_roles(target: Target, absence: Absence) -> dict[str, str]:
    """Return the roles of which a model has the name."""
    target.roles = {role: role for role in load_roles()}
    target.roles = {role: role for role in load_roles() if absence(target, role) is None}
    return target.roles


def _placed_roles(target: Target, placements: Mapping[str, Placement], absence: Absence) -> dict[str, str]:
    """Return the roles of a map, all of which the target has to serve."""
    target.placements = placements
    target.roles = {role: placement.model for role, placement in placements.items()}
    for role, name in target.roles.items():
        if reply := absence(target, role):
            raise SettingsError(f"role {role}: {target.settings.url} serves no model {name}: {safe(reply.outcome())}")
    return target.roles


def _absence(target: Target, role: str) -> Reply | None:
    """Return what shows that a role's model is not there: no metadata, and no answer to a plain request."""
    model = target.model(role)
    if model is None:
        return None
    metadata = target.get(model.path)
    if metadata.succeeded or (model.role.speaks_json and _plain(target, model).succeeded):
        return None
    return metadata


def _plain(target: Target, model: Model) -> Reply:
    return target.infer(model.request(send="json"))


def _probe_models(target: Target, names: Sequence[str]) -> Iterator[Model]:
    for name in names:
        model = target.model(name)
        if model is not None:
            yield model


_SIMPLE = ("identity_int32", "identity_fp32", "identity_int64", "identity_uint8", "fixed", "multi")
_RAW = ("raw_fixed", "raw_variable", "raw_batching", "identity_int32", "identity_fp32")
_SCORED = ("scores", "scores_labelled", "scores_batching", "identity_fp32", "identity_int32")


def _probe_binary(target: Target) -> Iterator[Reply]:
    for model in _probe_models(target, _SIMPLE):
        yield target.infer(model.request(send="binary", want="binary"))


def _probe_raw(target: Target) -> Iterator[Reply]:
    for model in _probe_models(target, _RAW):
        yield target.infer(model.raw(bytes(model.sample(batch=1)[0].to_bytes())))


def _probe_classification(target: Target) -> Iterator[Reply]:
    for model in _probe_models(target, _SCORED):
        wanted = [Output(model.role.outputs[0].name, classification=1)]
        yield target.infer(model.request(send="json", outputs=wanted))


def _answers_binary(reply: Reply) -> bool:
    return reply.succeeded and any(output.binary for output in reply.answer.outputs)


def _answers_at_all(reply: Reply) -> bool:
    """Whether there are outputs in any form: that they have to be binary is for a check to say."""
    return reply.succeeded and bool(reply.answer.outputs)


def _answers_classes(reply: Reply) -> bool:
    return reply.succeeded and any(output.datatype in ("BYTES", "STRING") for output in reply.answer.outputs)


_PROBES: dict[str, Callable[[Target], Iterator[Reply]]] = {
    "binary_tensor_data": _probe_binary,
    "raw": _probe_raw,
    "classification": _probe_classification,
}
_WORKS: dict[str, Callable[[Reply], bool]] = {
    "binary_tensor_data": _answers_binary,
    "raw": _answers_at_all,
    "classification": _answers_classes,
}
