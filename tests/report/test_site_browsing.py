"""What looks at the pages of a built site sees what is wrong with them, and nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from tests.support.site.browsing import browse, list_pages, serve

PAGE = '<!doctype html><html lang="en"><head><title>a</title></head><body><main><h1>a</h1>{}</main></body></html>'
WIDE_TABLE = f"<table><tr><td>{'a' * 900}</td></tr></table>"
# name: (what is on the page, what is wrong with it)
PAGES = {
    "sound": (f'<p><a href="../pale/#here">b</a></p><div style="overflow-x: auto" tabindex="0">{WIDE_TABLE}</div>', ""),
    "anchor": ('<p><a href="../pale/#there">b</a></p>', "no such anchor: ../pale/#there"),
    "link": ('<p><a href="none/">b</a></p>', "leads nowhere: none/"),
    "wide": (WIDE_TABLE, "[390 light]: beyond the edge: table aaa"),
    "cut": (f'<p style="overflow: hidden; width: 9em">{"a" * 300}</p>', "[1280 light]: cut off: p aaa"),
    "absent": ('<p><img src="none.png" alt="b"></p>', "404: http://"),
    "unnamed": ('<p><img src="none.png"></p>', "no alternative text: http://"),
    "pale": ('<p id="here" style="color: #bbb; background: #fff">words</p>', "[1280 light]: color-contrast: "),
    "script": ("<script>gone()</script>", "script: gone is not defined"),
}


def test_what_is_wrong_with_a_page_is_seen(browser: Browser, tmp_path: Path) -> None:
    for name, (content, _) in PAGES.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(PAGE.format(content), encoding="utf-8")
    with serve(tmp_path) as address:
        found = list(browse(browser, address, list_pages(tmp_path)))
    for name, (_, problem) in PAGES.items():
        own = [line for line in found if line.startswith((f"{name}/ ", f"{name}/: "))]
        assert any(problem in line for line in own) if problem else own == [], name
