"""The ledger: every requirement that is judged.

Those of servers are in `ledger.toml`, what they withstand in `ledger_robustness.toml`, those of clients in
`ledger_clients.toml`.

Strategy: the files are data and this module only names their fields. The tests validate them against
`schemas/ledger.schema.json`, not this module, so a run pays for one parse of each. Nothing here knows the checks.
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

# What the id of a requirement ends in that stands there for HTTP, too.
GRPC_SUFFIX = "/grpc"
EXTENSIONS_OVER_GRPC: Mapping[str, str] = {"classification": "classification_grpc"}
AREAS_OVER_GRPC: Mapping[str, str] = {CLIENT: CLIENT_GRPC}
FILES = ("spec/ledger.toml", "spec/ledger_clients.toml", "spec/ledger_robustness.toml")


class Level(StrEnum):
    """How a requirement weighs: MUST fails, SHOULD advises, MAY is judged where offered, OBSERVE is only recorded."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    OBSERVE = "OBSERVE"


class Basis(StrEnum):
    """Whether a source says it in its own words or it follows from them."""

    LITERAL = "literal"
    DERIVED = "derived"


class Concern(StrEnum):
    """What a requirement is about, which bounds the warrant of a MUST."""

    EXCHANGE = "exchange"
    REFUSAL = "refusal"
    TRANSPORT = "transport"


CONCERNS: Mapping[Concern, str] = {
    Concern.EXCHANGE: "a request that a conforming client may send gets its right answer, or a well-formed error",
    Concern.REFUSAL: "a request that the protocol's own documents call wrong is refused, and nothing comes of it",
    Concern.TRANSPORT: "HTTP, gRPC and JSON, as far as they decide whether a legal request is understood and an answer "
    "can be read",
}


class Party(StrEnum):
    """Whom a requirement binds."""

    SERVER = "server"
    CLIENT = "client"


class UnknownRequirementError(UserError, KeyError):
    """No requirement has this id. `str()` is one line that names the nearest ids."""

    def __init__(self, requirement_id: str, near: Sequence[str]) -> None:
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        super().__init__(f"unknown requirement {requirement_id!r}{hint}")
        self.requirement_id = requirement_id
        self.near = tuple(near)

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement over one transport; the fields are explained at the head of `ledger.toml`.

    Attributes:
        cited: the keys of the sentences that it rests on.
        concern: what it is about; None for robustness, which is in no verdict.
        page: the area on whose page it stands, which is the same over both transports.
        note: empty where there is none.
        party: whom it binds.
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
    party: Party = Party.SERVER

    @property
    def name(self) -> str:
        """What is meant, whatever the transport: the id without `/grpc`."""
        return self.id.removesuffix(GRPC_SUFFIX)

    @property
    def is_of_robustness(self) -> bool:
        """Whether it is about what a server withstands, which no verdict rests on."""
        return self.extension == ROBUSTNESS

    @property
    def sources(self) -> tuple[Sentence, ...]:
        """The sentences that it rests on; read when somebody asks, since a run in which all is met never does.

        Raises:
            KeyError: no document has one of them.
        """
        return tuple(map(get_sentence, self.cited))

    @property
    def transport(self) -> str:
        """Over which transport it is judged, `http` or `grpc`."""
        return find_transport(self.area)

    @property
    def source(self) -> str:
        """All sources on one line, as reports show them."""
        return "; ".join(map(str, self.sources))

    @property
    def url(self) -> str:
        """Of its page: see `links.requirement_url`."""
        return make_requirement_url(self.page, self.id)

    @property
    def explain(self) -> str:
        """The command that explains it."""
        return format_explain_command(self.id)


@cache
def load() -> Mapping[str, Requirement]:
    """Return every requirement by id, those of servers first, in the order of the files; read-only, read once."""
    return MappingProxyType({entry.id: entry for entry in _requirements()})


def load_for_party(party: Party) -> list[Requirement]:
    """Return the requirements that bind servers, or those that bind clients, as far as a verdict rests on them."""
    return [entry for entry in load().values() if entry.party is party and not entry.is_of_robustness]


@cache
def compute_version() -> str:
    """Return the version of what servers are judged by: of each requirement id, level, concern, extension, statement.

    Suites of one version have the same requirements, whatever else changed between them.
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
    """Return an id, given in whatever letters, as the ledger spells it."""
    return name.upper().replace(GRPC_SUFFIX.upper(), GRPC_SUFFIX)


def find_grpc_id(requirement_id: str) -> str | None:
    """Return the id of the same requirement over gRPC, or None where it has none there."""
    twin = requirement_id + GRPC_SUFFIX
    return twin if twin in load() else None


def _requirements() -> Iterator[Requirement]:
    for name, table in ((name, table) for file in FILES for name, table in data_files.load_toml(file).items()):
        yield _requirement(name, table, page=find_page_area(table["area"]))
        if "grpc" in table:
            extension = EXTENSIONS_OVER_GRPC.get(table["extension"], table["extension"])
            area = AREAS_OVER_GRPC.get(table["area"], GRPC)
            twin = {"extension": extension, **table["grpc"], "area": area}
            yield _requirement(name + GRPC_SUFFIX, {**table, **twin}, page=find_page_area(table["area"]))


def find_page_area(area: str) -> str:
    """Return the area on whose page the requirements of an area stand: what clients owe is on one page."""
    return CLIENT if area == CLIENT_GRPC else area


def _requirement(requirement_id: str, table: Mapping[str, Any], page: str) -> Requirement:
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
        party=Party(table.get("party", Party.SERVER)),
    )
