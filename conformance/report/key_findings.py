"""Chooses the unmet requirements of a matrix that most affect clients.

The rule, in this order:

1. a MUST before a SHOULD;
2. wrong answers to legal requests, and wrong transport, before missing refusals, which only clients that send wrong
   requests notice;
3. usual requests before those of some clients, and these before rare ones (`Requirement.usage`);
4. more servers before fewer;
5. a larger share of failing rows before a smaller one.

Only the newest version of each server counts. A requirement is one finding over both transports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.report.bug_report import describe_symptom
from conformance.report.matrix import Cell, Column, Matrix, Row
from conformance.spec import ledger
from conformance.spec.ledger import Concern

MAX_FINDINGS = 5
_LEVELS = ("MUST", "SHOULD")
_CONCERNS = ({Concern.EXCHANGE, Concern.TRANSPORT}, {Concern.REFUSAL})
_USAGES = ("usual", "", "rare")


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """An unmet requirement, and the servers that do not meet it.

    Attributes:
        symptom: the behavior of such a server, in a few words.
        row: the HTTP row of the requirement if a server fails it there, else the gRPC row.
        unmet: the columns that do not meet the requirement, each with its cells for HTTP and gRPC.
    """

    symptom: str
    row: Row
    unmet: Sequence[tuple[Column, Sequence[Cell]]]


def choose_findings(matrix: Matrix, limit: int = MAX_FINDINGS) -> list[KeyFinding]:
    """Return the first `limit` findings in the order of the rule."""
    newest = {places[-1] for places in matrix.servers.values()}
    found: dict[str, list[tuple[Row, Cell]]] = {}
    for row in matrix.rows:
        for cell in row.cells:
            if cell.is_unmet and cell.column_index in newest:
                found.setdefault(row.id.removesuffix(ledger.GRPC_SUFFIX), []).append((row, cell))
    return [_build_finding(matrix, pairs) for pairs in sorted(found.values(), key=_compute_rank)[:limit]]


def _compute_rank(pairs: Sequence[tuple[Row, Cell]]) -> tuple[int, int, int, int, float]:
    """Return a sort key for the rule in the module's docstring; unknown levels and concerns come last."""
    row = pairs[0][0]
    level = _LEVELS.index(row.level) if row.level in _LEVELS else len(_LEVELS)
    concern = next((place for place, known in enumerate(_CONCERNS) if row.concern in known), len(_CONCERNS))
    known = ledger.load().get(row.id)
    usage = _USAGES.index(known.usage if known else "")
    servers = len({cell.column_index for _, cell in pairs})
    return level, concern, usage, -servers, -max(cell.unmet / max(cell.judged, 1) for _, cell in pairs)


def _build_finding(matrix: Matrix, pairs: Sequence[tuple[Row, Cell]]) -> KeyFinding:
    row = pairs[0][0]
    known = ledger.load().get(row.id)
    cells: dict[int, list[Cell]] = {}
    for _, cell in pairs:
        cells.setdefault(cell.column_index, []).append(cell)
    symptom = describe_symptom(known) if known else f"Does not meet {row.id}"
    return KeyFinding(symptom, row, [(matrix.columns[place], own) for place, own in sorted(cells.items())])
