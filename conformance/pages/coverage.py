"""Renders docs/coverage.md: how many rows each claim has over HTTP and gRPC, on roles and on deployed models.

The last column names the requirement for clients that is nearest to the claim. An empty column is a hole. `Only` in the
checks, or `coverage.toml`, gives the reason of each; its header comment explains the keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache

from conformance import checks
from conformance.pages import pages, requirement_facts
from conformance.spec import data_files, ledger
from conformance.spec.check import Case, Check, Only, list_rows
from conformance.spec.extensions import GRPC, HTTP, TRANSPORTS
from conformance.spec.ledger import Party

FILE = "pages/coverage.toml"
COLUMNS: Mapping[str, str] = {
    HTTP: "HTTP",
    GRPC: "gRPC",
    "roles": "Roles",
    "deployed": "Deployed models",
    "clients": "Clients",
}
NO_MODEL = "the claim concerns no model"
INTRODUCTION = """\
# Coverage

Written by `python -m tests.support.pages` from the checks and `conformance/pages/coverage.toml`.

A claim is one sentence about a server, with one body. The table counts the rows of each claim over HTTP and over gRPC,
and, of all of them, the rows on models of roles and on [deployed models](options.md). A number in brackets is that of
rows that the other transport cannot have. The last column names what clients are asked by the same sentences: the
requirement that has most of them in common with the claim, and the number of the others. An empty column has a reason,
whose number leads to the list under the table.
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One body with its checks: one for each transport, or one that compares both."""

    checks: tuple[Check, ...]

    @property
    def id(self) -> str:
        """The id of the first check, which is that over HTTP if there is one."""
        return self.checks[0].id

    @property
    def cases(self) -> list[Case]:
        """The rows of all checks."""
        return list_rows(self.checks)

    @property
    def requirement(self) -> str:
        """The first requirement, which decides over which transports the claim can be asked."""
        return self.cases[0].requirements[0]

    def count_rows(self) -> Mapping[str, int]:
        """Return the number of rows in each of `COLUMNS`."""
        return Counter(
            column
            for case in self.cases
            for column, has_row in (
                *((transport, transport in case.check.over) for transport in TRANSPORTS),
                ("roles", case.role),
                ("deployed", case.fit),
            )
            if has_row
        )

    @property
    def client_requirements(self) -> list[str]:
        """The requirements for clients that rest on a sentence of the claim, and have rows; the nearest first.

        Clients send what a server reads (`-I`), and read what it writes (`-O`).
        """
        requirement = ledger.get_requirement(self.requirement)
        side = {"-I": "CLIENT-SENDS", "-O": "CLIENT-READS"}.get(requirement.name[-2:], "")
        own = {*requirement.cited}
        shared = {
            entry.id: len(own & {*entry.cited}) / len(own | {*entry.cited})
            for entry in ledger.load_for_party(Party.CLIENT)
            if entry.id in requirement_facts.map_checks()
        }
        return sorted(filter(shared.get, shared), key=lambda name: (not name.startswith(side), -shared[name]))

    def list_single_rows(self, transport: str) -> list[Only]:
        """Return why rows over a transport have no twin over the other, for each such row."""
        return [row.only for check, row in self.cases if row.only and check.over == (transport,)]


@cache
def list_claims() -> tuple[Claim, ...]:
    """Return the claims about servers, in the order of the suite."""
    found: dict[object, list[Check]] = {}
    for check in checks.load_every_check(of_clients=False):
        found.setdefault(check.body, []).append(check)
    return tuple(Claim(tuple(group)) for group in found.values())


@cache
def load_reasons() -> Mapping[str, Mapping[str, str]]:
    """Return column -> pattern -> reason, from `coverage.toml`."""
    found: dict[str, dict[str, str]] = {}
    for one in data_files.load_toml(FILE)["reasons"]:
        found.setdefault(one["column"], {}).update(dict.fromkeys(one["of"], one["why"]))
    return found


@dataclass(slots=True)
class Holes:
    """The holes of all claims.

    Attributes:
        reasons: the reasons in this area, in order of their first hole.
        unexplained: the holes without a reason: the claim's id and the column.
        used: the patterns that gave a reason, with their column.
    """

    area: str = ""
    reasons: list[str] = field(default_factory=list)
    unexplained: list[tuple[str, str]] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)

    def find_reason(self, claim: Claim, column: str) -> str:
        """Return why a claim has no rows in a column; empty if no reason is known."""
        rows = claim.count_rows()
        if column in ("roles", "deployed") and not rows["roles"] and not rows["deployed"]:
            return NO_MODEL
        if column in TRANSPORTS and (only := next((one.only for one in claim.checks if one.only), None)):
            return only.why
        for pattern, why in load_reasons()[column].items():
            if fnmatchcase(claim.requirement, pattern) or fnmatchcase(claim.id, pattern):
                self.used.add((column, pattern))
                return why
        return ""

    def format_cell(self, claim: Claim, column: str) -> str:
        """Return a cell: the number of rows and of those without a twin, or the number of the reason of a hole."""
        if column == "clients" and (names := claim.client_requirements):
            nearest = pages.link_requirement(names[0], "requirements/")
            return f"{nearest} and {len(names) - 1} more" if names[1:] else nearest
        if count := claim.count_rows()[column]:
            single = claim.list_single_rows(column)
            numbers = ", ".join(dict.fromkeys(self._number(only.why) for only in single))
            return f"{count} ({len(single)}: {numbers})" if single else str(count)
        why = self.find_reason(claim, column)
        if not why:
            self.unexplained.append((claim.id, column))
        return f"none: {self._number(why)}"

    def _number(self, why: str) -> str:
        if why not in self.reasons:
            self.reasons.append(why)
        number = self.reasons.index(why) + 1
        return f"[{number}](#{self.area}-{number})"


def render() -> tuple[str, Holes]:
    """Return the page, and the holes that it shows."""
    holes = Holes()
    areas: dict[str, list[Claim]] = {}
    for claim in list_claims():
        areas.setdefault(claim.checks[0].area, []).append(claim)
    sections = [_render_area(holes, area, areas[area]) for area in checks.PACKAGES if area in areas]
    return "\n".join([INTRODUCTION, *sections]), holes


def _render_area(holes: Holes, area: str, claims: Sequence[Claim]) -> str:
    """Return the table of an area, with the reasons of its holes."""
    holes.area, holes.reasons = area, []
    lines = [f"## {area}\n", f"| Claim | {' | '.join(COLUMNS.values())} |", f"|---|{'---|' * len(COLUMNS)}"]
    for claim in claims:
        names = ", ".join(f"`{check.id}`" for check in claim.checks)
        lines.append(f"| {names} | {' | '.join(holes.format_cell(claim, column) for column in COLUMNS)} |")
    reasons = [f'{number}. <a id="{area}-{number}"></a>{why}' for number, why in enumerate(holes.reasons, 1)]
    return "\n".join([*lines, "", *reasons, ""])
