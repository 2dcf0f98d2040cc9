"""What both pages of a history share: their words."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.report.comparison import LEGEND
from conformance.report.comparison_labels import format_change
from conformance.report.comparison_versions import RequirementChange
from conformance.report.history import Product, Run
from conformance.spec.tally import MEANINGS

TITLE = "Conformance over time"
WRITTEN_BY = "Written by `oip-conformance history`, from the reports that `--conformance-report` leaves; not by hand."
RUNS = ("date", "version", "verdict", "MUSTs", "rows failed", "fixed", "broke", "suite")
CHANGES = "What changed, and when"
EVER = "What was not met in some run"
SAME = "Nothing that is not met changed from run to run."
NEVER = "Every run met all that it judged."
OTHER_SUITE = "The suite is another, too: what differs may be its own."


def group_changes(run: Run) -> list[tuple[str, list[RequirementChange]]]:
    """Return what differs from the run before, by how it differs, with a word for each."""
    found = (("fixed", run.fixed), ("broke", run.broke), ("otherwise", run.other))
    return [(word, each) for word, each in found if each]


def format_transition(change: RequirementChange) -> str:
    """Return what a requirement came to before and after."""
    before, after = (
        format_change(LEGEND[outcome][0], rows) for outcome, rows in zip(change.outcomes, change.rows, strict=True)
    )
    return f"{before}, then {after}"


def terms(products: Iterable[Product]) -> dict[str, str]:
    """Return the words of the counts of MUSTs that have to be explained, with what they mean."""
    found = dict.fromkeys(word for product in products for run in product.runs for word in run.musts.words)
    return {word: MEANINGS[word] for word in found}


def format_date(run: Run) -> str:
    """Return the date and the version of a run."""
    return f"{run.day} {run.version}".strip()
