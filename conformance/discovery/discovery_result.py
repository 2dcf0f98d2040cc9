"""The result of discovery, and the type of its progress callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from conformance.spec.extensions import TABLE
from conformance.spec.text import escape_text
from conformance.transport.credentials import hide

# A callback that receives a short message at each step.
Progress = Callable[[str], None]


def ignore_progress(_: str) -> None:
    """Discard a progress message."""


@dataclass(slots=True)
class DiscoveryResult:
    """The extensions, roles and models of a target.

    Attributes:
        name: the name of the server in its metadata; None if unknown.
        version: the version of the server in its metadata; None if unknown.
        listed: the extensions in the metadata over HTTP, unchanged.
        offered: offered extension -> evidence ("listed", "works", or "asked for" by the user).
        refusals: extension that is not offered -> the answer to its probe; empty if no model could be probed.
        roles: role -> name of the model that fills the role.
        versions: role -> the listed version that requests name, if the server refuses requests without a version.
        other_models: role without a model -> the inputs of a model that has the role's name, but is another model.
        models: name -> a deployed model, as `DeployedModel.to_dict` returns it.
        silence: a short description of the answer to the request for server metadata, if the answer contains no
            metadata; else empty.
        coding: an unrequested content coding that made an answer unreadable; else empty.
        listed_grpc: the extensions in the metadata over gRPC, unchanged.
        refused_clients: key of `client_names.COMMON_NAMES` -> the status with which the server refuses this client.
        limits: the limits that the target file declares (`roles.declared_limits`).
        is_dead_over_http: whether the server answers over gRPC, but no request over HTTP: gRPC shows the models.
        broken: requests that were neither answered nor refused (`transport.broken_request`), JSON-compatible.
    """

    name: str | None = None
    version: str | None = None
    listed: list[str] = field(default_factory=list)
    offered: dict[str, str] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    other_models: dict[str, str] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    silence: str = ""
    coding: str = ""
    listed_grpc: list[str] = field(default_factory=list)
    refused_clients: dict[str, str] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    is_dead_over_http: bool = False
    broken: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-compatible data, for other processes and reports."""
        return asdict(self)

    def describe_absence(self, extension: str) -> str:
        """Return a text: "not offered" or "not tried", and the reason from `explain_absence`."""
        return f"{'not offered' if self.refusals.get(extension) else 'not tried'}: {self.explain_absence(extension)}"

    def explain_absence(self, extension: str) -> str:
        """Return the answer that refused the probe of an extension, or the reason why there was no probe."""
        return escape_text(self.refusals.get(extension, ""), 160) or f"no model {TABLE[extension].model}"

    def explain_missing_role(self, role: str) -> str:
        """Return a text: the role has no model; and if another model has its name, what that model is."""
        missing = f"no model for the role {role}"
        return f"{missing}: {self._describe_other_model(role)}" if role in self.other_models else missing

    def describe_versions(self) -> list[str]:
        """Return a line that says that requests name a version, if the server refuses requests without one."""
        named = {*self.versions, *(name for name, model in self.models.items() if model.get("version"))}
        line = f"named in all requests to {len(named)} models, because the server refuses plain requests without one"
        return [line] if named else []

    def describe_other_models(self) -> list[str]:
        """Return a line for each model that has the name of a role, but does not fill it."""
        return list(map(self._describe_other_model, self.other_models))

    def _describe_other_model(self, role: str) -> str:
        return f"{role} is another model: its inputs are {escape_text(self.other_models[role], 160) or 'none'}"

    def merge(self, of_models: DiscoveryResult) -> DiscoveryResult:
        """Merge this result, of role discovery, with the result of model discovery.

        An extension is offered if it is offered in one of the two results.
        """
        offered = of_models.offered | self.offered
        shown = of_models.refusals | {name: why for name, why in self.refusals.items() if why}
        absent = {**of_models.refusals, **self.refusals}
        refusals = {name: shown.get(name, "") for name in absent if name not in offered}
        is_dead = self.is_dead_over_http and of_models.is_dead_over_http
        return replace(self, offered=offered, refusals=refusals, models=of_models.models, is_dead_over_http=is_dead)

    def hide_secrets(self, secrets: Sequence[str]) -> DiscoveryResult:
        """Return a copy in which these secrets are masked in all texts from the server."""
        return replace(
            self,
            name=self.name and hide(self.name, secrets),
            version=self.version and hide(self.version, secrets),
            listed=[hide(entry, secrets) for entry in self.listed],
            listed_grpc=[hide(entry, secrets) for entry in self.listed_grpc],
            refusals={extension: hide(text, secrets) for extension, text in self.refusals.items()},
            other_models={role: hide(inputs, secrets) for role, inputs in self.other_models.items()},
            silence=hide(self.silence, secrets),
            coding=hide(self.coding, secrets),
        )
