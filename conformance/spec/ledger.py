"""The ledger: every requirement that the suite judges.

Requirements for servers are in `ledger.toml`, for robustness in `ledger_robustness.toml`, for clients in
`ledger_clients.toml`.

This module only parses the files. The tests validate them against `schemas/ledger.schema.json`, so that a run does not
spend time on validation. This module does not depend on the checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from conformance.spec import data_files
from conformance.spec.documents import Sentence, get_sentence
from conformance.spec.extensions import CLIENT, CLIENT_GRPC, GRPC, ROBUSTNESS, find_transport
from conformance.spec.links import format_explain_command, make_requirement_url
from conformance.spec.user_error import UserError

# The suffix of a requirement's id for gRPC, if the requirement exists for HTTP as well.
GRPC_SUFFIX = "/grpc"
EXTENSIONS_OVER_GRPC: Mapping[str, str] = {"classification": "classification_grpc"}
AREAS_OVER_GRPC: Mapping[str, str] = {CLIENT: CLIENT_GRPC}
# Requirements of HTTP that are a part of another requirement over gRPC.
_GRPC_SUBSTITUTES: Mapping[str, str] = {
    "OIP-SHAPE": "GRPC-TYPED",
    "OIP-MODEL-NAME": "OIP-OUTPUT-MEMBERS/grpc",
    "OIP-VERSION-UNKNOWN": "GRPC-VERSION-UNKNOWN",
}
FILES = ("spec/ledger.toml", "spec/ledger_clients.toml", "spec/ledger_robustness.toml")


class Level(StrEnum):
    """The level of a requirement: an unmet MUST fails, an unmet SHOULD is advice, OBSERVE is only recorded."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    OBSERVE = "OBSERVE"


class Basis(StrEnum):
    """The basis of a requirement: a source states it literally, or the requirement follows from the source."""

    LITERAL = "literal"
    DERIVED = "derived"


class Concern(StrEnum):
    """The subject of a requirement; `CONCERNS` has a description of each subject."""

    EXCHANGE = "exchange"
    REFUSAL = "refusal"
    TRANSPORT = "transport"


CONCERNS: Mapping[Concern, str] = {
    Concern.EXCHANGE: "a request that a conforming client may send gets the correct answer, or a well-formed error "
    "where a document lets the server decline",
    Concern.REFUSAL: "a request that the protocol's own documents call wrong is refused, and has no effect",
    Concern.TRANSPORT: "requests and answers follow the rules of HTTP, gRPC and JSON",
}


class Party(StrEnum):
    """Who must meet a requirement: servers or clients."""

    SERVER = "server"
    CLIENT = "client"


