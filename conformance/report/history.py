"""Reports of one product over time: what each run came to, what got fixed, what broke, and when.

Reports of several products are told apart by the name that the server gives, or by its URL where it gives none. Nothing
here is escaped: that is for `history_markdown` and `history_html`, each in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

from conformance.report.comparison_versions import RequirementChange, find_changes, parse_version
from conformance.spec import ledger
from conformance.spec.outcome import Outcome
from conformance.spec.tally import MET, NOT_MET, Tally, tally_report

Report = Mapping[str, Any]

EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Run:
    """A run, and what differs from the run before it.

    Attributes:
        file: the name of the report's file.
        failed: how many rows failed, those included that a baseline lists.
        fixed: what was not met and is; `broke`: what is not met and was, or was not judged.
        other: what is not met in one of the two and differs in another way: in its rows, say, or it is not judged.
        has_other_suite: the run before was one of another suite, which may be why they differ.
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
    has_other_suite: bool


@dataclass(frozen=True, slots=True)
class RequirementHistory:
    """A requirement that some run did not meet.

    Attributes:
        statement: of this version's ledger; empty for an id that it does not know.
        outcomes: of each run; empty where a report does not have the requirement.
    """

    id: str
    level: str
    statement: str
    outcomes: list[str]


@dataclass(frozen=True, slots=True)
class Product:
    """The runs of a product, the earliest first, and every requirement that one of them did not meet."""

    title: str
    runs: list[Run]
    ever: list[RequirementHistory]


def build_history(reports: Iterable[tuple[str, Report]]) -> list[Product]:
    """Return the products by name, each with its runs by day and version.

    Args:
        reports: the name of each one's file, and the report itself.
    """
    products: dict[str, list[tuple[str, Report]]] = {}
    for file, report in reports:
        products.setdefault(report["target"]["name"] or report["target"]["url"], []).append((file, report))
    return [_product(title, found) for title, found in sorted(products.items())]


def _product(title: str, found: Sequence[tuple[str, Report]]) -> Product:
    ordered = sorted(found, key=_when)
    before = [None, *(report for _, report in ordered)]
    runs = [_run(file, report, earlier) for (file, report), earlier in zip(ordered, before, strict=False)]
    return Product(title, runs, list(_ever([report for _, report in ordered])))


def _when(named: tuple[str, Report]) -> tuple[date, tuple[int, ...], datetime, str]:
    """Return a key that sorts runs by day, those of one day by version: an older one may have been tried later."""
    file, report = named
    moment = _moment(report["started"])
    return moment.date(), parse_version(report["target"]["version"] or ""), moment, file


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return EARLIEST
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _run(file: str, report: Report, earlier: Report | None) -> Run:
    found = list(find_changes(earlier, report)) if earlier else []
    fixed, broke = (list(filter(test, found)) for test in (is_fixed, is_broken))
    suite = report["suite"]
    return Run(
        file,
        report["started"][:10],
        report["target"]["version"] or "",
        report["verdict"],
        f"{suite['version']} ({suite['digest'][:8]})",
        tally_report(report),
        sum(check["outcome"] in (Outcome.FAIL, Outcome.KNOWN_FAILURE) for check in report["rows"]),
        fixed,
        broke,
        [change for change in found if change not in fixed and change not in broke],
        earlier is not None and earlier["suite"]["digest"] != suite["digest"],
    )


def is_fixed(change: RequirementChange) -> bool:
    """Say whether what was not met is met."""
    before, after = change.outcomes
    return before in NOT_MET and after in MET


def is_broken(change: RequirementChange) -> bool:
    """Say whether what is not met was met, or was not judged."""
    before, after = change.outcomes
    return before not in NOT_MET and after in NOT_MET


def _ever(reports: Sequence[Report]) -> Iterator[RequirementHistory]:
    """Yield what was not met in some run, in the order of this version's ledger; what it does not know comes last."""
    verdicts = [{entry["id"]: entry["verdict"] for entry in report["requirements"]} for report in reports]
    levels = {entry["id"]: entry["level"] for report in reports for entry in report["requirements"]}
    known = ledger.load()
    for name in [*(name for name in known if name in levels), *(name for name in levels if name not in known)]:
        outcomes = [own.get(name, "") for own in verdicts]
        if any(outcome in NOT_MET for outcome in outcomes):
            yield RequirementHistory(name, levels[name], known[name].statement if name in known else "", outcomes)


def pair_runs(product: Product) -> Iterator[tuple[Run, Run]]:
    """Yield each run with the one before it, the earlier first, where something differs between them."""
    return ((before, run) for before, run in pairwise(product.runs) if run.fixed or run.broke or run.other)
