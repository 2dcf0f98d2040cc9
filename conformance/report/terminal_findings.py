"""Terminal output of findings: a block for each unmet requirement, most urgent first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.report.blocks import Block
from conformance.report.failure_patterns import format_pattern
from conformance.report.findings import (
    Group,
    format_label,
    get_failure,
    group_by,
    has_reason,
    list_texts,
    summarize_message,
)
from conformance.report.lines import Line, Style
from conformance.spec.outcome import OUTCOME_WORDINGS, Outcome, ReasonKind
from conformance.spec.text import escape_text, format_count, join_some

MAX_BLOCKS = 10  # full blocks, unless the user requests all
MAX_FIRST_BLOCKS = 5  # requirements listed above the verdict
MAX_LISTED_ROWS = 6
LABEL_WIDTH = 16  # the column in which the texts of a block begin


def format_failures(blocks: Sequence[Block], rerun: str, *, max_blocks: int | None = MAX_BLOCKS) -> Iterator[Line]:
    """Yield a block for each unmet requirement.

    `rerun`: the command that runs the suite again; empty if there is none.
    `max_blocks`: the maximum number of full blocks; each further block is one line. None shows all in full.
    """
    for number, block in enumerate(blocks[:max_blocks], 1):
        yield from _format_block(number, block, rerun)
        yield Line("")
    rest = blocks[max_blocks:] if max_blocks is not None else []
    if rest:
        yield Line(
            f"And {format_count(len(rest), 'more requirement')}; --conformance-show=all shows them in full:", Style.HEAD
        )
        yield from (_format_summary(number, block) for number, block in enumerate(rest, 1 + len(blocks) - len(rest)))


def format_fix_first(blocks: Sequence[Block]) -> Iterator[Line]:
    """Yield a line for each of the first few requirements to fix, and one with the names of the others."""
    yield from (_format_summary(number, block) for number, block in enumerate(blocks[:MAX_FIRST_BLOCKS], 1))
    if others := [block.requirement for block in blocks[MAX_FIRST_BLOCKS:]]:
        yield Line(f"    and {join_some(others, MAX_LISTED_ROWS)}", hang=LABEL_WIDTH)


def format_blocked_or_error(groups: Sequence[Group], *, max_blocks: int | None = MAX_BLOCKS) -> Iterator[Line]:
    """Yield the rows that are in error or blocked, grouped by reason; omit rows whose target was unreachable."""
    found = [group for group in groups if not has_reason(group.rows[0], ReasonKind.TARGET_LOST)]
    for group in found[:max_blocks]:
        count = format_count(len(group.rows), "row")
        style = Style.BAD if group.outcome == Outcome.ERROR else Style.WARNING
        yield Line(
            f"{OUTCOME_WORDINGS[Outcome(group.outcome)].long}  {count}: {_format_checks(group)}", style, LABEL_WIDTH
        )
        yield from (Line(f"      {text}", hang=6) for text in group.rows[0]["message"].splitlines())
    if max_blocks is not None and len(found) > max_blocks:
        rows = sum(len(group.rows) for group in found[max_blocks:])
        yield Line(f"And {format_count(rows, 'more row')} for {format_count(len(found) - max_blocks, 'other reason')}.")


def format_advice(blocks: Sequence[Block], *, max_blocks: int | None = MAX_BLOCKS) -> Iterator[Line]:
    """Yield a short block for each unmet SHOULD; blocks beyond `max_blocks` are one line each."""
    for block in blocks[:max_blocks]:
        yield Line(_format_heading(block), Style.WARNING, 6)
        yield Line(f"      {block.first.statement}", hang=6)
        yield Line(f"      {summarize_message(block.first.rows[0])}", hang=6)
        if block.first.explain:
            yield _format_labelled_line("Explain", block.first.explain)
        yield from _list_rows(block)
    rest = blocks[max_blocks:] if max_blocks is not None else []
    yield from (Line(_format_heading(block), hang=6) for block in rest)


# --- blocks -----------------------------------------------------------------------------------------------------------


def _format_block(number: int, block: Block, rerun: str) -> Iterator[Line]:
    first = block.first.rows[0]
    failure = get_failure(first)
    yield Line(f"{number}. {_format_heading(block)}", Style.BAD, 6)
    yield Line(f"      {block.first.statement}", Style.HEAD, 6)
    yield from (
        _format_labelled_line("Pattern", format_pattern(pattern), style=Style.WARNING) for pattern in block.patterns
    )
    yield _format_labelled_line("Source", _format_source(block.first), style=Style.ASIDE)
    yield from (
        Line(f"{'':{LABEL_WIDTH}}{url}", Style.ASIDE, is_whole=True) for url in failure.get("source_urls", ())[:1]
    )
    if block.first.explain:
        yield _format_labelled_line("Explain", block.first.explain, style=Style.ASIDE)
    yield _format_labelled_line("Check", format_label(first))
    yield from (_format_labelled_line(label, text) for label, text in list_texts(failure))
    yield from (Line(f"      {row}", is_whole=True) for row in failure["bytes"])
    if failure["repeat"]:
        yield _format_labelled_line("Repeat", failure["repeat"], is_whole=True)
    if rerun:
        yield _format_labelled_line("Rerun", f"{rerun} -k {block.requirement}", is_whole=True)
    yield from _list_rows(block)


def _format_heading(block: Block) -> str:
    group = block.first
    return f"{block.requirement}  {group.level}  not met in {block.count} of {format_count(block.judged, 'row')}"


def _format_summary(number: int, block: Block) -> Line:
    message = format_pattern(block.patterns[0]) if block.patterns else summarize_message(block.first.rows[0])
    symptom = escape_text(message, 300)
    return Line(
        f"{number:>2}. {block.requirement:<24} {block.count:>4} of {block.judged:<4} {symptom}", hang=LABEL_WIDTH
    )


def _format_source(group: Group) -> str:
    """Return the first source sentence of a requirement; the `explain` command prints all of them."""
    first, *others = map(str, group.sources) if group.sources else [group.source]
    return f"{first}; and {len(others)} more" if others else first


def _list_rows(block: Block) -> Iterator[Line]:
    """Yield the failing rows of a block, a line for each check; yield nothing for a single row."""
    if block.count == 1:
        return
    for place, group in enumerate(block.groups[:MAX_LISTED_ROWS]):
        yield _format_labelled_line("Rows" if place == 0 else "", _format_row_names(group))
    if len(block.groups) > MAX_LISTED_ROWS:
        yield _format_labelled_line("", f"and {format_count(len(block.groups) - MAX_LISTED_ROWS, 'more check')}")


def _format_row_names(group: Group) -> str:
    rows = [row["row"] for row in group.rows if row["row"]]
    return f"{group.check}: {join_some(rows, MAX_LISTED_ROWS)}" if rows else group.check


def _format_checks(group: Group) -> str:
    """Return the checks of a group with their rows; rows blocked by the same cause can belong to several checks."""
    own = group_by(group.rows, lambda row: row["check"])
    names = [f"{rows[0]['check']} ({len(rows)})" if len(rows) > 1 else format_label(rows[0]) for rows in own]
    return join_some(names, MAX_LISTED_ROWS)


def _format_labelled_line(name: str, text: str, *, is_whole: bool = False, style: Style = Style.PLAIN) -> Line:
    return Line(f"      {name:<9} {text}", style, LABEL_WIDTH, is_whole)
