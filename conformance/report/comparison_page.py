"""Renders a comparison of reports as a Markdown page; `matrix_page` renders it as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.report.comparison import LEGEND, Comparison, Line
from conformance.report.requirement_changes import format_outcome
from conformance.report.simple_page import (
    LINE_BREAK,
    Block,
    BulletList,
    Cell,
    Heading,
    Paragraph,
    Piece,
    SimplePage,
    Span,
    Table,
    cell,
    code,
)
from conformance.spec.text import escape_text, join_some

WRITTEN_BY = "Written by `oip-conformance compare` from reports of `--conformance-report`; not edited by hand."
STEPS_TEXT = "Requirements that only some versions of a {} meet, and the number of rows that fail."
WAYS_TEXT = "What each {} does where the documents leave a choice; the number in brackets counts the rows."
NO_DIFFERENCE = Paragraph(["None differs."])
MAX_ROWS = 3
MAX_OBSERVATIONS = 4
BAD = ("fail", "error", "nonconformant")  # bold


def build_page(comparison: Comparison) -> SimplePage:
    """Build the page of a comparison."""
    titles = [escape_text(title, 80) for title in comparison.titles]
    blocks: list[Block] = [Paragraph([Span(WRITTEN_BY, "own")], is_dim=True)]
    if not comparison.is_whole:
        blocks.append(Paragraph(["This page shows only requirements and rows that differ between the columns."]))
    facts = [
        [cell(fact.label), *(_format_cell(each.text, each.kind) for each in fact.cells)] for fact in comparison.facts
    ]
    blocks += [
        Table("The runs", ["", *titles], facts),
        *_build_steps(comparison, titles),
        *_build_requirements(comparison, titles),
        *_build_section("Advice", titles, comparison.advice),
        *_build_observations(comparison, titles),
        *_build_section("Failures", titles, comparison.failures),
        *_build_section("Blocked, or in error", titles, comparison.stuck),
    ]
    return SimplePage(comparison.words.title, blocks)


def _format_cell(text: str, kind: str) -> Cell:
    return cell(Span(text, "strong") if kind in BAD else text)


def _build_steps(comparison: Comparison, titles: list[str]) -> Iterator[Block]:
    if comparison.steps:
        yield Heading(2, "From version to version")
        yield Paragraph([STEPS_TEXT.format(comparison.words.judged)])
    for step in comparison.steps:
        columns = [titles[step.older], titles[step.newer]]
        yield Heading(3, f"{columns[0]} and {columns[1]}")
        rows = [
            [
                cell(code(each.id)),
                cell(each.level),
                *(
                    _format_cell(format_outcome(LEGEND[outcome][0], count), outcome)
                    for outcome, count in zip(each.outcomes, each.rows, strict=True)
                ),
            ]
            for each in step.changes
        ]
        head = ["requirement", "level", *columns]
        yield Table("What changed", head, rows) if rows else Paragraph(["Both versions meet the same requirements."])


def _build_requirements(comparison: Comparison, titles: list[str]) -> Iterator[Block]:
    yield Heading(2, "Requirements")
    if not comparison.areas and not comparison.is_whole:
        yield NO_DIFFERENCE
        return
    signs = [
        [_format_cell(word, kind), cell(Span(meaning, "own"))] for kind, (word, meaning) in comparison.legend.items()
    ]
    yield Table("The signs", ["sign", "means"], signs)
    for area, requirements in comparison.areas.items():
        yield Heading(3, area)
        rows = [
            [
                cell(code(entry.id)),
                cell(entry.level),
                cell(Span(entry.statement, "own")),
                *(_format_cell(LEGEND[outcome][0], outcome) for outcome in entry.outcomes),
            ]
            for entry in requirements
        ]
        yield Table(f"Requirements: {area}", ["requirement", "level", "statement", *titles], rows)


def _build_observations(comparison: Comparison, titles: list[str]) -> Iterator[Block]:
    yield Heading(2, "Observations")
    yield Paragraph([WAYS_TEXT.format(comparison.words.judged)])
    rows = [
        [cell(code(entry.requirement)), cell(code(entry.check)), *map(_format_observations, entry.cells)]
        for entry in comparison.observations
    ]
    if rows:
        yield Table("Observations", ["requirement", "check", *titles], rows)
    else:
        yield Paragraph(["None."]) if comparison.is_whole else NO_DIFFERENCE


def _format_observations(observed: Sequence[tuple[str, int]]) -> Cell:
    """Return a cell with observations and the number of rows of each."""
    shown = [what if count == 1 else f"{what} ({count})" for what, count in observed[:MAX_OBSERVATIONS]]
    if len(observed) > MAX_OBSERVATIONS:
        shown.append(f"and {len(observed) - MAX_OBSERVATIONS} more")
    pieces: list[Piece] = [piece for what in shown for piece in (LINE_BREAK, what)]
    return cell(*pieces[1:])


def _build_section(heading: str, titles: list[str], columns: Sequence[Sequence[Line]]) -> Iterator[Block]:
    if any(columns):
        yield Heading(2, heading)
    for title, lines in zip(titles, columns, strict=True):
        if lines:
            yield Heading(3, title)
            yield BulletList([list(_format_line(line)) for line in lines])


def _format_line(line: Line) -> Iterator[Piece]:
    yield from (code(line.requirement), " ", code(line.check))
    if any(line.rows):
        yield from (" (", join_some([row or "-" for row in line.rows], MAX_ROWS), ")")
    if line.outcome not in ("fail", "advisory"):
        yield f" ({LEGEND[line.outcome][0]})"
    yield from (": ", line.message)
