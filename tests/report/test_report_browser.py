"""The HTML pages in a browser: for everybody (axe-core), within their screens, by keyboard, and by their addresses."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from conformance.fleet import index_page
from conformance.report import history, page_html
from conformance.report.simple_page import render_html
from conformance.report.view import build_view
from conformance.spec import ledger
from tests.support.browser_pages import NARROW, WIDE, ColorScheme, find_violations, open_page
from tests.support.made_index import INDEX
from tests.support.made_reports import CONFORMANT, GATED, NONCONFORMANT, Report, check, failure, report, requirement

SCREENS = 5

BODY = b'{"outputs":[]}' + bytes(range(8))
HALF = {
    "head": ["HTTP 200", "Inference-Header-Content-Length: 14"], "length": len(BODY), "sha256": "0" * 64,
    "body_base64": b64encode(BODY).decode(), "fields": [[0, 14, "JSON"], [14, 22, "tensor 0 OUT0 INT32", 4]],
}  # fmt: skip
SHOWN = failure(request="{}", answer="{}", evidence={"request": HALF, "answer": HALF})
FAILING: Report = NONCONFORMANT | {"rows": [check(row="shown", outcome="fail", failure=SHOWN), *NONCONFORMANT["rows"]]}
PAGES: dict[str, Callable[[], str]] = {
    "failing": lambda: page_html.render(build_view(FAILING)),
    "conformant": lambda: page_html.render(build_view(CONFORMANT)),
    "gated": lambda: page_html.render(build_view(GATED)),
    "history": lambda: render_html(history.build_page(history.build_history([("a", FAILING), ("b", CONFORMANT)]))),
    "fleet": lambda: render_html(index_page.build_page(INDEX)),
}


def failing_everywhere() -> Report:
    """Return a report of a server that misses 60 requirements in 1500 rows, advice not counted."""
    names = list(ledger.load())
    rows = [check(f"ordering.x-{n // 9}", f"row-{n}", "fail", failure=failure(names[n % 60])) for n in range(1500)]
    advice = [check(f"ordering.y-{n}", "", "advisory", failure=failure(names[60 + n])) for n in range(20)]
    stuck = [check("ordering.z", str(n), "blocked", message=f"it rests on {n}") for n in range(100)]
    entries = ledger.load().values()
    found = [
        requirement(e.id, str(e.level), "fail" if n < 60 else "pass", area=str(e.area), extension=str(e.extension))
        for n, e in enumerate(entries)
    ]
    return report("nonconformant", why=["1500 rows failed"], rows=[*rows, *advice, *stuck], requirements=found)


@pytest.fixture
def failing(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    file = tmp_path / "page.html"
    file.write_text(PAGES["failing"](), encoding="utf-8")
    page = open_page(browser, file)
    yield page
    page.context.close()


# --- for everybody ---------------------------------------------------------------------------------------------------


VIEWS: list[tuple[str, tuple[int, int], ColorScheme]] = [
    ("failing", WIDE, "light"),
    ("failing", NARROW, "dark"),
    ("conformant", WIDE, "light"),
    ("gated", NARROW, "dark"),
    ("history", NARROW, "dark"),
    ("fleet", WIDE, "light"),
    ("fleet", NARROW, "dark"),
]


@pytest.mark.parametrize(("name", "size", "scheme"), VIEWS, ids=[f"{n}-{size[0]}-{s}" for n, size, s in VIEWS])
def test_axe_finds_nothing(
    browser: Browser, tmp_path: Path, name: str, size: tuple[int, int], scheme: ColorScheme
) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES[name](), encoding="utf-8")
    page = open_page(browser, file, size, scheme)
    for state in ("as it comes", "with all of it open"):
        assert find_violations(page) == "", state
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        page.wait_for_function("!document.querySelector('details.message pre.body')")
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_a_narrow_screen(browser: Browser, tmp_path: Path, name: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES[name](), encoding="utf-8")
    page = open_page(browser, file, NARROW)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    page.context.close()


def test_a_server_that_misses_nearly_everything_takes_five_screens(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_html.render(build_view(failing_everywhere())), encoding="utf-8")
    page = open_page(browser, file)
    assert page.evaluate("document.documentElement.scrollHeight") <= SCREENS * WIDE[1]
    last = page.locator(".first li").last.bounding_box()
    assert last is not None
    assert last["y"] + last["height"] <= WIDE[1], "what to fix first is on the first screen"
    page.context.close()


# --- addresses -------------------------------------------------------------------------------------------------------


def is_open(page: Page, place: str) -> bool:
    return bool(page.evaluate("place => document.getElementById(place).open", place))


def test_a_link_opens_what_it_leads_to(failing: Page) -> None:
    assert not is_open(failing, "unmet-BIN-ORDER-O")
    failing.locator("a.square").first.click()
    failing.wait_for_function("document.getElementById('unmet-BIN-ORDER-O').open")
    failing.goto(failing.url.partition("#")[0] + "#row-ordering.x[five]")
    failing.reload()
    assert failing.locator("[id='row-ordering.x[five]']").is_visible()
    failing.goto(failing.url.partition("#")[0] + "#row-ordering.x%5Bfour%5D")
    assert failing.locator("[id='row-ordering.x[four]']").is_visible()


def test_a_filter_is_in_the_address_and_comes_from_it(failing: Page) -> None:
    failing.select_option("#level", "SHOULD")
    failing.fill("#q", "bytes follow")
    address = str(failing.evaluate("location.href"))
    assert address.endswith("#?q=bytes+follow&level=SHOULD")
    said = failing.locator("#found").inner_text()
    assert said.endswith("findings and requirements")
    failing.goto("about:blank")
    failing.goto(address)
    assert failing.locator("#found").inner_text() == said
    assert failing.input_value("#q") == "bytes follow"
    assert failing.locator(".item:visible").count() == int(said.split()[0])
    assert is_open(failing, "advice")
    failing.click("button[type=reset]")
    failing.wait_for_function("!location.hash && !document.getElementById('advice').open")


@pytest.mark.parametrize("address", ["#%", "#none", "#?area=none&q=%00", "#unmet-BIN-ORDER-O?level=MAY", "#?a=b?c"])
def test_unknown_fragment_is_ignored(failing: Page, address: str) -> None:
    failing.goto(failing.url + address)
    failing.reload()
    assert failing.locator("h1").is_visible()


# --- bytes -----------------------------------------------------------------------------------------------------------


def test_bytes_and_their_parts_show_each_other_by_keyboard(failing: Page) -> None:
    failing.goto(failing.url + "#unmet-BIN-ORDER-O")
    answer = failing.locator("#unmet-BIN-ORDER-O details.message").nth(1)
    answer.locator("summary").focus()
    failing.keyboard.press("Enter")
    answer.locator(".dump").wait_for()
    told, marked = answer.locator(".told"), answer.locator("b.on")
    for _ in range(2):  # past the head, to the first part
        failing.keyboard.press("Tab")
    assert told.inner_text() == "JSON: 14 bytes from 0 (0x0000)"
    assert marked.count() == 14
    for _ in range(2):
        failing.keyboard.press("Tab")
    failing.keyboard.press("End")
    assert told.inner_text() == "21 (0x0015) is 07: tensor 0 OUT0 INT32 element 1"
    assert marked.all_inner_texts() == ["04", "05", "06", "07"]
    assert answer.locator("button.on").inner_text() == "tensor 0 OUT0 INT32 000e-0015"
    failing.keyboard.press("Home")
    assert told.inner_text() == "0 (0x0000) is 7b: JSON"


def test_a_byte_that_is_touched_shows_its_part(failing: Page) -> None:
    failing.goto(failing.url + "#unmet-BIN-ORDER-O")
    answer = failing.locator("#unmet-BIN-ORDER-O details.message").nth(1)
    answer.locator("summary").click()
    answer.locator("b").nth(14).click()
    assert answer.locator(".told").inner_text() == "14 (0x000e) is 00: tensor 0 OUT0 INT32 element 0"


def test_invalid_base64_body_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    forged = HALF | {"body_base64": "no base64!"}
    unmet = failure(evidence={"request": forged, "answer": forged})
    made = report("nonconformant", rows=[check(outcome="fail", failure=unmet)])
    file = tmp_path / "page.html"
    file.write_text(page_html.render(build_view(made)), encoding="utf-8")
    page = open_page(browser, file)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.locator("pre.body").first.inner_text() == "no base64!"
    page.context.close()
