"""Every report leads from a requirement that is not met to what explains it: a command, or the URL of its page."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from conformance.report import page_html, page_markdown, terminal_findings
from conformance.report.blocks import build_blocks
from conformance.report.findings import build_groups
from conformance.report.json_report import build_rows
from conformance.report.lines import Line
from conformance.report.view import build_view
from conformance.spec import ledger, links
from conformance.spec.outcome import Outcome
from conformance.spec.result import CheckResult, Failure
from conformance.spec.verdict import conclude_requirements
from tests.support.made_reports import NONCONFORMANT, check, failure, report, requirement

SITE = "https://host/project"
URL = f"{SITE}/docs/requirements/ordering/#BIN-ORDER-O"
COMMAND = "oip-conformance explain BIN-ORDER-O"


@pytest.fixture
def _public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SITE", SITE)


@pytest.fixture
def _private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SITE", "")


def unmet(check_id: str, requirement_id: str, outcome: Outcome = Outcome.FAIL) -> CheckResult:
    entry = ledger.get_requirement(requirement_id)
    return CheckResult(
        check_id, "", "A claim.", entry.area, entry.extension, outcome, [requirement_id], message="expected a, got b",
        failure=Failure(requirement_id, str(entry.level), entry.statement, "S", "a", "b"),
    )  # fmt: skip


# --- terminal ---------------------------------------------------------------------------------------------------------


def commands_of(lines: Iterable[Line]) -> list[str]:
    start = "      Explain   "
    return [line.text.removeprefix(start) for line in lines if line.text.startswith(start)]


def test_the_terminal_names_the_command_that_explains_a_requirement_once() -> None:
    rows = [unmet("ordering.a", "BIN-ORDER-O"), unmet("ordering.b", "BIN-ORDER-O"), unmet("raw.c", "RAW-ONE-INPUT")]
    commands = [COMMAND, "oip-conformance explain RAW-ONE-INPUT"]
    blocks = build_blocks(build_rows(rows), Outcome.FAIL)
    assert commands_of(terminal_findings.format_failures(blocks, "pytest")) == commands


def test_advice_names_the_command_once() -> None:
    advised = [unmet(f"sizes.{name}", "BIN-BODY-LONG", Outcome.ADVISORY) for name in "ab"]
    blocks = build_blocks(build_rows(advised), Outcome.ADVISORY)
    assert commands_of(terminal_findings.format_advice(blocks)) == ["oip-conformance explain BIN-BODY-LONG"]


def test_a_row_that_is_blocked_has_no_command() -> None:
    blocked = CheckResult("a.b", "", "A claim.", "a", "raw", Outcome.BLOCKED, ["RAW-ONE-INPUT"], message="because")
    groups = build_groups(build_rows([blocked]), Outcome.BLOCKED)
    assert commands_of(terminal_findings.format_blocked_or_error(groups)) == []


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_public")
def test_the_json_report_has_the_url_of_each_requirement() -> None:
    found = {entry["id"]: entry["url"] for party in ledger.Party for entry in conclude_requirements([], party)}
    assert found == {entry.id: entry.url for entry in ledger.load().values() if not entry.is_of_robustness}
    assert found["BIN-ORDER-O"] == URL


@pytest.mark.usefixtures("_private")
def test_the_json_report_names_no_path_of_the_repository() -> None:
    assert {entry["url"] for entry in conclude_requirements([])} == {""}


@pytest.mark.usefixtures("_public")
def test_pages_link_to_the_url() -> None:
    assert f'<a class="page" href="{URL}">' in page_html.render(build_view(NONCONFORMANT))
    assert f'(Document, "S"; [page]({URL}))' in page_markdown.render(build_view(NONCONFORMANT))


@pytest.mark.usefixtures("_private")
def test_pages_show_the_command_and_no_link_where_there_is_no_url() -> None:
    page = page_html.render(build_view(NONCONFORMANT))
    assert f'<code class="page">{COMMAND}</code>' in page
    assert 'class="page" href' not in page
    assert f'(Document, "S"; `{COMMAND}`)' in page_markdown.render(build_view(NONCONFORMANT))


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
    for page in (page_html.render(build_view(made)), page_markdown.render(build_view(made))):
        assert URL in page
        assert "javascript:" not in page
        assert "evil" not in page
