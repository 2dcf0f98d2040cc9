"""The generated pages of docs/ are as the code makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import kill_matrix_page, pages

REFRESH = "write it with: python -m tests.support.pages"


def test_no_page_is_old() -> None:
    assert pages.find_old() == [], REFRESH


def test_a_page_with_another_text_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before")
    monkeypatch.setattr(pages, "render_pages", lambda: iter([(page, "after"), (tmp_path / "new.md", "new")]))
    assert pages.find_old() == [page, tmp_path / "new.md"]


def test_a_fault_that_a_page_does_not_know_as_it_is_is_run() -> None:
    described = pages.described_faults()
    name = next(iter(described))
    changed = {**described, name: ("does something else", "OIP-ID"), "a-new-one": ("does it", "OIP-ID")}
    assert pages.find_new(kill_matrix_page.PAGE, changed) == [name, "a-new-one"]
