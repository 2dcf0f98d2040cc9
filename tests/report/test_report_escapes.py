"""Whatever a server wrote stays text, in Markdown and in HTML."""

from __future__ import annotations

import re

import pytest

from conformance.report import comparison_html, comparison_markdown
from conformance.report.comparison import compare
from conformance.report.markdown import code, text
from tests.support.page_tags import TAGS, parse_tags
from tests.support.small_reports import HOSTILE, Report, check, report, requirement


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("identity_int32, 2^32 {a}", "identity_int32, 2^32 {a}"),
        ("a|b\\|", "a\\|b\\\\\\|"),
        ("`x` *y* ~z~ _u_ __v__", "\\`x\\` \\*y\\* \\~z\\~ \\_u\\_ \\_\\_v\\_\\_"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("[go](http://evil) WWW.evil", "\\[go\\](http&#58;//evil) WWW&#46;evil"),
        ("a\r\n# b\x1b\u202e\u2028", "a\\\\r\\\\n\\# b\\\\x1b\\\\u202e\\\\u2028"),
        ("x" * 301, "x" * 300 + "... (301 characters)"),
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


@pytest.fixture
def hostile() -> Report:
    """Return a report with hostile text in every place that is free text by the schema."""
    checks = [
        check(HOSTILE, HOSTILE, "fail", HOSTILE, HOSTILE),
        check(HOSTILE, HOSTILE, "blocked", HOSTILE, requirements=[HOSTILE]),
        check(HOSTILE, HOSTILE, "observed", observation=HOSTILE, requirements=[HOSTILE]),
    ]
    changed = report(HOSTILE, HOSTILE, why=[HOSTILE], rows=checks, requirements=[requirement(HOSTILE, "MUST", "fail")])
    changed["suite"]["version"] = HOSTILE
    changed["suite"]["digest"] = "f" * 64
    return changed


def test_hostile_text_stays_text_in_markdown(hostile: Report) -> None:
    page = comparison_markdown.render(compare([(HOSTILE, hostile), (HOSTILE, hostile)]))
    outside_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", page)
    assert [line for line in outside_code.splitlines() if "<script" in line or "](" in line.replace("\\](", "")] == []
    assert re.findall(r"://|[^ -~\n]", outside_code) == []
    for line in page.splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert cells in (2, 3, 4, 5), line


def test_hostile_text_stays_text_in_html(hostile: Report) -> None:
    page = parse_tags(comparison_html.render(compare([("file", hostile), (HOSTILE, hostile)])))
    assert page.seen <= TAGS
    known = {"lang", "charset", "name", "content", "http-equiv", "class", "scope", "tabindex", "role", "aria-label"}
    assert page.attributes <= known
    assert "<script>alert(1)</script>|`x`\\n# \\x1b[31m[go](http://evil) & www.evil \\u202e" in page.text
    assert re.findall(r"[^ -~\n]", page.text) == []


def test_html_says_what_markdown_says() -> None:
    one = report(
        requirements=[
            requirement("BIN-ORDER-O", "MUST", "pass"),
            requirement("OIP-SERVER-METADATA", "MUST", "fail", "metadata"),
        ],
        rows=[check("o.x", str(k), "observed", observation=t) for k, t in enumerate(("JSON", "JSON", "text"))],
    )
    two = report("beta", rows=[check("ordering.y", "r", "fail", "expected less", "BIN-ORDER-I")])
    page = parse_tags(comparison_html.render(compare([("one", one), ("two", two)])))
    shown = re.sub(r"\s+", " ", page.text)
    assert "br" in page.seen
    for said in (
        "alpha 1beta 1",
        "BIN-ORDER-O MUSTThe binary data of an answer follow the order",
        "of strings.FAIL-",
        "BIN-ORDER-Oo.xJSON (2)text",
        "Failures beta 1 BIN-ORDER-I ordering.y (r): expected less",
    ):
        assert said in shown, said
