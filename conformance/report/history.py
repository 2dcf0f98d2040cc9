"""The history of a product: the verdict of each run, and the requirements that became met or unmet.

Reports with the same server name belong to one product. So do reports without a server name that have the same URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise

from conformance.report.comparison import LEGEND
from conformance.report.requirement_changes import (
    RequirementChange,
    RequirementOutcomes,
    find_changes,
    format_outcome,
    list_outcomes,
    parse_version,
)
from conformance.report.simple_page import (
    Bar,
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
    compute_parts,
)
from conformance.spec.outcome import Outcome
from conformance.spec.report import Report
from conformance.spec.tally import MEANINGS, NOT_MET, Tally, tally_report
from conformance.spec.text import escape_text

EARLIEST = datetime.min.replace(tzinfo=UTC)
WRITTEN_BY = "Written by `oip-conformance history` from reports of `--conformance-report`; not edited by hand."
RUN_COLUMNS = ("date", "version", "verdict", "MUSTs", "rows failed", "fixed", "broke", "suite")


@dataclass(frozen=True, slots=True)
class Run:
    """A run, and its differences from the previous run.

    Attributes:
        file: the name of the report's file.
        failed: the number of failed rows, including known failures of a baseline.
        fixed: requirements that were unmet and are now met.
        broke: requirements that are unmet now and were met or not judged before.
        other: the other changes of requirements that are unmet in one of the two runs: the number of failing rows
            differs, or the requirement is no longer judged.
        is_suite_changed: whether another version of the suite wrote the previous report, which may cause differences.
    """

    file: str
    day: str
    version: str
    verdict: str
    suite: str
    musts: Tally
    failed: int
    fixed: list[RequirementChange]
    broke: list[RequirementChange]
    other: list[RequirementChange]
    is_suite_changed: bool

    @property
    def name(self) -> str:
        """The date of the run and the version of the product."""
        return f"{self.day} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Product:
    """The runs of a product, earliest first, and each requirement that some run did not meet."""

    title: str
    runs: list[Run]
    unmet: list[RequirementOutcomes]


def build_history(reports: Iterable[tuple[str, Report]]) -> list[Product]:
    """Return the products sorted by name, each with its runs sorted by day and version.

    `reports`: pairs of a file name and its report.
    """
    products: dict[str, list[tuple[str, Report]]] = {}
    for file, report in reports:
        products.setdefault(report["target"]["name"] or report["target"]["url"], []).append((file, report))
    return [_build_product(title, found) for title, found in sorted(products.items())]


def _build_product(title: str, reports: Sequence[tuple[str, Report]]) -> Product:
    ordered = sorted(reports, key=_compute_sort_key)
    before = [None, *(report for _, report in ordered)]
    runs = [_build_run(file, report, earlier) for (file, report), earlier in zip(ordered, before, strict=False)]
    entries = list_outcomes([report for _, report in ordered])
    return Product(title, runs, [entry for entry in entries if any(each in NOT_MET for each in entry.outcomes)])


def _compute_sort_key(named: tuple[str, Report]) -> tuple[date, tuple[int, ...], datetime, str]:
    """Return a sort key: by day, then by version, because an older version may have been tested later that day."""
    file, report = named
    moment = _parse_time(report["started"])
    return moment.date(), parse_version(report["target"]["version"] or ""), moment, file


def _parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return EARLIEST
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _build_run(file: str, report: Report, earlier: Report | None) -> Run:
    found = list(find_changes(earlier, report)) if earlier else []
    suite = report["suite"]
    return Run(
        file,
        report["started"][:10],
        report["target"]["version"] or "",
        report["verdict"],
        f"{suite['version']} ({suite['digest'][:8]})",
        tally_report(report),
        sum(check["outcome"] in (Outcome.FAIL, Outcome.KNOWN_FAILURE) for check in report["rows"]),
        [change for change in found if change.is_fixed],
        [change for change in found if change.has_become_unmet],
        [change for change in found if not (change.is_fixed or change.has_become_unmet)],
        earlier is not None and earlier["suite"]["digest"] != suite["digest"],
    )


# --- the page ---------------------------------------------------------------------------------------------------------


def build_page(products: Sequence[Product]) -> SimplePage:
    """Build the page of the products."""
    blocks: list[Block] = [Paragraph([Span(WRITTEN_BY, "own")], is_dim=True)]
    words = dict.fromkeys(word for product in products for run in product.runs for word in run.musts.words)
    if words:
        blocks.append(BulletList([[f"{word}: ", Span(MEANINGS[word], "own")] for word in words]))
    for product in products:
        blocks += _build_product_blocks(product)
    return SimplePage("Conformance over time", blocks)


def _build_product_blocks(product: Product) -> Iterator[Block]:
    title = escape_text(product.title, 80)
    yield Heading(2, title)
    yield Table(f"Runs of {title}", RUN_COLUMNS, [_build_run_cells(run) for run in product.runs])
    yield Heading(3, "What changed, and when")
    yield from list(_build_change_blocks(product.runs)) or [
        Paragraph(["No requirement was fixed or broken from run to run."])
    ]
    yield Heading(3, "Requirements that some run did not meet")
    if not product.unmet:
        yield Paragraph(["Every run met all requirements that it judged."])
        return
    rows = [
        [
            cell(code(entry.id)),
            cell(entry.level, Span(entry.statement, "own", is_small=True, is_extra=True)),
            *(cell(LEGEND[outcome][0], kind=outcome) for outcome in entry.outcomes),
        ]
        for entry in product.unmet
    ]
    head = ["requirement", "level", *(run.name for run in product.runs)]
    yield Table(f"Requirements of {title}", head, rows, lead=2)


def _build_run_cells(run: Run) -> list[Cell]:
    return [
        cell(run.day, Span(run.file, is_small=True, is_extra=True, limit=80)),
        cell(run.version),
        cell(run.verdict, kind=run.verdict),
        cell(run.musts.brief, Bar(compute_parts(run.musts.counts))),
        *(cell(str(count)) for count in (run.failed, len(run.fixed), len(run.broke))),
        cell(run.suite),
    ]


def _build_change_blocks(runs: Sequence[Run]) -> Iterator[Block]:
    for before, run in pairwise(runs):
        found = (("fixed", run.fixed), ("broke", run.broke), ("otherwise", run.other))
        items: list[list[Piece]] = [
            [Span(word, kind=word), ": ", code(each.id), f" {each.level}: {_describe_change(each)}"]
            for word, changes in found
            for each in changes
        ]
        if not items:
            continue
        yield Heading(4, f"{before.name} to {run.name}")
        if run.is_suite_changed:
            yield Paragraph(["The two runs used different versions of the suite, which may also cause differences."])
        yield BulletList(items)


def _describe_change(change: RequirementChange) -> str:
    before, after = (
        format_outcome(LEGEND[outcome][0], rows) for outcome, rows in zip(change.outcomes, change.rows, strict=True)
    )
    return f"{before}, then {after}"