class UnknownRequirementError(UserError, KeyError):
    """No requirement has this id. `str()` is one line that suggests similar ids."""

    def __init__(self, requirement_id: str, near: Sequence[str]) -> None:
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        super().__init__(f"unknown requirement {requirement_id!r}{hint}")
        self.requirement_id = requirement_id
        self.near = tuple(near)

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement over one transport; `ledger.toml` explains the fields at its beginning.

    Attributes:
        cited: the keys of the source sentences.
        concern: the subject; None for robustness, which affects no verdict.
        page: the area whose page documents the requirement, the same for both transports.
        note: an explanation for readers; empty if there is none.
        look_alike: the valid server of the tests that is most like one that breaks the requirement; empty if none is
            named.
        party: the party that must meet the requirement.
    """

    id: str
    level: Level
    extension: str
    area: str
    basis: Basis
    statement: str
    cited: tuple[str, ...]
    concern: Concern | None
    page: str
    note: str = ""
    look_alike: str = ""
    party: Party = Party.SERVER

    @property
    def name(self) -> str:
        """The id without `/grpc`, the same for both transports."""
        return self.id.removesuffix(GRPC_SUFFIX)

    @property
    def is_of_robustness(self) -> bool:
        """Whether the requirement concerns robustness, which affects no verdict."""
        return self.extension == ROBUSTNESS

    @property
    def sources(self) -> tuple[Sentence, ...]:
        """The source sentences; loaded lazily, because a run without failures does not need them.

        Raises:
            KeyError: a sentence does not exist.
        """
        return tuple(map(get_sentence, self.cited))

    @property
    def transport(self) -> str:
        """The transport over which the requirement is judged, `http` or `grpc`."""
        return find_transport(self.area)

    @property
    def source(self) -> str:
        """All sources on one line, as reports show them."""
        return "; ".join(map(str, self.sources))

    @property
    def url(self) -> str:
        """The URL of the requirement on its documentation page: see `links.make_requirement_url`."""
        return make_requirement_url(self.page, self.id)

    @property
    def explain(self) -> str:
        """The shell command that prints an explanation of the requirement."""
        return format_explain_command(self.id)


@cache
def load() -> Mapping[str, Requirement]:
    """Return every requirement by id, in the order of `FILES`; the mapping is cached and read-only."""
    return MappingProxyType({entry.id: entry for entry in _build_requirements()})


def load_for_party(party: Party) -> list[Requirement]:
    """Return the requirements for one party that affect a verdict."""
    return [entry for entry in load().values() if entry.party is party and not entry.is_of_robustness]


@cache
def compute_version() -> str:
    """Return a digest of the server requirements (id, level, concern, extension and statement of each).

    Versions of the suite with the same digest have the same requirements.
    """
    rows = [
        (entry.id, entry.level, str(entry.concern), entry.extension, entry.statement)
        for entry in load_for_party(Party.SERVER)
    ]
    return sha256(json.dumps(sorted(rows)).encode()).hexdigest()[:16]


def get_requirement(requirement_id: str) -> Requirement:
    """Return one requirement.

    Raises:
        UnknownRequirementError: no requirement has this id.
    """
    ledger = load()
    if requirement_id not in ledger:
        raise UnknownRequirementError(requirement_id, get_close_matches(normalise_id(requirement_id), ledger, n=3))
    return ledger[requirement_id]


def normalise_id(name: str) -> str:
    """Return an id in the ledger's case: upper case, with the suffix `/grpc` in lower case."""
    return name.upper().replace(GRPC_SUFFIX.upper(), GRPC_SUFFIX)


def find_grpc_id(requirement_id: str) -> str | None:
    """Return the id of the same requirement over gRPC, or None if gRPC does not have the requirement."""
    grpc_id = requirement_id + GRPC_SUFFIX
    return grpc_id if grpc_id in load() else None


def find_grpc_equivalent(requirement_id: str) -> str | None:
    """Return the id of the requirement over gRPC that says the same, or more; None if there is none."""
    return _GRPC_SUBSTITUTES.get(requirement_id) or find_grpc_id(requirement_id)


def _build_requirements() -> Iterator[Requirement]:
    for name, table in ((name, table) for file in FILES for name, table in data_files.load_toml(file).items()):
        yield _build_requirement(name, table, page=find_page_area(table["area"]))
        if "grpc" in table:
            extension = EXTENSIONS_OVER_GRPC.get(table["extension"], table["extension"])
            area = AREAS_OVER_GRPC.get(table["area"], GRPC)
            changes = {"extension": extension, **table["grpc"], "area": area}
            yield _build_requirement(name + GRPC_SUFFIX, {**table, **changes}, page=find_page_area(table["area"]))


def find_page_area(area: str) -> str:
    """Return the area whose page documents an area: both client areas share one page."""
    return CLIENT if area == CLIENT_GRPC else area


def _build_requirement(requirement_id: str, table: Mapping[str, Any], page: str) -> Requirement:
    return Requirement(
        id=requirement_id,
        level=Level(table["level"]),
        extension=table["extension"],
        area=table["area"],
        basis=Basis(table["basis"]),
        statement=table["statement"],
        cited=tuple(table["sources"]),
        concern=Concern(table["concern"]) if "concern" in table else None,
        page=page,
        note=table.get("note", ""),
        look_alike=table.get("look_alike", ""),
        party=Party(table.get("party", Party.SERVER)),
    )
