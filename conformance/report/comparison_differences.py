"""Of a comparison, what differs between its columns, for those who look for nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from conformance.report.comparison import Comparison, Line


def keep_differences(comparison: Comparison) -> Comparison:
    """Return facts, requirements and observations that are not the same in all columns.

    Of advice, failures and what is stuck, the lines stay that are about one of these requirements.
    """
    areas = {
        area: own
        for area, entries in comparison.areas.items()
        if (own := [entry for entry in entries if len(set(entry.outcomes)) > 1])
    }
    names = {entry.id for entries in areas.values() for entry in entries}
    return replace(
        comparison,
        facts=[fact for fact in comparison.facts if len({cell.text for cell in fact.cells}) > 1],
        areas=areas,
        observations=[entry for entry in comparison.observations if _differs(entry.cells)],
        advice=_about(comparison.advice, names),
        failures=_about(comparison.failures, names),
        stuck=_about(comparison.stuck, names),
        is_whole=False,
    )


def _differs(cells: Sequence[Sequence[tuple[str, int]]]) -> bool:
    """Say whether columns were observed to go different ways, however often."""
    return len({frozenset(what for what, _ in cell) for cell in cells}) > 1


def _about(columns: Sequence[Sequence[Line]], names: Collection[str]) -> list[list[Line]]:
    return [[line for line in lines if line.requirement in names] for lines in columns]
