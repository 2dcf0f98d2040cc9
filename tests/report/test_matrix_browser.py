"""The matrix in a browser: for everybody, on a narrow screen, by keyboard alone, without scripts, and by addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from conformance.report import matrix_page
from conformance.report.comparison import compare
from conformance.report.matrix import build_matrix, sort_versions
from conformance.spec import ledger
from tests.support.browser_pages import NARROW, WIDE, ColorScheme, find_violations, open_page
from tests.support.small_reports import Report, check, report, requirement

NAMES = [name for name, entry in ledger.load().items() if entry.area in ("headers", "ordering")]
FAILED, OTHER = "BIN-ORDER-O", "BIN-ORDER-I"
CELL = f"{FAILED}--alpha-2"


def make_report(name: str, version: str, verdict: str, other: str = "pass") -> Report:
    """Return a report whose server does not meet one requirement in one row, or in none."""
    entries = [requirement(each, "MUST", {FAILED: verdict, OTHER: other}.get(each, "pass")) for each in NAMES]
    failed = check("ordering.x", "a", "fail", "expected 1, got 2", FAILED)
    failed["failure"] |= {"sent": "POST /v2/models/multi/infer", "bytes": ["0058  65 22  " + "." * 200]}
    rows = [failed] if verdict == "fail" else [check("ordering.x", "a", "pass")]
    return report(name, version, requirements=entries, rows=rows)


def make_page() -> str:
    made = [("alpha", "1", "pass"), ("alpha", "2", "fail"), ("beta", "1", "pass", "not_applicable")]
    named = sort_versions([(" ".join(each[:2]), make_report(*each)) for each in made])
    return matrix_page.render_page(build_matrix(compare(named), named))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matrix") / "results.html"
    path.write_text(make_page(), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, file: Path) -> Iterator[Callable[..., Page]]:
    """Return what opens the page, at an address within it if one is given; what it opened is closed afterwards."""
    pages: list[Page] = []

    def show(place: str = "", *arguments: Any, **options: Any) -> Page:
        page = open_page(browser, file, *arguments, **options)
        if place:
            page.goto(f"{file.as_uri()}#{place}")
        pages.append(page)
        return page

    yield show
    for page in pages:
        page.context.close()


def list_shown(page: Page) -> list[str]:
    return page.locator(".row:visible th .id").all_text_contents()


@pytest.mark.parametrize(
    ("size", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")], ids=str
)
def test_axe_finds_nothing(opened: Callable[..., Page], size: tuple[int, int], scheme: ColorScheme) -> None:
    page = opened(CELL, size, scheme)
    assert page.locator("section:target").is_visible()
    assert find_violations(page) == ""


def test_a_wide_table_scrolls_within_itself_under_its_head(opened: Callable[..., Page]) -> None:
    page = opened(CELL, NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    # The panel is as wide as the screen shows, and what is wider in it scrolls there.
    panel, scroll = page.locator("section:target").bounding_box(), page.locator(".scroll").first.bounding_box()
    assert panel
    assert scroll
    assert scroll["x"] <= panel["x"]
    assert panel["x"] + panel["width"] <= scroll["x"] + scroll["width"]
    page.evaluate("document.querySelector('.scroll').scrollTo(400, 900)")
    head, name = page.locator("thead th").first.bounding_box(), page.locator(".row th").last.bounding_box()
    assert head
    assert name
    assert abs(head["y"] - scroll["y"]) <= 1
    assert abs(name["x"] - scroll["x"]) <= 1


@pytest.mark.parametrize("is_scripted", [True, False])
def test_a_cell_opens_by_its_address(opened: Callable[..., Page], *, is_scripted: bool) -> None:
    page = opened(CELL, java_script_enabled=is_scripted)
    panel = page.locator("section:target")
    for said in ("POST /v2/models/multi/infer", "expected 1, got 2", "0058", "Fail since 2; pass in 1"):
        assert said in panel.inner_text()
    assert page.get_by_text("The binary data of an answer follow the order", exact=False).last.is_visible()
    assert page.locator(".more section:visible").count() == 1
    assert page.locator("form.tools").is_visible() == is_scripted
    box = panel.bounding_box()
    assert box
    assert 0 <= box["y"] < WIDE[1]


def test_without_a_script_links_open_and_close_a_cell(opened: Callable[..., Page]) -> None:
    page = opened("", java_script_enabled=False)
    page.locator(f'.row a[href="#{CELL}"]').click()
    assert page.locator("section:target").is_visible()
    page.locator("section:target .close").click()
    assert page.locator(".more section:visible").count() == 0


def test_the_keyboard_opens_and_closes_a_cell(opened: Callable[..., Page]) -> None:
    page = opened()
    page.locator("[name=q]").focus()
    page.keyboard.type("expected 1, got")
    link = f'.row a[href="#{CELL}"]'
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')") == f"#{CELL}":
            break
    assert page.locator(f"{link}:focus").count() == 1
    page.keyboard.press("Enter")
    assert page.locator("section:target").is_visible()
    assert page.url.endswith(f"#{CELL}")
    page.keyboard.press("Escape")
    assert page.locator(".more section:visible").count() == 0
    assert page.evaluate("document.activeElement.closest('.row')?.id") == FAILED


def test_a_cell_without_rows_opens_and_closes_too(opened: Callable[..., Page]) -> None:
    page = opened()
    link = page.locator(f'.row a[href="#{OTHER}--beta-1"]')
    link.click()
    assert page.locator(".common:visible").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".common:visible").count() == 0


def test_filters_leave_what_fits_and_addresses_keep_them(opened: Callable[..., Page]) -> None:
    page = opened()
    assert len(list_shown(page)) == len(NAMES)
    page.locator("[name=show]").select_option("fails")
    assert list_shown(page) == [FAILED]
    assert page.locator("output").inner_text() == f"1 of {len(NAMES)} requirements"
    page.locator("[name=show]").select_option("differs")
    assert list_shown(page) == [OTHER, FAILED]
    page.locator("[name=column]").nth(2).uncheck()
    assert list_shown(page) == [FAILED]
    assert page.locator(".matrix thead th:visible").all_inner_texts() == [
        *("Requirement", "alpha", "1\nHTTP alone", "2\nHTTP alone")
    ]
    again = opened(page.url.partition("#")[2])
    assert list_shown(again) == [FAILED]
    assert not again.locator("[name=column]").nth(2).is_checked()
    again.get_by_role("button", name="Show all").click()
    expect(again.locator(".row:visible")).to_have_count(len(NAMES))
    again.locator("[name=q]").fill(OTHER.lower())
    assert OTHER in list_shown(again)


def test_an_address_of_a_version_that_is_gone_leads_to_its_requirement(opened: Callable[..., Page]) -> None:
    page = opened(f"{FAILED}--alpha-0")
    expect(page.locator(".common:visible")).to_have_count(1)
    assert page.url.endswith(f"#{FAILED}")
