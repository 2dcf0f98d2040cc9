"""The record of what a target offers, and how its discovery tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from conformance.spec.text import escape_text
from conformance.transport.credentials import hide

# Is told a few words, as often as there is something new.
Progress = Callable[[str], None]


def ignore_progress(_: str) -> None:
    """Tell nobody."""


# Which model a probe of an extension takes.
_PROBED: Mapping[str, str] = {
    "binary_tensor_data": "that answers requests",
    "raw": "with one input",
    "classification": "with an output of numbers",
    "classification_grpc": "with an output of numbers",
}


@dataclass(slots=True)
class DiscoveryResult:
    """What a target offers.

    Attributes:
        name: of the server, by its own metadata; likewise version.
        listed: the extensions of its metadata, as they stand there; `listed_grpc`: of those over gRPC.
        offered: extension -> how we know ("listed", "works", "asked for"); what is not offered is not here.
        refusals: extension that is not offered -> what its probe was answered; empty where no model could be probed.
        roles: role -> name of the model that fills it.
        models: name -> what is known of a deployed model (`discovery.deployed_model`), as plain data.
        broken: what was neither answered nor refused (`transport.broken_request`), as plain data.
        coding: the content coding of an answer, where nobody asked for one and none of its content could be read.
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
    coding: str = ""
    listed_grpc: list[str] = field(default_factory=list)
    broken: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as workers and reports take it."""
        return asdict(self)

    def absence(self, extension: str) -> str:
        """Return that an extension is not offered, or could not be tried, and why."""
        return f"{'not offered' if self.refusals.get(extension) else 'not tried'}: {self.why_absent(extension)}"

    def why_absent(self, extension: str) -> str:
        """Return what shows that an extension is not offered, or why nothing can show it."""
        return escape_text(self.refusals.get(extension, ""), 160) or f"no model {_PROBED[extension]}"

    def beside(self, of_models: DiscoveryResult) -> DiscoveryResult:
        """Return this survey of roles with that of deployed models: what either shows to be offered, is."""
        offered = of_models.offered | self.offered
        shown = of_models.refusals | {name: why for name, why in self.refusals.items() if why}
        absent = {**of_models.refusals, **self.refusals}
        refusals = {name: shown.get(name, "") for name in absent if name not in offered}
        return replace(self, offered=offered, refusals=refusals, models=of_models.models)

    def without(self, secrets: Sequence[str]) -> DiscoveryResult:
        """Return a survey whose texts of the server's hold none of these."""
        return replace(
            self,
            name=self.name and hide(self.name, secrets),
            version=self.version and hide(self.version, secrets),
            listed=[hide(entry, secrets) for entry in self.listed],
            listed_grpc=[hide(entry, secrets) for entry in self.listed_grpc],
            refusals={extension: hide(text, secrets) for extension, text in self.refusals.items()},
            silence=hide(self.silence, secrets),
            coding=hide(self.coding, secrets),
        )
