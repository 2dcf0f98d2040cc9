"""`docs/requirements` is what the code writes, and everything that leads into it, or out of it, leads somewhere."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from conformance.pages import pages, servers
from conformance.spec import ledger, links
from tests.support.tables import on_each

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / links.PAGES_FOLDER
COMMITTED = sorted(FOLDER.glob("*.md"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def rendered() -> dict[str, str]:
    return pages.render(servers.load(ROOT / "docs" / "results"))


def test_pages_are_those_that_the_code_writes() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(rendered())


def prose_of(path: Path) -> str:
    """Return a page without its code."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the places of a page that a link can lead to: explicit anchors, and headings as GitHub names them."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return frozenset({*re.findall(r'<a id="([^"]+)">', text), *named})


def broken(path: Path) -> Iterator[str]:
    """Yield the links of a page, to files of the project, that lead nowhere."""
    for link in LINK.findall(prose_of(path)):
        name, _, place = link.partition("#")
        if link.startswith(("https://", "http://")):
            continue
        to = (path.parent / name).resolve() if name else path
        if not to.exists() or (place and place not in anchors(to)):
            yield link


@pytest.mark.parametrize(
    "path",
    [*COMMITTED, *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "fixtures" / "README.md"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_somewhere(path: Path) -> None:
    assert list(broken(path)) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](#one-two) [b](#two) [c](gone.md) [`d`](page.md#x) `[e](f)`\n```\n[g](h)\n```\n")
    assert list(broken(page)) == ["#two", "gone.md", "page.md#x"]


@pytest.fixture
def _public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "REPOSITORY", "https://host/project")


@pytest.mark.usefixtures("_public")
@on_each(ledger.load())
def test_the_url_of_a_requirement_leads_to_its_heading(requirement_id: str) -> None:
    path, _, place = ledger.get_requirement(requirement_id).url.rpartition(links.PAGES_FOLDER)[2].partition("#")
    assert place == requirement_id
    text = (FOLDER / path.removeprefix("/")).read_text(encoding="utf-8")
    heading = f"### {requirement_id}" if requirement_id.endswith(ledger.GRPC_SUFFIX) else f"## {requirement_id}"
    assert text.count(f'<a id="{requirement_id}"></a>\n\n{heading}\n') == 1


def test_a_page_has_a_url_where_the_project_has_a_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "REPOSITORY", "")
    assert links.make_requirement_url("raw", "RAW-ONE-INPUT") == ""
    monkeypatch.setattr(links, "REPOSITORY", "https://host/project")
    url = links.make_requirement_url("raw", "RAW-ONE-INPUT")
    assert url == "https://host/project/blob/main/docs/requirements/raw.md#RAW-ONE-INPUT"


def test_the_repository_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("urls", {}).get("Repository", "") == links.REPOSITORY


def test_every_reference_to_the_old_page_is_gone() -> None:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "conformance").rglob("*.py")]
    assert [path for path in texts if "requirements.md" in path.read_text(encoding="utf-8")] == []


def test_each_page_has_one_subject_of_questions() -> None:
    areas = Counter(area for subject in pages.SUBJECTS.values() for area in subject)
    assert areas == Counter({entry.page for entry in ledger.load().values()})


def test_tables_are_no_wider_than_needed() -> None:
    rows = [line for text in rendered().values() for line in text.splitlines() if line.startswith("| ")]
    assert max(row.replace("\\|", "").count("|") for row in rows) == 6
