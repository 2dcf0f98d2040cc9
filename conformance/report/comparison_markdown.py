"""A comparison of reports as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.report.comparison import LEGEND, Comparison, Line
from conformance.report.comparison_labels import (
    NO_DIFFERENCE,
    ONLY_DIFFERENCES,
    SAME,
    STEPS,
    STEPS_TEXT,
    WAYS_TEXT,
    WRITTEN_BY,
    format_change,
    format_observations,
    shorten_rows,
)
from conformance.report.markdown import code, table, text

BAD = ("fail", "error", "nonconformant")


def render(comparison: Comparison) -> str:
    """Return the page, ending in a newline."""
    titles = [text(title, 80) for title in comparison.titles]
    lines = [
        f"# {comparison.words.title}",
        "",
        WRITTEN_BY,
        "",
        *([] if comparison.is_whole else [ONLY_DIFFERENCES, ""]),
    ]
    lines += [*_facts(comparison, titles), ""]
    lines += [*_steps(comparison, titles), *_requirements(comparison, titles)]
    lines += _section("Advice", titles, comparison.advice)
    lines += _observations(comparison, titles)
    lines += _section("Failures", titles, comparison.failures)
    lines += _section("Blocked, or in error", titles, comparison.stuck)
    return "\n".join(lines).rstrip("\n") + "\n"


def _facts(comparison: Comparison, titles: list[str]) -> list[str]:
    rows = [
        [text(fact.label), *(_strong(text(cell.text), cell.kind) for cell in fact.cells)] for fact in comparison.facts
    ]
    return table(["", *titles], rows)


def _steps(comparison: Comparison, titles: list[str]) -> Iterator[str]:
    if comparison.steps:
        yield from (f"## {STEPS}", "", STEPS_TEXT.format(comparison.words.judged), "")
    for step in comparison.steps:
        columns = [titles[step.older], titles[step.newer]]
        yield from (f"### {columns[0]} and {columns[1]}", "")
        rows = []
        for each in step.changes:
            cells = [
                _strong(format_change(LEGEND[outcome][0], count), outcome)
                for outcome, count in zip(each.outcomes, each.rows, strict=True)
            ]
            rows.append([code(each.id), text(each.level), *cells])
        yield from table(["requirement", "level", *columns], rows) if rows else [SAME]
        yield ""


def _requirements(comparison: Comparison, titles: list[str]) -> Iterator[str]:
    yield "## Requirements"
    yield ""
    if not comparison.areas and not comparison.is_whole:
        yield NO_DIFFERENCE
        return
    yield from table(
        ["sign", "means"], [[_strong(word, kind), meaning] for kind, (word, meaning) in comparison.legend.items()]
    )
    for area, requirements in comparison.areas.items():
        yield from ("", f"### {text(area)}", "")
        rows = [
            [
                code(entry.id),
                text(entry.level),
                entry.statement.replace("|", "\\|"),  # the ledger's own Markdown
                *(_strong(LEGEND[outcome][0], outcome) for outcome in entry.outcomes),
            ]
            for entry in requirements
        ]
        yield from table(["requirement", "level", "statement", *titles], rows)


def _observations(comparison: Comparison, titles: list[str]) -> Iterator[str]:
    yield from ("", "## Observations", "")
    yield WAYS_TEXT.format(comparison.words.judged)
    yield ""
    rows = [
        [
            code(entry.requirement),
            code(entry.check),
            *("<br>".join(map(text, format_observations(cell))) for cell in entry.cells),
        ]
        for entry in comparison.observations
    ]
    none = "None." if comparison.is_whole else NO_DIFFERENCE
    yield from table(["requirement", "check", *titles], rows) if rows else [none]


def _section(heading: str, titles: list[str], columns: Sequence[Sequence[Line]]) -> Iterator[str]:
    if not any(columns):
        return
    yield from ("", f"## {heading}")
    for title, lines in zip(titles, columns, strict=True):
        if lines:
            yield from ("", f"### {title}", "")
            yield from (f"- {_line(line)}" for line in lines)


def _line(line: Line) -> str:
    rows = f" ({text(shorten_rows(line.rows))})" if any(line.rows) else ""
    outcome = "" if line.outcome in ("fail", "advisory") else f" ({LEGEND[line.outcome][0]})"
    return f"{code(line.requirement)} {code(line.check)}{rows}{outcome}: {text(line.message)}"


def _strong(shown: str, kind: str) -> str:
    return f"**{shown}**" if kind in BAD else shown
