"""Pages in a browser: opened in a size and a color scheme, and looked at for what keeps somebody from reading them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

ColorScheme = Literal["light", "dark"]

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
WIDE, NARROW = (1280, 800), (390, 844)


def open_page(
    browser: Browser, file: Path, size: tuple[int, int] = WIDE, scheme: ColorScheme = "light", **options: Any
) -> Page:
    """Return a page of the browser that shows a file; an error of a script is one of the test."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, **options)
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(file.as_uri())
    return page


def find_violations(page: Page) -> str:
    """Return the report of axe-core on a page; empty if it finds nothing."""
    found = Axe().run(page, options={"runOnly": RULES, "resultTypes": ["violations"]})
    return found.generate_report() or "" if found.violations_count else ""
