"""Whatever a server wrote stays text, in Markdown and in HTML, and both say the same."""

from __future__ import annotations

import re

import pytest

from conformance.fleet import index_page
from conformance.report import comparison_page, history
from conformance.report.comparison import compare
from conformance.report.markdown import code, text
from conformance.report.simple_page import (
    BulletList,
    Heading,
    SimplePage,
    Span,
    Table,
    cell,
    render_html,
    render_markdown,
)
from conformance.report.simple_page import code as code_span
from tests.support.made_index import INDEX
from tests.support.page_tags import TAGS, parse_tags
from tests.support.small_reports import HOSTILE, check, report, requirement


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("identity_int32, 2^32 {a}", "identity_int32, 2^32 {a}"),
        ("a|b\\|", "a\\|b\\\\\\|"),
        ("`x` *y* ~z~ _u_ __v__", "\\`x\\` \\*y\\* \\~z\\~ \\_u\\_ \\_\\_v\\_\\_"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("[go](http://evil) WWW.evil", "\\[go\\](http&#58;//evil) WWW&#46;evil"),
        ("a\r\n# b\x1b\u202e\u2028", "a\\\\r\\\\n\\# b\\\\x1b\\\\u202e\\\\u2028"),
        ("x" * 301, "x" * 200 + " ... " + "x" * 100 + " (301 characters)"),
    ],
)
def test_text_has_no_meaning_in_markdown(foreign: str, shown: str) -> None:
    assert text(foreign) == shown


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [("a.b", "`a.b`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("``a|", "``` ``a\\| ```"), ("\n", "`\\n`"), (" ", "")],
)
def test_code_has_a_fence_of_its_own(foreign: str, shown: str) -> None:
    assert code(foreign) == shown


def make_hostile_pages() -> dict[str, SimplePage]:
    """Return pages with hostile text in every place that is free text by the schemas."""
    checks = [
        check(HOSTILE, HOSTILE, "fail", HOSTILE, HOSTILE),
        check(HOSTILE, HOSTILE, "blocked", HOSTILE, requirements=[HOSTILE]),
        check(HOSTILE, HOSTILE, "observed", observation=HOSTILE, requirements=[HOSTILE]),
    ]
    made = report(HOSTILE, HOSTILE, why=[HOSTILE], rows=checks, requirements=[requirement(HOSTILE, "MUST", "fail")])
    made["suite"] |= {"version": HOSTILE, "digest": "f" * 64}
    fixed = made | {"requirements": [requirement(HOSTILE, "MUST", "pass")], "rows": []}
    (known,) = (target for target in INDEX["targets"] if target["name"] == "eu")
    unmet = [{"id": HOSTILE, "level": "MUST", "rows": 1}]
    hostile = {"url": HOSTILE, "why": [HOSTILE], "areas": {HOSTILE: known["musts"]}, "unmet": unmet}
    change = INDEX["changes"]["fixed"][0] | {"id": HOSTILE}
    index = {"targets": [known | hostile], "changes": INDEX["changes"] | {"broke": [change], "gone": [HOSTILE]}}
    return {
        "comparison": comparison_page.build_page(compare([("file", made), (HOSTILE, made)])),
        "history": history.build_page(history.build_history([(HOSTILE, made), (HOSTILE, fixed)])),
        "fleet": index_page.build_page(INDEX | index | {"stopped": HOSTILE}),
    }


@pytest.mark.parametrize(("name", "page"), make_hostile_pages().items())
def test_hostile_text_stays_text(name: str, page: SimplePage) -> None:
    shown = render_markdown(page)
    without_links = re.sub(r"\]\(runs/2/eu/report\.html\)", "", shown)
    outside_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", without_links)
    assert [line for line in outside_code.splitlines() if "<script" in line or "](" in line.replace("\\](", "")] == []
    assert re.findall(r"://|[^ -~\n]", outside_code) == []
    for table in re.findall(r"(?:^\|.*\n)+", shown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table

    html = parse_tags(render_html(page))
    known = {"lang", "charset", "name", "content", "http-equiv", "class", "style", "scope", "tabindex", "role", "href"}
    drawn = {"viewBox", "viewbox", "preserveaspectratio", "x", "width", "height", "aria-hidden", "aria-label"}
    assert html.seen <= TAGS
    assert html.attributes <= known | drawn
    assert "<script>alert(1)</script>|`x`\\n# \\x1b[31m[go](http://evil) & www.evil \\u202e" in html.text
    assert re.findall(r"[^ -~\n]", html.text) == [], name


def test_html_says_what_markdown_says() -> None:
    head = ["requirement", "level", "alpha 1", "beta 1"]
    row = [
        cell(code_span("A")),
        cell("MUST", Span("All `bytes` count.", "own", is_small=True)),
        cell("pass"),
        cell("FAIL"),
    ]
    made = SimplePage(
        "Title", [Heading(2, "Runs"), Table("Runs", head, [row], lead=2), BulletList([["more ", code_span("x")]])]
    )
    shown = re.sub(r"\s+", " ", parse_tags(render_html(made)).text)
    for said in ("requirementalpha 1beta 1", "A MUSTAll bytes count.passFAIL", "Runs", "more x"):
        assert said in shown, said
    assert "| `A` | MUSTAll `bytes` count. | pass | FAIL |" in render_markdown(made)
