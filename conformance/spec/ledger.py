"""The ledger: every requirement that the suite judges.

`requirements/` has a file for each area, and explains its keys in `README.md`.

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
from conformance.spec.extensions import CLIENT, CLIENT_GRPC, GRPC, OVER_GRPC, PACK, ROBUSTNESS, TABLE, find_transport
from conformance.spec.links import format_explain_command, make_requirement_url
from conformance.spec.user_error import UserError

# The suffix of a requirement's id for gRPC, if the requirement exists for HTTP as well.
GRPC_SUFFIX = "/grpc"
EXTENSIONS_OVER_GRPC: Mapping[str, str] = {TABLE[name].over_http: name for name in OVER_GRPC}
# Requirements of HTTP that are a part of another requirement over gRPC.
_GRPC_SUBSTITUTES: Mapping[str, str] = {"OIP-SHAPE": "GRPC-TYPED", "OIP-MODEL-NAME": "OIP-OUTPUT-MEMBERS/grpc"}
FOLDER = "spec/requirements"
# Area -> what its requirements are about, in the order of reports and pages. Each area has a file in `FOLDER`.
AREAS: Mapping[str, str] = {
    "metadata": "metadata of the server and of its models",
    "headers": "lengths and content types",
    "sizes": "`binary_data_size`, and bodies of another length",
    "datatypes": "the bytes of an element, for each datatype",
    "bytes": "the order of elements in a tensor, and of tensors in a body",
    "ordering": "which bytes belong to which tensor",
    "overrides": "which outputs are binary: `binary_data` and `binary_data_output`",
    "raw": "requests without JSON",
    "classification": "outputs returned as classes",
    "json": "the JSON of the base protocol",
    "errors": "refusals, and requests after them",
    "state": "connections, codings, and concurrent requests",
    GRPC: "tensors over gRPC: requirements without a counterpart over HTTP",
    CLIENT: "requests of clients, and how clients read answers",
    CLIENT_GRPC: "requests of clients over gRPC: requirements without a counterpart over HTTP",
    ROBUSTNESS: "hostile requests; they do not affect the verdict",
}
# Keys whose values are fields of a `Requirement` as they are.
_PLAIN_KEYS = ("extension", "area", "page", "statement", "note", "symptom", "usage", "example", "look_alike")
# Keys of a requirement that the same requirement over gRPC does not inherit.
_OWN_KEYS = ("example", "questions", "errata", "grpc")
# The requirements of loaded packs, by id; `load` does not return them.
_OF_PACKS: dict[str, Requirement] = {}


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
    """One requirement over one transport; `requirements/README.md` explains the fields.

    Attributes:
        concern: the subject; None for robustness, which affects no verdict.
        page: the area whose page documents the requirement, the same for both transports; empty for that of a pack.
        note: an explanation for readers; empty if there is none.
        symptom: the behaviour of a server that does not meet the requirement; empty if no bug report is about it.
        usage: `usual` or `rare` requests show the requirement; empty for requests between these.
        example: the golden case that shows the requirement, or the index of the exchange; None if that is chosen.
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
    symptom: str = ""
    usage: str = ""
    example: str | int | None = None
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
    def is_of_pack(self) -> bool:
        """Whether a pack defines the requirement, which affects only the verdict of the pack."""
        return self.area == PACK

    @property
    def sources(self) -> tuple[Sentence, ...]:
        """The source sentences; loaded lazily, because a run without failures does not need them.

        Raises KeyError: a sentence does not exist.
        """
        return tuple(map(get_sentence, self.cited))

    @property
    def transport(self) -> str:
        """The transport over which the requirement is judged, `http` or `grpc`."""
        return GRPC if self.id.endswith(GRPC_SUFFIX) else find_transport(self.area)

    @property
    def source(self) -> str:
        """All sources on one line, as reports show them."""
        return "; ".join(map(str, self.sources))

    @property
    def url(self) -> str:
        """The URL of the requirement's documentation page (`links.make_requirement_url`); of a pack: its source."""
        return make_requirement_url(self.page, self.id) if self.page else self.sources[0].url

    @property
    def explain(self) -> str:
        """The shell command that prints an explanation of the requirement."""
        return format_explain_command(self.id)


