"""The documentation as a site, without MkDocs: its navigation, where links lead, and lists as it reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.roles.roles import load
from tests.strangers.servers import STRANGERS
from tests.support.site import generated, links, matrix, searching, shrinking, staging
from tests.support.site.commonmark import convert_for_mkdocs
from tests.support.tables import on_each

# Bug reports about what no result of a recipe shows: a dangerous row, and a runtime that no recipe deploys.
UNMEASURED = {"triton/OIP-BODY-SIZE", "mlserver/OIP-MODEL-METADATA"}


class Loader(yaml.SafeLoader):
    """Of a configuration that names a Python function, which is left alone."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def entries(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from entries(entry)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return staging.stage(tmp_path_factory.mktemp("site")).parent / "pages"


def test_every_link_leads_somewhere() -> None:
    assert list(links.find_broken_links()) == []


def test_the_navigation_has_every_page_once(staged: Path) -> None:
    config = yaml.load(staging.CONFIG.read_text(encoding="utf-8"), Loader)  # noqa: S506 (a safe loader's)
    assert config["strict"]
    listed = list(entries(config["nav"]))
    pages = {path.relative_to(staged).as_posix() for path in staged.rglob("*.md")}
    assert pages - set(listed) == set(), "give each a line in `nav` of docs/mkdocs.yml"
    assert set(listed) - pages == set(), "take them out of `nav` of docs/mkdocs.yml"
    assert len(listed) == len(pages)


def test_what_pages_link_to_is_staged(staged: Path) -> None:
    for name in ("schemas/report.schema.json", "docs/pictures/report.png", "docs/ci/gitlab.yml", "CITATION.cff"):
        assert (staged / name).read_bytes() == (generated.ROOT / name).read_bytes()
    assert "](../schemas/README.md)" in (staged / "docs/stability.md").read_text(encoding="utf-8")


def test_links_of_staged_pages_lead_somewhere(staged: Path) -> None:
    pages = {path.relative_to(generated.ROOT).as_posix() for path in links.read_pages()} - {matrix.PAGE}
    for name in pages - ({*generated.render_site_pages()} - {*generated.PAGES}):
        page = staged / name
        text = page.read_text(encoding="utf-8")
        assert "# " in (text[:2], text.partition("\n---\n")[2][:2])
        found = links.find_links(page, text)
        assert [link.written for link in found if not link.target.exists()] == []
        own = [link for link in found if link.anchor]
        assert [link.written for link in own if link.anchor not in links.find_anchors(link.target.read_text())] == []


# What a command counts: of a whole, or tens of them. A page with measurements says of when they are.
COUNT = re.compile(r"\b\d[\d,]* of (?:the |its )?\d[\d,]*\b|\b\d[\d,]*\d (?:MUSTs|SHOULDs|rows|roles|faults|checks)\b")
DATE = re.compile(r"\b(?:in|of) [A-Z][a-z]+ 20\d\d\b")


def test_no_page_counts_what_a_command_counts() -> None:
    made = {generated.ROOT / name for name in (matrix.PAGE, *generated.render_site_pages())}
    found = {
        page.relative_to(generated.ROOT).as_posix(): COUNT.findall(text)
        for page, text in links.read_pages().items()
        if page not in made and matrix.UPSTREAM not in page.parents and not DATE.search(text)
    }
    count = len(load())
    assert {page: counts for page, counts in found.items() if counts} == {
        "docs/tutorials/server.md": [f"{count} of {count}"]
    }, "write N, or name the command that prints it"


NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def test_pages_say_how_many_independent_servers_there_are() -> None:
    said = f"{NUMBERS[len(STRANGERS)]} independent servers"
    for name in ("README.md", "docs/verdict.md", "docs/develop/requirement.md"):
        assert said in " ".join((generated.ROOT / name).read_text(encoding="utf-8").lower().split()), name


