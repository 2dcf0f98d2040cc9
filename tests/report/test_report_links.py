"""Every report leads from a requirement that is not met to its page: by a URL where there is one, else by a path."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from conformance.report import page_html, page_markdown, terminal_findings
from conformance.report.findings import Entry
from conformance.report.lines import Line
from conformance.report.view import view
from conformance.terms import ledger, links
from conformance.terms.outcome import Outcome
from conformance.terms.result import CheckResult, Failure
from conformance.terms.verdict import of_requirements
from tests.support.made_reports import NONCONFORMANT, check, failure, report, requirement

REPOSITORY = "https://host/project"
PATH = "docs/requirements/ordering.md#BIN-ORDER-O"
URL = f"{REPOSITORY}/blob/main/{PATH}"


@pytest.fixture
def _public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "REPOSITORY", REPOSITORY)


@pytest.fixture
def _private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "REPOSITORY", "")


def unmet(check_id: str, requirement_id: str, outcome: Outcome = Outcome.FAIL) -> Entry:
    entry = ledger.requirement(requirement_id)
    return CheckResult(
        check_id, "", "A claim.", entry.area, entry.extension, outcome, [requirement_id], message="expected a, got b",
        failure=Failure(requirement_id, str(entry.level), entry.statement, "S", "a", "b"),
    ).to_dict()  # fmt: skip


# --- terminal ---------------------------------------------------------------------------------------------------------


def pages_of(lines: Iterable[Line]) -> list[str]:
    start = "      Page      "
    return [line.text.removeprefix(start) for line in lines if line.text.startswith(start)]


@pytest.mark.usefixtures("_public")
def test_the_terminal_names_the_page_of_a_requirement_once() -> None:
    rows = [unmet("ordering.a", "BIN-ORDER-O"), unmet("ordering.b", "BIN-ORDER-O"), unmet("raw.c", "RAW-ONE-INPUT")]
    assert pages_of(terminal_findings.failures(rows, "pytest")) == [URL, ledger.requirement("RAW-ONE-INPUT").link]


@pytest.mark.usefixtures("_private")
def test_advice_names_the_page_once() -> None:
    advised = [unmet(f"sizes.{name}", "BIN-BODY-LONG", Outcome.ADVISORY) for name in "ab"]
    assert pages_of(terminal_findings.advice(advised)) == ["docs/requirements/sizes.md#BIN-BODY-LONG"]


def test_a_row_that_is_blocked_has_no_page() -> None:
    blocked = CheckResult("a.b", "", "A claim.", "a", "raw", Outcome.BLOCKED, ["RAW-ONE-INPUT"], message="because")
    assert pages_of(terminal_findings.stuck([blocked.to_dict()])) == []


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_public")
def test_the_json_report_has_the_url_of_each_requirement() -> None:
    found = {entry["id"]: entry["url"] for party in ledger.Party for entry in of_requirements([], party)}
    assert found == {entry.id: entry.link for entry in ledger.load().values() if not entry.is_of_robustness}
    assert found["BIN-ORDER-O"] == URL


@pytest.mark.usefixtures("_public")
def test_pages_link_to_the_url() -> None:
    assert f'<a class="page" href="{URL}">' in page_html.render(view(NONCONFORMANT))
    assert f'(Document, "S"; [page]({URL}))' in page_markdown.render(view(NONCONFORMANT))


@pytest.mark.usefixtures("_private")
def test_pages_show_the_path_and_no_link_where_there_is_no_url() -> None:
    page = page_html.render(view(NONCONFORMANT))
    assert f'<span class="page">{PATH}</span>' in page
    assert 'class="page" href' not in page
    assert f'(Document, "S"; `{PATH}`)' in page_markdown.render(view(NONCONFORMANT))


@pytest.mark.usefixtures("_public")
def test_the_url_of_a_foreign_report_is_not_believed() -> None:
    forged = requirement("BIN-ORDER-O", "MUST", "fail", url="javascript:alert(1)")
    unknown = requirement("BIN-UNKNOWN", "MUST", "fail", url="https://evil.example/")
    made = report(
        "nonconformant",
        requirements=[forged, unknown],
        rows=[
            check(outcome="fail"),
            check("ordering.y", "", "fail", requirements=["BIN-UNKNOWN"], failure=failure("BIN-UNKNOWN")),
        ],
    )
    for page in (page_html.render(view(made)), page_markdown.render(view(made))):
        assert URL in page
        assert "javascript:" not in page
        assert "evil" not in page