@cache
def load() -> Mapping[str, Requirement]:
    """Return every requirement by id, in the order of `AREAS`; the mapping is cached and read-only."""
    return MappingProxyType({name: build_requirement(name, table) for name, table in _list_tables()})


def list_entries(key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each entry of `questions` or `errata` with the id of the requirement that it stands under."""
    for name, table in _list_tables():
        yield from ((name, entry) for entry in table.get(key, ()))


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


def add_requirements_of_pack(entries: Mapping[str, Requirement]) -> None:
    """Let `get_requirement` find the requirements of a pack."""
    _OF_PACKS.update(entries)


def get_requirement(requirement_id: str) -> Requirement:
    """Return one requirement of the suite, or of a loaded pack.

    Raises UnknownRequirementError: no requirement has this id.
    """
    ledger = load()
    found = ledger.get(requirement_id) or _OF_PACKS.get(requirement_id)
    if found is None:
        raise UnknownRequirementError(requirement_id, get_close_matches(normalise_id(requirement_id), ledger, n=3))
    return found


def normalise_id(name: str) -> str:
    """Return an id in the ledger's case: upper case, with the suffix `/grpc` in lower case."""
    return name.upper().replace(GRPC_SUFFIX.upper(), GRPC_SUFFIX)


def find_grpc_id(requirement_id: str) -> str | None:
    """Return the id of the same requirement over gRPC, or None if gRPC does not have the requirement."""
    grpc_id = requirement_id + GRPC_SUFFIX
    return grpc_id if grpc_id in load() or grpc_id in _OF_PACKS else None


def find_grpc_equivalent(requirement_id: str) -> str | None:
    """Return the id of the requirement over gRPC that says the same, or more; None if there is none."""
    return _GRPC_SUBSTITUTES.get(requirement_id) or find_grpc_id(requirement_id)


@cache
def read_area(area: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the file of an area: id -> table. The lines of a text are joined."""
    tables: Mapping[str, Mapping[str, Any]] = join_lines(data_files.load_toml(f"{FOLDER}/{area}.toml"))
    return tables


def join_lines(value: Any) -> Any:
    """Return the data of a TOML file with the lines of each text joined by spaces."""
    if isinstance(value, str):
        return " ".join(value.split()) if "\n" in value else value
    if isinstance(value, list):
        return [join_lines(item) for item in value]
    return {key: join_lines(item) for key, item in value.items()} if isinstance(value, dict) else value


def _list_tables() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the id and the table of each requirement of the suite."""
    for area in AREAS:
        for name, table in read_area(area).items():
            yield from expand_table(name, {**table, "area": area, "page": CLIENT if area == CLIENT_GRPC else area})


def expand_table(name: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a requirement with its table; then the one over gRPC, if the table has it, completed from the first."""
    yield name, table
    if "grpc" in table:
        inherited = {key: value for key, value in table.items() if key not in _OWN_KEYS}
        extension = EXTENSIONS_OVER_GRPC.get(table["extension"], table["extension"])
        area = {CLIENT: CLIENT_GRPC, PACK: PACK}.get(table["area"], GRPC)
        yield name + GRPC_SUFFIX, {**inherited, "extension": extension, **table["grpc"], "area": area}


def build_requirement(requirement_id: str, table: Mapping[str, Any]) -> Requirement:
    """Return the requirement of a table; `area` and `page` are keys of it."""
    return Requirement(
        id=requirement_id,
        level=Level(table["level"]),
        basis=Basis(table["basis"]),
        cited=tuple(table["sources"]),
        concern=Concern(table["concern"]) if "concern" in table else None,
        party=Party.CLIENT if table["page"] == CLIENT else Party.SERVER,
        **{key: table[key] for key in _PLAIN_KEYS if key in table},
    )
