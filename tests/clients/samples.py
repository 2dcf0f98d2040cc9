"""Which rows the tests run against a fault of the client: those that saw it before, and a few that should not."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

from tests.clients.alterations import Alteration
from tests.clients.sightings import Case

# Where `python -m tests.clients.kill_matrix_page` writes which rows saw each fault.
SEEN_BY = Path(__file__).with_name("seen_by.json")
# One in so many of the other rows is run, too: other ones for each fault.
ONE_IN = 30
# One in so many of the rows that an honest variation is most like to be accused by; `tox -e matrix-clients` runs all.
MANY = 4
# What is sent is made in these modules of the client, and all that rows about answers see of it is that it is sent.
SIDES = {"CLIENT-SENDS-": {"request", "grpc_request"}}


@cache
def read_seen_by() -> dict[str, list[list[str]]]:
    """Return for each fault the first row of each check that saw it, by the names of check and row."""
    found: dict[str, list[list[str]]] = json.loads(SEEN_BY.read_text(encoding="utf-8"))
    return found


def sample_rows(fault: Alteration, rows: Sequence[Case]) -> list[Case]:
    """Return the rows that saw a fault before, and a few others that are not slow."""
    known = read_seen_by().get(fault.name, [])
    return [
        (check, row)
        for check, row in rows
        if [check.id, row.id] in known or (not row.thorough and _chance(fault, check.id, row.id) % ONE_IN == 0)
    ]


def _chance(fault: Alteration, check: str, row: str) -> int:
    return crc32(f"{fault.name} {check} {row}".encode())


def select_apt(variation: Alteration, rows: Sequence[Case]) -> list[Case]:
    """Return some of the rows that a variation could be accused by: of its own side many, of the other side a few."""
    modules = {step.partition(".")[0] for step in variation.steps}
    side = next((side for side, of in SIDES.items() if modules <= of), "CLIENT-")
    return [
        (check, row)
        for check, row in rows
        if _chance(variation, check.id, row.id) % (MANY if check.requirements(row)[0].startswith(side) else ONE_IN) == 0
    ]


def select_answering(rows: Sequence[Case], requirements: Collection[str]) -> list[Case]:
    """Return all rows that answer for any of these requirements."""
    return [(check, row) for check, row in rows if set(check.requirements(row)) & set(requirements)]
