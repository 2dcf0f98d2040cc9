"""The generated files of the repository are as the code makes them, and the pages of the site have every fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.spec import links
from reference_server import faults
from tests.clients import alterations
from tests.clients import kill_matrix_page as clients_matrix
from tests.support import kill_matrix_page, pages, quick_record
from tests.support.site.generated import ROOT, render_site_pages
from tests.support.site.matrix import PAGE, build, render_table

REFRESH = "write it with: python -m tests.support.pages"
MAX_DOCS_BYTES, MAX_TABLE_BYTES = 1_200_000, 40_000


def test_nothing_is_old() -> None:
    assert pages.find_old() == [], REFRESH


def test_the_documentation_is_small_and_has_no_page_that_is_made() -> None:
    assert sum(path.stat().st_size for path in (ROOT / "docs").rglob("*") if path.is_file()) <= MAX_DOCS_BYTES
    assert [name for name in render_site_pages() if (ROOT / name).exists()] == []


def test_a_page_with_another_text_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("before")
    monkeypatch.setattr(pages, "list_unrecorded", list)
    monkeypatch.setattr(pages, "render_pages", lambda: iter([(page, "after"), (tmp_path / "new.md", "new")]))
    assert pages.find_old() == [page, tmp_path / "new.md"]


def test_a_fault_whose_rows_are_gone_is_run() -> None:
    seen = {"a": [("json.id", "short")], "b": [("json.id", "gone")]}
    assert pages.find_unseen(["a", "b", "c"], seen, [("json.id", "short")]) == ["b", "c"]


def test_a_fault_that_breaks_something_else_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    record = quick_record.read_record()
    name = next(iter(record.faults))
    record.faults[name].breaks = ("OIP-GONE",)
    monkeypatch.setattr(pages, "read_record", lambda: record)
    assert name in pages.list_unrecorded()


@pytest.mark.parametrize(
    ("page", "names"),
    [(kill_matrix_page.render(), faults.load()), (clients_matrix.render(), alterations.load("faults"))],
    ids=["servers", "clients"],
)
def test_a_kill_matrix_has_every_fault_with_a_row_that_sees_it(page: str, names: dict[str, object]) -> None:
    lines = [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert {name.strip("`") for name, *_ in lines} == set(names)
    assert [name for name, _, _, seen in lines if not seen.startswith("`")] == []


@pytest.mark.parametrize("site", ["", "https://oip-conformance.github.io/oip-conformance"])
def test_the_table_of_results_is_small_and_has_every_outcome(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SITE", site)
    text = render_table()
    assert (f"[`OIP-ERROR`]({site}/docs/results/#OIP-ERROR) |" in text) == bool(site)
    assert len(text.encode()) <= MAX_TABLE_BYTES, f"{PAGE} is to stay a page that one reads"
    lines = {line.split("`")[1]: line for line in text.splitlines() if line.startswith(("| `", "| [`"))}
    assert set(lines) == {row.id for row in build().rows}
    assert all(line.count(" | ") == len(build().columns) + 1 for line in lines.values())
