"""Summaries of reports, which `docs/results` holds: pages say the same of them, and no command takes one for whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.commands import main
from conformance.judging.selection import list_profile_rows
from conformance.pages import servers
from conformance.report import comparison_page, history
from conformance.report.comparison import compare, count_represented_rows
from conformance.report.report_file import ReportError, read
from conformance.report.simple_page import render_markdown
from conformance.spec.extensions import TRANSPORTS
from tests.support.results import RESULTS, summarize, to_text
from tests.support.small_reports import Report, check, report, requirement

MAX_BYTES = 9_000  # of a report, on average
KEPT = sorted(RESULTS.rglob("*.json.xz"))
EXCHANGE = {"sent": "POST /", "request": "{}", "answer": "[]", "bytes": ["0000 01"]}


def whole(**changes: Any) -> Report:
    """Return a report with rows of every kind."""
    observed: dict[str, Any] = {"requirements": ["BIN-ORDER-I", "BIN-ORDER-O"]}
    rows = [
        check("ordering.x", "a", "pass"),
        check("ordering.x", "b", "fail", "expected 1, got 2", "BIN-ORDER-O"),
        check("json.order", "c", "pass", observation="HTTP 200: {}", **observed),
        check("json.order", "d", "observed", observation="HTTP 404", **observed),
        check("json.order", "e", "pass", observation="HTTP 200: []", **observed),
        check("ordering.x", "f", "advisory", "expected 1, got 3", "BIN-ORDER-O", observation="HTTP 404"),
        check("ordering.x", "g", "blocked", "no answer"),
        check("ordering.x", "h", "pass"),
        check("ordering.x", "i", "not_applicable", "no model"),
    ]
    requirements = [requirement("BIN-ORDER-O", "MUST", "fail"), requirement("BIN-ORDER-I", "MUST", "not_applicable")]
    footer = {"complete": True, "rows": len(rows), "digest": "0" * 64}
    return report(verdict="nonconformant", rows=rows, requirements=requirements, footer=footer, **changes)


def written(folder: Path, summary: Report) -> Path:
    """Write a summary and return its path."""
    path = folder / "summary.json"
    path.write_text(to_text(summary))
    return path


def test_pages_say_the_same_of_a_summary(tmp_path: Path) -> None:
    summary = read(written(tmp_path, summarize(whole())), is_whole=False)
    found = [[("a", each), ("b", report())] for each in (whole(), summary)]
    pages = [
        [
            render_markdown(page)
            for page in (comparison_page.build_page(compare(each)), history.build_page(history.build_history(each)))
        ]
        for each in found
    ]
    assert pages[0] == pages[1]
    (tmp_path / "whole.json").write_text(json.dumps(whole()))
    ours, theirs = servers.load(tmp_path)
    assert ours == theirs
    assert ours.observed["BIN-ORDER-I"] == ["HTTP 200", "HTTP 404"]


def test_rows_that_need_no_explanation_are_counted() -> None:
    rows = summarize(whole())["rows"]
    assert [row.get("row", count_represented_rows(row)) for row in rows] == [2, "b", 2, 1, "f", "g", 1]
    assert rows[0] == {"outcome": "pass", "requirements": ["BIN-ORDER-O"], "count": 2}
    assert rows[1]["failure"] == {"requirement": "BIN-ORDER-O", "sent": "", "bytes": []}


@pytest.mark.parametrize("party", ["server", "client"])
def test_the_first_exchange_of_a_check_is_kept(party: str) -> None:
    made = whole(party=party)
    unmet = [row for row in made["rows"] if row["failure"]]
    for row in unmet:
        row["failure"] |= EXCHANGE
    first, second = (row["failure"] for row in summarize(made)["rows"] if row.get("failure"))
    assert (first, second) == ({"requirement": "BIN-ORDER-O", **EXCHANGE}, {"requirement": "BIN-ORDER-O"})


def test_a_requirement_and_a_row_take_a_line_each() -> None:
    summary = summarize(whole())
    lines = to_text(summary).splitlines()
    assert json.loads("\n".join(lines)) == summary
    assert sum(line.startswith('{"') for line in lines) == len(summary["requirements"]) + len(summary["rows"])


def test_summary_is_refused_where_all_rows_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, summarize(whole()))
    for arguments in (["report", str(path), "-o", "x.md"], ["compare", "--gate", str(path), str(path)]):
        assert main.main(arguments) == 2
        said = f"oip-conformance: error: {path} is the summary of a report; give the whole report\n"
        assert capsys.readouterr().err == said


@pytest.mark.parametrize("changes", [{"summary": False}, {"rows": [{"outcome": "fail", "count": 2}]}, {"seed": "x"}])
def test_a_summary_has_a_form(tmp_path: Path, changes: Report) -> None:
    path = written(tmp_path, summarize(whole()) | changes)
    with pytest.raises(ReportError, match="is not a report of oip-conformance"):
        read(path, is_whole=False)


def test_the_results_are_small_and_count_every_row() -> None:
    assert sum(path.stat().st_size for path in KEPT) < MAX_BYTES * len(KEPT)
    for path in KEPT:
        summary = read(path, is_whole=False)
        assert "summary" in summary
        assert sum(map(count_represented_rows, summary["rows"])) == summary["footer"]["rows"], path


def test_the_results_of_the_bundled_server_are_of_every_row() -> None:
    rows = read(RESULTS / f"{servers.BUNDLED}.json.xz", is_whole=False)["footer"]["rows"]
    assert rows >= len(list(list_profile_rows("certify", transports=TRANSPORTS)))