def test_the_names_of_made_pages_and_of_requirements_become_links(staged: Path) -> None:
    verdict = (staged / "docs/verdict.md").read_text(encoding="utf-8")
    assert "[`docs/errata.md`](../docs/errata.md)" in verdict
    report = (staged / "docs/upstream/clients/kserve.md").read_text(encoding="utf-8")
    assert "[`CLIENT-SENDS-POST`](../../../docs/requirements/client.md#CLIENT-SENDS-POST)" in report


def test_a_page_of_the_repository_links_to_no_page_that_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    page = generated.ROOT / "docs/page.md"
    text = "[a](errata.md) [b](errata.md#contested) [c](verdict.md) `docs/errata.md`"
    monkeypatch.setattr(links, "read_pages", lambda: {page: text})
    faults = [f"docs/page.md: {name}: there is no such file" for name in ("errata.md", "errata.md#contested")]
    assert list(links.find_broken_links()) == faults


def test_the_pages_that_are_made_have_it_all(staged: Path) -> None:
    report = (staged / "docs/reference/report.md").read_text(encoding="utf-8")
    assert "| `verdict` | yes | conformant: every MUST that applies was judged and met; " in report
    assert ': `"conformant"`, `"partial"`, `"nonconformant"`, `"incomplete"`, `"narrowed"` |' in report
    assert "\n## rows\n" in report
    roles = (staged / "docs/reference/roles.md").read_text(encoding="utf-8")
    assert roles.count("\n| `") == len(load())


def test_the_matrix_links_to_requirements_and_bug_reports(staged: Path) -> None:
    page = staged / matrix.PAGE
    text = page.read_text(encoding="utf-8")
    for written, anchor in set(re.findall(r'href="\.\./([^"#]+)/(?:#([^"]+))?"', text)):
        target = links.read_pages()[generated.ROOT / "docs" / f"{written}.md"]
        assert not anchor or anchor in links.find_anchors(target), anchor
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert {found for found in re.findall(r'href="#([^"]+)"', text) if found not in ids} == set()
    reports = {path.relative_to(matrix.UPSTREAM).with_suffix("") for path in matrix.UPSTREAM.glob("*/*.md")}
    of_servers = {str(name) for name in reports if name.parts[0] not in ("clients", "puma")} - UNMEASURED
    assert [name for name in of_servers if f'href="../upstream/{name}/"' not in text] == []


def test_issues_stand_beside_what_a_server_does_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "triton").mkdir()
    entries = [
        ("A", 'issue = "https://x/1"'),
        ("A", 'issue = "https://x/1"'),
        ("A", ""),
        ("B", 'issue = "https://x/2"'),
    ]
    texts = [f'[[known]]\nrequirement = "{name}"\n{issue}\n' for name, issue in entries]
    (tmp_path / "triton/expected.toml").write_text("".join(texts))
    monkeypatch.setattr(matrix, "TARGETS", tmp_path)
    assert matrix.find_issues("triton", "A") == ["https://x/1"]
    assert matrix.find_issues("nobody", "A") == []


MESSAGES = ("## The counts of a run", "## Where verdicts come from")


def test_words_that_a_page_explains_are_printed() -> None:
    page = (generated.ROOT / "docs/failures.md").read_text(encoding="utf-8")
    tables = page[page.index(MESSAGES[0]) : page.index(MESSAGES[1])]
    source = "\n".join(path.read_text() for path in (generated.ROOT / "conformance").rglob("*.py"))
    phrases = re.findall(r"^\| `([^`]+)` \|", tables, re.MULTILINE)
    # Numbers and the name of a profile are filled in.
    pieces = [piece.strip(" ,") for phrase in phrases for piece in re.split(r"\d+(?: s)?|quick|rows|expected ", phrase)]
    assert len(phrases) > 15
    assert [piece for piece in pieces if piece not in source] == []


def test_results_of_a_requirement_lead_to_its_row_of_the_matrix(staged: Path) -> None:
    text = (staged / "docs/requirements/state.md").read_text(encoding="utf-8")
    assert "**Real servers** ([what each does](../results.md#HTTP-CHUNKED)): fail: " in text
    assert text.startswith("---\nsearch:\n  boost: ")


