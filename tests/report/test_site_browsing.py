"""What looks at the pages of a built site sees what is wrong with them, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.site.browsing import browse, list_pages, serve

PAGE = '<!doctype html><html lang="en"><head><title>a</title></head><body><main><h1>a</h1>{}</main></body></html>'
WIDE_TABLE = f"<table><tr><td>{'a' * 900}</td></tr></table>"


def find_problems(browser: Browser, site: Path, content: str) -> list[str]:
    (site / "other").mkdir()
    (site / "other/index.html").write_text(PAGE.format('<p id="here">b</p>'), encoding="utf-8")
    (site / "index.html").write_text(PAGE.format(content), encoding="utf-8")
    with serve(site) as address:
        return list(browse(browser, address, list_pages(site)))


def test_a_page_without_faults_is_passed(browser: Browser, tmp_path: Path) -> None:
    content = f'<p><a href="other/#here">b</a></p><div style="overflow-x: auto" tabindex="0">{WIDE_TABLE}</div>'
    assert find_problems(browser, tmp_path, content) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('<p><a href="other/#there">b</a></p>', "no such anchor: other/#there"),
        ('<p><a href="none/">b</a></p>', "leads nowhere: none/"),
        (WIDE_TABLE, "[390 light]: beyond the edge: table aaa"),
        (f'<p style="overflow: hidden; width: 9em">{"a" * 300}</p>', "[1280 light]: cut off: p aaa"),
        ('<p><img src="none.png" alt="b"></p>', "404: http://"),
        ('<p><img src="none.png"></p>', "no alternative text: http://"),
        ('<p style="color: #bbb; background: #fff">words</p>', "[1280 light]: color-contrast: "),
        ("<script>gone()</script>", "script: gone is not defined"),
    ],
)
def test_what_is_wrong_with_a_page_is_seen(browser: Browser, tmp_path: Path, content: str, problem: str) -> None:
    found = find_problems(browser, tmp_path, content)
    assert any(problem in each for each in found), found
