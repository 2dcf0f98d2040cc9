"""A history of runs as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.report.comparison import LEGEND
from conformance.report.history import Product, Run, pair_runs
from conformance.report.history_labels import (
    CHANGES,
    EVER,
    NEVER,
    OTHER_SUITE,
    RUNS,
    SAME,
    TITLE,
    WRITTEN_BY,
    format_date,
    format_transition,
    group_changes,
    terms,
)
from conformance.report.markdown import code, table, text


def render(products: Sequence[Product]) -> str:
    """Return the page, ending in a newline."""
    explained = [f"- {word}: {meaning}" for word, meaning in terms(products).items()]
    lines = [f"# {TITLE}", "", WRITTEN_BY, *([""] if explained else []), *explained]
    for product in products:
        lines += ["", f"## {text(product.title, 80)}", "", *table(list(RUNS), [_row(run) for run in product.runs])]
        lines += ["", f"### {CHANGES}", "", *_changes(product), f"### {EVER}", "", *_ever(product)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(run: Run) -> list[str]:
    counts = (run.failed, len(run.fixed), len(run.broke))
    return [text(run.day), text(run.version), run.verdict, run.musts.brief, *map(str, counts), text(run.suite)]


def _changes(product: Product) -> Iterator[str]:
    found = list(pair_runs(product))
    if not found:
        yield from (SAME, "")
    for before, run in found:
        yield from (f"#### {text(format_date(before))} to {text(format_date(run))}", "")
        if run.has_other_suite:
            yield from (OTHER_SUITE, "")
        for word, changes in group_changes(run):
            yield from (f"- {word}: {code(each.id)} {each.level}: {format_transition(each)}" for each in changes)
        yield ""


def _ever(product: Product) -> list[str]:
    if not product.ever:
        return [NEVER]
    rows = [
        [code(entry.id), text(entry.level), *(LEGEND[outcome][0] for outcome in entry.outcomes)]
        for entry in product.ever
    ]
    return table(["requirement", "level", *(text(format_date(run)) for run in product.runs)], rows)
