"""The ledger: every requirement that the suite judges, read from `ledger.toml`.

Strategy: the file is data and this module only names its fields. The tests validate it against
`schemas/ledger.schema.json`, not this module, so a run pays for one parse of one file. Nothing here knows the checks:
who wants to show which checks answer for a requirement hands them in.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from conformance.terms import data
from conformance.terms.documents import Sentence, sentence
from conformance.terms.user_error import UserError

WIDTH = 100
LABEL_WIDTH = 11


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
    """One requirement; the fields are explained at the head of `ledger.toml`. `note` is empty where there is none."""

    id: str
    level: Level
    extension: str
    area: str
    basis: Basis
    statement: str
    sources: tuple[Sentence, ...]
    note: str = ""

    @property
    def source(self) -> str:
        """All sources on one line, as reports show them."""
        return "; ".join(map(str, self.sources))


@cache
def load() -> Mapping[str, Requirement]:
    """Return every requirement by id, in the order of the file. Read once; the mapping is read-only."""
    return MappingProxyType({key: _requirement(key, table) for key, table in data.toml("terms/ledger.toml").items()})


def requirement(requirement_id: str) -> Requirement:
    """Return one requirement.

    Raises:
        UnknownRequirementError: no requirement has this id.
    """
    ledger = load()
    if requirement_id not in ledger:
        raise UnknownRequirementError(requirement_id, get_close_matches(requirement_id.upper(), ledger, n=3))
    return ledger[requirement_id]


def explain(requirement_id: str, checks: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return one requirement as text for a terminal, without a newline at the end.

    Args:
        requirement_id: an id of the ledger.
        checks: the ids of the checks that answer for each requirement id; None leaves the line out.

    Raises:
        UnknownRequirementError: no requirement has this id.
    """
    found = requirement(requirement_id)
    rows = [("Level", f"{found.level}, {found.basis}"), ("Extension", f"{found.extension}, area {found.area}")]
    rows += [("Statement", found.statement)]
    rows += [("Source", text) for source in found.sources for text in (str(source), source.url)]
    rows += [("Note", found.note)] if found.note else []
    if checks is not None:
        rows += [("Checks", check) for check in checks.get(found.id) or ["none"]]
    return "\n".join([found.id, *_labelled(rows)])


def _labelled(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lay out `label  text`, wrapped but for URLs; a label that repeats is printed once."""
    lines: list[str] = []
    previous = ""
    for label, text in rows:
        head = "  " + ("" if label == previous else label).ljust(LABEL_WIDTH)
        indent = " " * len(head)
        lines.append(
            head + text
            if text.startswith("https://")
            else textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)
        )
        previous = label
    return lines


def _requirement(requirement_id: str, table: Mapping[str, Any]) -> Requirement:
    return Requirement(
        id=requirement_id,
        level=Level(table["level"]),
        extension=table["extension"],
        area=table["area"],
        basis=Basis(table["basis"]),
        statement=table["statement"],
        sources=tuple(map(sentence, table["sources"])),
        note=table.get("note", ""),
    )