def test_questions_are_headings_that_the_search_finds(staged: Path) -> None:
    text = (staged / "docs/requirements/README.md").read_text(encoding="utf-8")
    assert "\n### What do I send when an output is empty?\n\n[BIN-SIZE-O](sizes.md#BIN-SIZE-O), " in text


def test_the_home_page_has_a_bar_for_each_server(staged: Path) -> None:
    text = (staged / "README.md").read_text(encoding="utf-8")
    assert text.count('<a href="docs/results/">') == len(matrix.build().columns)
    assert matrix.BARS not in text


def test_a_page_that_is_left_out_is_named(staged: Path) -> None:
    text = "".join((staged / f"docs/{page}.md").read_text(encoding="utf-8") for page in ("verdict", "results-clients"))
    for name in staging.LEFT_OUT:
        assert not (staged / name).exists()
        assert f"(`{name}`)" in text


@on_each(
    [
        ("<p>\n  a\n\n b</p>\n<pre>\n  c\n</pre>\n <p>", "<p>a\nb</p><pre>\n  c\n</pre><p>"),
        ("<b>a</b>\n  <i>b</i>\n<li>c\n</li>", "<b>a</b>\n<i>b</i><li>c</li>"),
        ('<td title="a > &#34;b&#34;">&#34;c&#34; &lt; &#39;</td>', '<td title="a > &#34;b&#34;">"c" &lt; \'</td>'),
        ("a <script>x\n  y</script>\n\n<style>\n  z</style>", "a <script>x\n  y</script>\n<style>\n  z</style>"),
    ]
)
def test_a_page_is_squeezed_where_it_changes_nothing(page: str, small: str) -> None:
    assert shrinking.squeeze(page) == small


def test_the_search_has_the_beginning_of_a_section() -> None:
    text = "<p>first</p>" + f"<p>{'a' * shrinking.MAX_INDEXED_CHARS}</p>"
    assert shrinking.cut(text) == "<p>first</p>"
    assert shrinking.cut("<p>first</p>") == "<p>first</p>"
    assert len(shrinking.cut("a" * 5000)) == shrinking.MAX_INDEXED_CHARS


def test_queries_are_cut_as_pages_are() -> None:
    script = "a,lunr.tokenizer.separator=new RegExp(e.separator),b"
    mended = "a,lunr.QueryLexer.termSeparator=lunr.tokenizer.separator=new RegExp(e.separator),b"
    assert searching.cut_queries_alike(script) == mended
    with pytest.raises(ValueError, match="elsewhere"):
        searching.cut_queries_alike("another")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a\n- b\n- c\n\nd", "a\n\n- b\n- c\n\nd"),
        ("- a\n  b\n\n  c", "- a\n    b\n\n    c"),
        ("* a\n  ```sh\n  x\n    y\n  ```", "* a\n    ```sh\n    x\n      y\n    ```"),
        ("1. a\n\n       code\n2. b", "1. a\n\n        code\n2. b"),
        ("- a\n  - b\n    c", "- a\n\n    - b\n        c"),
        ("```\na\n- b\n  c\n```", "```\na\n- b\n  c\n```"),
        ("a\n\n    - b\n      c", "a\n\n    - b\n      c"),
    ],
)
def test_lists_are_as_mkdocs_reads_them(written: str, meant: str) -> None:
    assert convert_for_mkdocs(written) == meant


@on_each(
    [
        ("[a](b.md)", ["b.md"], ""),
        ("![a](b.png) [c](d.md#e)", ["b.png", "d.md"], "e"),
        ("[a](https://x/y) `[b](c)`", [], ""),
    ]
)
def test_links_are_found(text: str, targets: list[str], anchor: str) -> None:
    found = links.find_links(Path("/d/p.md"), text)
    assert [link.target.name for link in found] == targets
    assert "".join(link.anchor for link in found) == anchor


def test_anchors_are_those_of_github() -> None:
    text = '# A `b`, c!\n\n## A b c\n\n## A b c\n\n<a id="X-Y"></a>\n\n```\n# no\n```\n'
    assert links.find_anchors(text) == {"a-b-c", "a-b-c-1", "a-b-c-2", "X-Y"}
