"""The pages of requirements have what the ledger has, and the URL of a requirement leads to it."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from conformance.pages import pages
from conformance.spec import ledger, links
from tests.support.site.generated import render_site_pages
from tests.support.tables import on_each

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SITE", "https://host/project")


@pytest.mark.usefixtures("_public")
@on_each(ledger.load())
def test_the_url_of_a_requirement_leads_to_its_heading(requirement_id: str) -> None:
    path, _, place = ledger.get_requirement(requirement_id).url.removeprefix("https://host/project/").partition("/#")
    assert place == requirement_id
    text = render_site_pages()[f"{path}.md"]
    heading = f"### {requirement_id}" if requirement_id.endswith(ledger.GRPC_SUFFIX) else f"## {requirement_id}"
    assert text.count(f'<a id="{requirement_id}"></a>\n\n{heading}\n') == 1


def test_a_page_has_a_url_where_the_site_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "SITE", "")
    assert links.make_requirement_url("raw", "RAW-ONE-INPUT") == ""
    monkeypatch.setattr(links, "SITE", "https://host/project")
    url = links.make_requirement_url("raw", "RAW-ONE-INPUT")
    assert url == "https://host/project/docs/requirements/raw/#RAW-ONE-INPUT"


def test_the_site_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("urls", {}).get("Documentation", "") == links.SITE


def test_each_page_has_one_subject_of_questions() -> None:
    areas = Counter(area for subject in pages.SUBJECTS.values() for area in subject)
    assert areas == Counter({entry.page for entry in ledger.load().values()})


def test_tables_are_no_wider_than_needed() -> None:
    texts = [text for name, text in render_site_pages().items() if name.startswith(links.PAGES_FOLDER)]
    rows = [line for text in texts for line in text.splitlines() if line.startswith("| ")]
    assert max(row.replace("\\|", "").count("|") for row in rows) == 6
