"""Which rows of the suite a fault meets: all that can see it, or a sample of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from functools import cache
from pathlib import Path
from zlib import crc32

from conformance.checks.walk.axes import KINDS
from conformance.judging.selection import Subjects, list_profile_rows
from conformance.spec import ledger
from conformance.spec.check import Case, Check
from conformance.spec.extensions import GRPC, HTTP, ROBUSTNESS, TRANSPORTS
from reference_server.faults import Fault
from tests.support.step_tracing import Rows

# The tests run the rows that saw a fault before, and this part of all others, other ones for each fault. Where that
# raises a doubt they run so many rows of each check that should see it and more of the others, and all rows where that
# raises one, too. `tox -e matrix` runs them all.
OF_EACH = 30
FEW_OF_FAULT, FEW_OF_HONEST, MANY = 2000, 800, 80  # one in so many
MIN_ROWS = 3  # of a server of which none is known; one that meets no row is in doubt, which is dear
# Where `python -m tests.support.kill_matrix_page` writes which rows first saw what a fault breaks.
SEEN_BY = Path(__file__).parents[1] / "faults" / "seen_by.json"
# Role and part of those rows of the walk that every honest server has to pass.
WALK_SAMPLES = tuple((role, "brief") for role in ("multi", "raw_variable", "scores_batching_labelled", "scores_rank2"))
# Axis and value of a nearly plain request, which every kind of request has.
PLAINEST = ("connection", "fresh")


@cache
def collect_rows(*, over_grpc: bool) -> Rows:
    """Return the rows over a transport without the walk."""
    every = list_profile_rows("certify", dangerous=True, transports=(GRPC,) if over_grpc else (HTTP,))
    return [case for case in every if not is_walk(case.check)]


def is_hostile(fault: Fault) -> bool:
    """Whether a fault is about what a server withstands, which rows of the area `robustness` alone see."""
    return any(ledger.get_requirement(name).is_of_robustness for name in fault.breaks)


@cache
def collect_hostile_rows() -> Rows:
    """Return the rows of the area `robustness`."""
    every = list_profile_rows("certify", dangerous=True, subjects=Subjects(robustness=True), transports=TRANSPORTS)
    return [case for case in every if case[0].area == ROBUSTNESS]


def select_hostile_rows(fault: Fault) -> Rows:
    """Return the rows that may see such a fault, and the first row of each check of another requirement."""
    own = select_answering(collect_hostile_rows(), fault.breaks)
    firsts = {case.check.id: case for case in reversed(collect_hostile_rows()) if case not in own}
    over = [case for case in firsts.values() if case[0].is_over_grpc == fault.over_grpc]
    return [*own, *over]


def is_walk(check: Check) -> bool:
    """Whether a check walks, over HTTP or gRPC."""
    return check.body.__module__.startswith("conformance.checks.walk.")


@cache
def collect_walk_rows(kind: str) -> Rows:
    """Return the rows of the walk that send requests of a kind, the brief ones first."""
    every = list_profile_rows("certify", transports=TRANSPORTS)
    found = [case for case in every if is_walk(case.check) and case.row.values[0] == kind]
    return sorted(found, key=lambda case: case[1].values[-1] == "rest")


@cache
def collect_walk_samples() -> Rows:
    """Return a few rows of the walk, for servers that are honest in a way of their own."""
    every = [case for kind in KINDS for case in collect_walk_rows(kind)]
    return [case for case in every if (case.row.role, case.row.values[-1]) in WALK_SAMPLES]


@cache
def collect_plain_walk_rows() -> Rows:
    """Return a row of the walk with nearly plain requests for each kind.

    A plain request that the walk finds wrong blocks every row of its kind with a single value.
    """
    every = [case for kind in KINDS for case in collect_walk_rows(kind)]
    return [case for case in every if case.row.values[1:] == PLAINEST and case.row.role]


@cache
def _rows_that_saw() -> dict[str, frozenset[tuple[str, str]]]:
    """Return for each fault the rows that first saw what it breaks, by the names of check and row."""
    return {name: frozenset(rows) for name, rows in read_seen_by().items()}


def read_seen_by(file: Path = SEEN_BY) -> dict[str, list[tuple[str, str]]]:
    """Return for each fault the ids of check and row of those that a kill matrix has seen it by."""
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {name: [(check, row) for check, row in rows] for name, rows in found.items()}


def sort_known_first(fault: Fault, rows: Rows) -> Rows:
    """Return rows, those first that saw the fault before."""
    return sorted(rows, key=lambda case: not is_known(fault, case))


def is_known(fault: Fault, case: Case) -> bool:
    """Whether a row is one of those that saw a fault before; where none is any more, tests take longer, no more."""
    return (case[0].id, case[1].id) in _rows_that_saw().get(fault.name, ())


def sample_rows(fault: Fault, rows: Rows, *, is_doubted: bool = False) -> Rows:
    """Return the rows that saw a fault before, and a few of the others; in doubt some of each check that is to see it.

    Of a requirement that no known row answers for, that is one row of each such check at first.
    """
    known = [case for case in rows if is_known(fault, case)]
    has_known = bool(known)
    answered = {name for case in known for name in case.requirements}
    meant = set(fault.breaks) - (set() if is_doubted else answered)
    of_each = OF_EACH if is_doubted else 1
    one_in = MANY if is_doubted else FEW_OF_FAULT if has_known else FEW_OF_HONEST
    least = 0 if has_known else MIN_ROWS
    chances = [_chance(fault, case) for case in rows]
    chosen: set[int] = set()
    taken: Counter[str] = Counter()
    for chance, place in sorted(zip(chances, range(len(rows)), strict=True)):
        case = rows[place]
        is_meant = bool(set(case.requirements) & meant) and taken[case.check.id] < of_each
        if is_meant or chance % one_in == 0 or len(chosen) < least or is_known(fault, case):
            taken[case.check.id] += 1
            chosen.add(place)
    return [rows[place] for place in sorted(chosen)]


def select_answering(rows: Rows, requirements: Collection[str]) -> Rows:
    """Return all rows that answer for any of these requirements: the first of each check, then the second."""
    taken: Counter[str] = Counter()
    found = []
    wanted = set(requirements)
    for case in rows:
        if not wanted.isdisjoint(case.requirements):
            found.append((taken[case.check.id], case))
            taken[case.check.id] += 1
    return [case for _, case in sorted(found, key=lambda entry: entry[0])]


def shuffle_rows(fault: Fault, rows: Rows) -> Rows:
    """Return rows in an order of the fault's own."""
    return sorted(rows, key=lambda case: _chance(fault, case))


def _chance(fault: Fault, case: Case) -> int:
    return crc32(f"{fault.name} {case[0].id} {case[1].id}".encode())
